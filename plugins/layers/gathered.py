"""Products of tokens with matrices of a stack, each token with the one that it takes, in every dtype."""

from __future__ import annotations

import mlx.core as mx


def times_chosen(tokens: mx.array, stack: mx.array, rows: mx.array, ordered: bool) -> mx.array:
    """Tokens (M, 1, in), a stack (E, out, in) and the matrix of each token, (M,), sorted if `ordered` -> (M, 1, out).

    MLX's kernel for the CPU has float32 alone: there what is not float32 is widened, and of a stack no more than the
    matrices that are used, where the tokens are fewer than all; the result has the dtype of a product of both.
    """
    dtype = mx.result_type(tokens, stack)
    if dtype == mx.float32 or mx.default_device() == mx.Device(mx.gpu):
        return mx.gather_mm(tokens, stack.swapaxes(-1, -2), rhs_indices=rows, sorted_indices=ordered)
    wide = tokens.astype(mx.float32)
    if rows.size < stack.shape[0]:
        return (wide @ stack[rows].astype(mx.float32).swapaxes(-1, -2)).astype(dtype)
    whole = stack.astype(mx.float32).swapaxes(-1, -2)
    return mx.gather_mm(wide, whole, rhs_indices=rows, sorted_indices=ordered).astype(dtype)
