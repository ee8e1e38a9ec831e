"""The fields that configs of DeepSeek's kind of experts share: counts, groups, and what becomes of the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from weightloom.plugins.configs.checks import WIDEST, refuse_non_positive
from weightloom.plugins.configs.config import refuse_unless
from weightloom.plugins.configs.text_fields import TextFields


@dataclass(frozen=True, kw_only=True)
class ScoredFields(TextFields):
    """What config.json says of a text model whose later layers have experts; a family's fields are a subclass.

    `called` is what a family's configs call those of these fields that have another name there.
    """

    called: ClassVar[Mapping[str, str]] = {}

    moe_intermediate_size: int
    n_routed_experts: int
    num_experts_per_tok: int
    n_shared_experts: int | None = None
    first_k_dense_replace: int = 0
    moe_layer_freq: int = 1
    mlp_layer_types: tuple[Literal["dense", "sparse"], ...] | None = None
    n_group: int | None = None
    topk_group: int | None = None
    norm_topk_prob: bool = True
    routed_scaling_factor: float = 1.0

    def check_experts(self, of_group: int = 2) -> None:
        """Raise ConfigError, naming the field, for counts that do not fit; a group has `of_group` experts at least."""
        names = (
            "moe_intermediate_size",
            "n_routed_experts",
            "num_experts_per_tok",
            "routed_scaling_factor",
            "moe_layer_freq",
        )
        refuse_non_positive({self._name(name): getattr(self, name) for name in names})
        shared = self.n_shared_experts
        fits = shared is None or (shared >= 0 and self.shared_width <= 8 * WIDEST)
        refuse_unless(fits, self._name("n_shared_experts"), shared, f"null, or 0 or more, {8 * WIDEST} wide at most")
        chosen, experts = self.num_experts_per_tok, self.n_routed_experts
        most = f"{self._name('n_routed_experts')}, {experts}, at most"
        refuse_unless(chosen <= experts, self._name("num_experts_per_tok"), chosen, most)
        self._check_groups(of_group)
        types, count = self.mlp_layer_types, self.num_hidden_layers
        fits = types is None or len(types) == count
        refuse_unless(fits, "mlp_layer_types", types, f"an entry for each of num_hidden_layers, {count}")

    def _check_groups(self, of_group: int) -> None:
        experts, groups, kept = self.n_routed_experts, self.groups, self.kept_groups
        refuse_unless(groups >= 0, self._name("n_group"), groups, "0 or more, or null")
        refuse_unless(kept >= min(groups, 1), self._name("topk_group"), kept, "a positive number, or null")
        if groups <= 1:
            return
        fits = experts % groups == 0 and experts // groups >= of_group
        divisor = f"a divisor of {self._name('n_routed_experts')}, {experts}, into {of_group} at least"
        refuse_unless(fits, self._name("n_group"), groups, divisor)
        refuse_unless(kept <= groups, self._name("topk_group"), kept, f"{self._name('n_group')}, {groups}, at most")
        left, chosen = kept * experts // groups, self.num_experts_per_tok
        refuse_unless(
            chosen <= left,
            self._name("num_experts_per_tok"),
            chosen,
            f"{left}, what {self._name('topk_group')} leaves, at most",
        )

    def _name(self, field: str) -> str:
        return self.called.get(field, field)

    @property
    def groups(self) -> int:
        """How many groups of experts there are."""
        return 1 if self.n_group is None else self.n_group

    @property
    def kept_groups(self) -> int:
        """How many groups a token's experts come from."""
        return self.groups if self.topk_group is None else self.topk_group

    @property
    def shared_width(self) -> int:
        """The width of the layer that every token goes through, 0 for none."""
        return self.moe_intermediate_size * (self.n_shared_experts or 0)

    def is_sparse(self, layer: int) -> bool:
        """Say whether a layer, counted from 0, has experts: as listed, else by its number."""
        if self.mlp_layer_types is not None:
            return self.mlp_layer_types[layer] == "sparse"
        return layer >= self.first_k_dense_replace and layer % self.moe_layer_freq == 0
