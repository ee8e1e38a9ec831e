"""Latent attention in the layout of mlx-lm: the product that makes keys and values in two halves, perhaps packed.

The half for keys is turned there, so that its rows are packed along another axis than those of the one matrix: it is
unpacked to floats, and so is the other half. What is saved again has the words that were loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from weightloom.engine import ConversionOp, PlanError, Rule, RuleSet, WeightConverter
from weightloom.engine.ops.base import Amount, amount, relabel_single
from weightloom.engine.ops.chain import Chain
from weightloom.engine.quantizing.inference import Parts, Stated, infer
from weightloom.engine.quantizing.steps import FLOATS, Unpack

_HALF = "embed_q"
_PARTS = (r"\.weight", r"\.scales", r"\.biases")


def unpacked_halves(rules: RuleSet, config: Mapping[str, Any]) -> RuleSet:
    """Give rules of a layout, those for the two halves replaced by one that unpacks: an architecture's `rewrite_rules`.

    It is for latent attention whose sizes have the fields that `LatentFields` reads.
    """
    return RuleSet(map(_unpacking, rules), rules.base_model_prefix)


def _unpacking(rule: Rule) -> Rule:
    if not isinstance(rule, WeightConverter) or not any(_HALF in pattern for pattern in rule.source_patterns):
        return rule
    # Weights first: they are what is written of a model that was never loaded so.
    patterns = tuple(pattern.replace(_PARTS[0], part) for part in _PARTS for pattern in rule.source_patterns)
    return rule.replace(
        source_patterns=patterns,
        operations=(JoinHalves("num_attention_heads", "qk_nope_head_dim", "v_head_dim"),),
        optional=tuple(pattern for pattern in patterns if not pattern.endswith(_PARTS[0])),
    )


@dataclass(frozen=True, slots=True)
class JoinHalves(ConversionOp):
    """Halves for keys, (heads, rank, keys), and for values, (heads, values, rank), to (heads * (keys + values), rank).

    Each half is one tensor, or MLX's words, scales and, in affine mode, biases: these become the floats that they stand
    for, of the dtype of the scales. A save of what was loaded writes its bytes; what never was is written in floats.
    """

    needs_real_shapes: ClassVar[bool] = True

    heads: Amount
    keys: Amount
    values: Amount

    def lower(self, chain: Chain) -> None:
        """Unpack, turn the half for keys, and put the rows of both behind each other, head by head."""
        heads, keys, values = (self._size(chain, size) for size in (self.heads, self.keys, self.values))
        halves = _halves(chain)
        if len(halves) != 2:
            raise PlanError(
                f"JoinHalves: {len(halves)} weights", expected="one for keys and one for values", field="operations"
            )
        chain.regroup([(f"half {number}", slots) for number, slots in enumerate(halves)])
        rank = chain.parts[0].specs[0].shape[1:2]
        for number, columns in enumerate((keys, *rank)):
            _unpack(chain, number, columns)
        shapes = [part.specs[0].shape for part in chain.parts]
        wanted = [(heads, *rank, keys), (heads, values, *rank)]
        if shapes != wanted:
            raise PlanError(f"JoinHalves: {shapes}", expected=f"{wanted}", field="operations")
        chain.permute(0, 0, (0, 2, 1))
        chain.gather_parts("")
        chain.join(0, 1)
        chain.reshape(0, 0, (heads * (keys + values), *rank))
        relabel_single(chain)

    def inverse(self) -> CutHalves:
        """Cut, in floats."""
        return CutHalves(self.heads, self.keys, self.values)

    def _size(self, chain: Chain, size: Amount) -> int:
        return amount("JoinHalves", size, chain.context.config)


@dataclass(frozen=True, slots=True)
class CutHalves(ConversionOp):
    """How the halves of a model are written that were never loaded so: in floats. Made by JoinHalves alone."""

    needs_real_shapes: ClassVar[bool] = True

    heads: Amount
    keys: Amount
    values: Amount

    def lower(self, chain: Chain) -> None:
        """Cut each head's rows in two, and turn those for keys."""
        sizes = (self.heads, self.keys, self.values)
        heads, keys, values = (amount("CutHalves", size, chain.context.config) for size in sizes)
        spec = chain.only("CutHalves")
        if spec.dtype not in FLOATS or spec.shape[0] != heads * (keys + values):
            raise PlanError(
                f"the product of latent attention is {spec}",
                expected=f"{heads * (keys + values)} rows of {', '.join(FLOATS)}: this layout has it in two halves",
                hint="leave kv_b_proj dense where you quantize, or unpack it",
                field="operations",
            )
        chain.reshape(0, 0, (heads, keys + values, *spec.shape[1:]))
        chain.cut(0, 1, (keys, values))
        chain.spread_part([target.label for target in chain.context.targets[:2]])
        chain.permute(0, 0, (0, 2, 1))

    def inverse(self) -> JoinHalves:
        """Join."""
        return JoinHalves(self.heads, self.keys, self.values)


def _halves(chain: Chain) -> list[list[int]]:
    """Give the flat numbers of each half's tensors, weight, scales and biases, by what their patterns begin with."""
    found: dict[str, list[int]] = {}
    for number, part in enumerate(chain.parts):
        found.setdefault(part.label.rpartition(".")[0], []).append(chain.slot(number, 0))
    return list(found.values())


def _unpack(chain: Chain, number: int, columns: int) -> None:
    specs = chain.parts[number].specs
    if len(specs) > 1:
        weight, scales, *biases = specs
        how = infer(Parts("a half of kv_b_proj", weight, scales, biases[0] if biases else None), Stated(), columns)
        chain.value(Unpack(chain.slot(number, 0), how, specs), number, 0, len(specs))
