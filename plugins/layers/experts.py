"""Expert layers: a router sends each token to a few of many gated feed-forward layers, stacked in two arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mlx.core as mx
import mlx.nn as nn

from weightloom.plugins.layers.activations import Activation, gated
from weightloom.plugins.layers.gathered import times_chosen
from weightloom.plugins.layers.packing import Quantization
from weightloom.plugins.layers.routing import Router
from weightloom.plugins.layers.scaled import times_rows, without_overflow

# Fewer rows than this are multiplied faster as they come.
_WORTH_SORTING = 64

Inner = Callable[[mx.array], mx.array]
"""What gate and up make, (..., 2 I), -> what goes on, (..., I)."""

MadeOf = tuple[int, int, int, Activation, bool, Callable[[Activation], Inner]]
"""What experts are made with, so that others can be made like them: the arguments of `Experts`, in their order."""


def gate_over_up(act: Activation) -> Inner:
    """Give act(gate) * up, the gate's numbers first, then up's."""
    product = gated(act)
    return lambda both: product(*mx.split(both, 2, axis=-1))


class Experts(nn.Module):
    """Gated feed-forward layers in stacks: `gate_up_proj` (E, 2 I, H) and `down_proj` (E, H, I).

    Gate is over up, unless `inner` reads them otherwise. With a `bias` each stack has one for its rows, `NAME_bias`.
    """

    def __init__(
        self,
        count: int,
        hidden_size: int,
        intermediate_size: int,
        act: Activation,
        bias: bool = False,
        inner: Callable[[Activation], Inner] = gate_over_up,
    ) -> None:
        super().__init__()
        self._made_of = (count, hidden_size, intermediate_size, act, bias, inner)
        self._inner = inner(act)
        self.gate_up_proj = mx.zeros((count, 2 * intermediate_size, hidden_size))
        self.down_proj = mx.zeros((count, hidden_size, intermediate_size))
        if bias:
            self.gate_up_proj_bias = mx.zeros((count, 2 * intermediate_size))
            self.down_proj_bias = mx.zeros((count, hidden_size))

    @property
    def count(self) -> int:
        """How many experts there are."""
        return self._made_of[0]

    @property
    def hidden_size(self) -> int:
        """H."""
        return self._made_of[1]

    def __call__(self, x: mx.array, chosen: mx.array) -> mx.array:
        """Tokens (N, H) and their experts (N, k) -> what each expert makes of them, (N, k, H)."""
        rows = chosen.flatten()
        if rows.size < _WORTH_SORTING:
            tokens = mx.repeat(x, chosen.shape[1], axis=0)[:, None, :]
            return self._made(tokens, rows, ordered=False).reshape(*chosen.shape, -1)
        # Sorted by expert, each matrix is read once.
        order = mx.argsort(rows)
        made = self._made(x[order // chosen.shape[1]][:, None, :], rows[order], ordered=True)
        return made[mx.argsort(order)].reshape(*chosen.shape, -1)

    def _made(self, tokens: mx.array, rows: mx.array, ordered: bool) -> mx.array:
        """Tokens (M, 1, H) and the expert of each, (M,), sorted if `ordered` -> (M, H)."""
        inner = self._inner(self._rows("gate_up_proj", tokens, rows, ordered))
        return self._rows("down_proj", inner, rows, ordered)[:, 0]

    def _rows(self, name: str, tokens: mx.array, rows: mx.array, ordered: bool) -> mx.array:
        made, bias = self.times(name, tokens, rows, ordered), self.get(f"{name}_bias")
        return made if bias is None else made + bias[rows][:, None, :]

    def times(self, name: str, tokens: mx.array, rows: mx.array, ordered: bool) -> mx.array:
        """Tokens (M, 1, in) times a matrix of the stack `name`: the one that each token has in `rows` (M,)."""
        return times_chosen(tokens, self[name], rows, ordered)

    def dense(self, name: str) -> mx.array:
        """Give the stack `name`, unpacked where it is packed."""
        stack: mx.array = self[name]
        return stack

    def packed(self, name: str, how: Quantization) -> QuantizedExperts:
        """Give the same layer with the stack `name` packed."""
        return QuantizedExperts(self._made_of, {name: how})


Mix = Callable[[Experts, mx.array, mx.array, mx.array], mx.array]
"""Experts, tokens (N, H), the chosen experts and their weights (N, k) -> the weighted sums (N, H), float32."""


def weighted_sum(experts: Experts, tokens: mx.array, chosen: mx.array, weights: mx.array) -> mx.array:
    """Sum what the chosen experts make of each token, weighted."""
    return (experts(tokens, chosen) * weights[..., None]).sum(axis=1)


class QuantizedExperts(Experts):
    """Experts of which some stacks are packed: NAME (U32), `NAME_scales` and, in affine mode, `NAME_biases`."""

    def __init__(self, made_of: MadeOf, how: Mapping[str, Quantization]) -> None:
        super().__init__(*made_of)
        self._how = dict(how)
        for name, each in how.items():
            weight, scales, *biases = mx.quantize(self[name], each.group_size, each.bits, each.mode)
            self[name], self[f"{name}_scales"] = weight, scales
            if biases:
                self[f"{name}_biases"] = biases[0]
            if each.scaled:
                self[f"{name}_global_scale"] = mx.ones((*weight.shape[:-1], 1))

    @property
    def bits(self) -> dict[str, int]:
        """Bits an element, by packed stack."""
        return {name: how.bits for name, how in self._how.items()}

    @property
    def how(self) -> Mapping[str, Quantization]:
        """How each packed stack is packed."""
        return self._how

    def times(self, name: str, tokens: mx.array, rows: mx.array, ordered: bool) -> mx.array:
        """As for plain stacks, unpacking on the way."""
        if name not in self._how:
            return super().times(name, tokens, rows, ordered)
        how = self._how[name]
        made = mx.gather_qmm(
            without_overflow(tokens) if how.scaled else tokens,
            self[name],
            self[f"{name}_scales"],
            self.get(f"{name}_biases"),
            rhs_indices=rows,
            group_size=how.group_size,
            bits=how.bits,
            mode=how.mode,
            sorted_indices=ordered,
        )
        if not how.scaled:
            return made
        return times_rows(made, self[f"{name}_global_scale"][rows].swapaxes(-1, -2)).astype(tokens.dtype)

    def dense(self, name: str) -> mx.array:
        """Give the stack `name`, unpacked where it is packed."""
        if name not in self._how:
            return super().dense(name)
        how = self._how[name]
        scales, biases = self[f"{name}_scales"], self.get(f"{name}_biases")
        found = mx.dequantize(self[name], scales, biases, how.group_size, how.bits, how.mode)
        return times_rows(found, self[f"{name}_global_scale"]) if how.scaled else found

    def packed(self, name: str, how: Quantization) -> QuantizedExperts:
        """Give the same layer with the stack `name` packed too."""
        return QuantizedExperts(self._made_of, {**self._how, name: how})


class SparseMlp(nn.Module):
    """A router (E, H), called `gate` or what the family calls it, and the `experts` that it chooses among, `k` a token.

    A family that chooses, scores or puts together in its own way overrides `choose`, `scores` or `mixed`.
    """

    def __init__(self, experts: Experts, router: Router, k: int, gate: str = "gate", bias: bool = False) -> None:
        super().__init__()
        self._router = router
        self._k = k
        self._gate_name = gate
        self._mix: Mix = weighted_sum
        self[gate] = nn.Linear(experts.hidden_size, experts.count, bias=bias)
        self.experts = experts

    def __call__(self, x: mx.array) -> mx.array:
        """(B, L, H) -> the same shape: the weighted sum of what the chosen experts make."""
        tokens = x.reshape(-1, x.shape[-1])
        chosen, weights = self.choose(tokens)
        return self.mixed(tokens, chosen, weights).astype(x.dtype).reshape(x.shape)

    def choose(self, tokens: mx.array) -> tuple[mx.array, mx.array]:
        """Tokens (N, H) -> the experts of each, (N, k) int, and their weights, (N, k) float32."""
        return self._router(self.scores(tokens), self._k)

    def scores(self, tokens: mx.array) -> mx.array:
        """Tokens (N, H) -> the score of each expert, (N, E)."""
        found: mx.array = self[self._gate_name](tokens)
        return found

    def mixed(self, tokens: mx.array, chosen: mx.array, weights: mx.array) -> mx.array:
        """Tokens (N, H), their experts and weights (N, k) -> what the experts make of each, put together, (N, H)."""
        return self._mix(self.experts, tokens, chosen, weights)

    def mix_by(self, mix: Mix) -> None:
        """Have what experts make put together in another way: among ranks, say."""
        self._mix = mix
