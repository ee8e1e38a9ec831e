"""Ops that reorder the elements of each tensor: Transpose, Interleave, PermuteForRope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weightloom.engine.errors import PlanError, RuleError
from weightloom.engine.ops.base import (
    Amount,
    ConversionOp,
    OnFactors,
    along,
    amount,
    axis_of,
    not_on_factors,
    relabel_single,
    with_text_config,
)
from weightloom.engine.ops.chain import Chain, Part


@dataclass(frozen=True, slots=True)
class Transpose(ConversionOp):
    """Swap two axes; with `only`, of the patterns that have one of these texts in them.

    With `check_dims` a tensor that already has its target's shape is left as it is. Where both readings have
    that shape (square) the shape says nothing, and PlanError is raised instead of a guess; so it is where `only`
    picks no pattern.
    """

    dim0: int = 0
    dim1: int = 1
    check_dims: bool = False
    only: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "only", _texts(self.only))

    def lower(self, chain: Chain) -> None:
        """One permutation a tensor."""
        for number, part in self._chosen(chain):
            for item, spec in enumerate(part.specs):
                axes = list(range(len(spec.shape)))
                a, b = (axis_of("Transpose", dim, len(axes)) for dim in (self.dim0, self.dim1))
                axes[a], axes[b] = axes[b], axes[a]
                if not self.check_dims or self._is_turned(chain, number, spec.shape, tuple(axes)):
                    chain.permute(number, item, tuple(axes))
        relabel_single(chain)

    def inverse(self) -> Transpose:
        """A swap undoes itself."""
        return self

    def _chosen(self, chain: Chain) -> list[tuple[int, Part]]:
        texts = self.only
        chosen = [
            (number, part)
            for number, part in enumerate(chain.parts)
            if texts is None or any(text in part.label for text in texts)
        ]
        if not chosen:
            raise PlanError(
                f"Transpose: only {', '.join(texts or ())}, of {', '.join(part.label for part in chain.parts)}",
                expected="a part of one of these patterns",
                field="only",
            )
        return chosen

    def _is_turned(self, chain: Chain, part: int, shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
        targets = chain.context.targets
        target = targets[part].spec if part < len(targets) else None
        turned = tuple(shape[axis] for axis in axes)
        if target is None or shape == turned or target.shape not in (shape, turned):
            wanted = "unknown" if target is None else str(list(target.shape))
            raise PlanError(
                f"Transpose(check_dims): a tensor of {list(shape)} for a target of {wanted}: its shape does not say "
                "whether it is transposed",
                expected="a target shape that fits one reading only",
                hint="use Transpose without check_dims, under a `when` on the config or the metadata",
                field="operations",
            )
        return shape != target.shape


@dataclass(frozen=True, slots=True)
class Interleave(ConversionOp):
    """Take alternating rows along `dim` apart: 0, 2, 4, ..., 1, 3, 5, ...; `inverse` puts them back.

    Raises PlanError when the number of rows is odd.
    """

    dim: int = 0
    inverse_: bool = False

    def __init__(self, dim: int = 0, inverse: bool = False) -> None:
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "inverse_", inverse)

    def lower(self, chain: Chain) -> None:
        """Split the axis in two, swap, merge."""
        for number, part in enumerate(chain.parts):
            for item, spec in enumerate(part.specs):
                dim = axis_of("Interleave", self.dim, len(spec.shape))
                _swap_halves(chain, "Interleave", (number, item), dim, 1, pairs_inside=not self.inverse_)
        relabel_single(chain)

    def inverse(self) -> Interleave:
        """The same with the other direction."""
        return Interleave(self.dim, inverse=not self.inverse_)

    def on_factors(self, ndim: int) -> OnFactors:
        """Reorder the factor that has the dim, or both."""
        axis, inverse = axis_of("Interleave", self.dim, ndim), self.inverse_
        return along(self, axis, ndim, Interleave(axis - ndim, inverse), Interleave(axis, inverse))


Heads = Amount | tuple[tuple[str, Amount], ...]


@dataclass(frozen=True, slots=True, init=False)
class PermuteForRope(ConversionOp):
    """Rows of rotary pairs (x0, y0, x1, y1, ...) of each head to halves (x0, x1, ..., y0, y1, ...); or back.

    Works on axis 0, heads * head_dim long. `permute_layer_names`: only parts whose pattern contains one of
    these. `heads`: a number, a config expression, or a mapping from a piece of the pattern to one of them; by
    default each part's own count, from the config's head_dim, or its hidden_size and num_attention_heads.
    `subconfig_key` names the sub-config to look in.
    """

    subconfig_key: str | None
    permute_layer_names: tuple[str, ...] | None
    inverse_: bool
    heads: Heads | None

    def __init__(
        self,
        subconfig_key: str | None = None,
        permute_layer_names: Sequence[str] | None = None,
        inverse: bool = False,
        heads: Amount | Mapping[str, Amount] | Heads | None = None,
    ) -> None:
        names = None if permute_layer_names is None else tuple(permute_layer_names)
        if isinstance(permute_layer_names, str) or (names and not all(isinstance(n, str) for n in names)):
            raise RuleError(
                f"permute_layer_names is {permute_layer_names!r}",
                expected="a list of names",
                field="permute_layer_names",
            )
        fixed = tuple(sorted(heads.items())) if isinstance(heads, Mapping) else heads
        for name, value in (
            ("subconfig_key", subconfig_key),
            ("permute_layer_names", names),
            ("inverse_", inverse),
            ("heads", fixed),
        ):
            object.__setattr__(self, name, value)

    def lower(self, chain: Chain) -> None:
        """Split each head's rows in two, swap, merge."""
        chosen = [(n, part) for n, part in enumerate(chain.parts) if self._chosen(part)]
        for number, part in chosen:
            for item, spec in enumerate(part.specs):
                axis_of("PermuteForRope", 0, len(spec.shape))
                heads = self._heads(part.label, spec.shape[0], chain, [p for _, p in chosen])
                _swap_halves(chain, "PermuteForRope", (number, item), 0, heads, pairs_inside=not self.inverse_)
        relabel_single(chain)

    def inverse(self) -> PermuteForRope:
        """The same with the other direction."""
        return PermuteForRope(self.subconfig_key, self.permute_layer_names, not self.inverse_, self.heads)

    def on_factors(self, ndim: int) -> OnFactors:
        """Reorder the rows of a matrix, which are those of B."""
        if ndim != 2:
            raise not_on_factors(self, "its rows are those of a matrix")
        return OnFactors((), (self,), ndim, (self,))

    def _chosen(self, part: Part) -> bool:
        names = self.permute_layer_names
        return names is None or any(name in part.label for name in names)

    def _heads(self, label: str, rows: int, chain: Chain, chosen: list[Part]) -> int:
        config = self._config(chain.context.config)
        if isinstance(self.heads, tuple):
            for piece, count in self.heads:
                if piece in label:
                    return amount("PermuteForRope", count, config)
        elif self.heads is not None:
            return amount("PermuteForRope", self.heads, config)
        return _own_heads(rows, config, max(part.specs[0].shape[0] for part in chosen))

    def _config(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.subconfig_key is None:
            return with_text_config(config)
        nested = config.get(self.subconfig_key, config)
        return nested if isinstance(nested, Mapping) else config


def _texts(texts: Any) -> tuple[str, ...] | None:
    if texts is None:
        return None
    found = tuple(texts) if isinstance(texts, list | tuple) else ()
    if not found or not all(isinstance(text, str) and text for text in found):
        raise RuleError(f"only is {texts!r}", expected="a list of texts, parts of patterns", field="only")
    return found


def _own_heads(rows: int, config: Mapping[str, Any], most_rows: int) -> int:
    """Work out how many heads `rows` rows are: all heads of a model have one size."""
    total = config.get("num_attention_heads")
    if not isinstance(total, int) or total <= 0:
        raise PlanError(
            f"PermuteForRope needs the number of heads; the config's num_attention_heads is {total!r}",
            expected="num_attention_heads in the config, or `heads` in the rule",
            field="num_attention_heads",
        )
    hidden = config.get("hidden_size")
    head_dim = config.get("head_dim") or ((hidden if isinstance(hidden, int) else most_rows) // total)
    if not head_dim or rows % head_dim:
        raise PlanError(
            f"PermuteForRope: {rows} rows do not divide into heads of {head_dim}",
            expected="rows = heads * head_dim",
            hint="give `heads` in the rule",
            field="head_dim",
        )
    return int(rows // head_dim)


def _swap_halves(chain: Chain, op: str, place: tuple[int, int], dim: int, heads: int, *, pairs_inside: bool) -> None:
    """Read each of `heads` blocks along `dim` as (n, 2), or as (2, n), and write it the other way round."""
    shape = chain.parts[place[0]].specs[place[1]].shape
    rows = shape[dim]
    if heads <= 0 or rows % (2 * heads):
        raise PlanError(
            f"{op}: {rows} rows along dim {dim} of {list(shape)} for {heads} heads of two halves",
            expected=f"a number of rows that {2 * heads} divides",
            field="operations",
        )
    half = rows // heads // 2
    inner = (half, 2) if pairs_inside else (2, half)
    before, after = shape[:dim], shape[dim + 1 :]
    chain.reshape(*place, (*before, heads, *inner, *after))
    axes = list(range(len(shape) + 2))
    axes[dim + 1], axes[dim + 2] = axes[dim + 2], axes[dim + 1]
    chain.permute(*place, tuple(axes))
    chain.reshape(*place, shape)
