"""Family: one model type as the tests see it, with configs so small that nothing takes time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SIZES: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
WITHOUT_SHARED_HEADS = {name: size for name, size in SIZES.items() if name != "num_key_value_heads"}


@dataclass(frozen=True)
class Case:
    """A config: `values` as config.json has them, over `SIZES` unless the family says otherwise."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping


@dataclass(frozen=True)
class Family:
    """A model type and two configs or more, the second with the family's odd options on.

    `class_name` is the reference implementation's, in `peer`: `transformers`, or `mlx_lm` for those that it lacks.
    `relaid` names the class of the reference that computes the same under other names (see
    tests/oracle/families/relaying.py). `sizes` stand under each case's values. `older` maps fields that the reference
    writes to what published configs call them. `published` are names that must come out when the rules run backwards.
    `computed` are ends of names of what the reference writes though it follows from the config: that keeps its values.
    `quantized_in` is the layout that the kit writes packed checkpoints in, `kit` how many of the cases run it in every
    run; the others are part of `make laws`.
    """

    model_type: str
    cases: tuple[Case, ...]
    class_name: str = ""
    peer: Literal["transformers", "mlx_lm"] = "transformers"
    relaid: str = ""
    sizes: Mapping[str, Any] = field(default_factory=lambda: SIZES)
    older: Mapping[str, str] = field(default_factory=dict)
    task: Literal["generate", "embed", "rerank"] = "generate"
    published: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    tolerance: float = 1e-4
    spread: float = 1 / 3
    kit: int = 1
    quantized_in: Literal["mlx", "hf"] = "mlx"

    __hash__ = None  # type: ignore[assignment]  # it holds mappings

    @property
    def name(self) -> str:
        """The model type, and the task where one model type has several."""
        return self.model_type if self.task == "generate" else f"{self.model_type} {self.task}"

    def config(self, case: Case) -> dict[str, Any]:
        """Give config.json's content; what a model type is used for beside generating follows from the class."""
        named = {} if self.task == "generate" else {"architectures": [self.class_name]}
        return {"model_type": self.model_type, **named, **self.sizes, **case.values}
