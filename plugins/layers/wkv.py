"""The recurrence of RWKV-7 (arXiv 2503.14456): a memory that decays, each number by itself, and is rewritten.

A head's memory S (key_dim, value_dim) becomes, with a token's decays w, key k and value v, and with what it takes out
along a and puts in along b,

    S = diag(w) S + b (aᵀ S) + k vᵀ,

and its receptance r reads Sᵀ r. A chunk of tokens is done by matrices: what each takes out is the solution of a
triangular system in what the others have put in.
"""

from __future__ import annotations

import mlx.core as mx

from weightloom.plugins.layers.chunks import chunk_size, in_chunks, inverse_of_unit_lower

# Decays are exp(-exp(-1/2)) at least, so that those of a chunk, and what undoes them, are within float32.
_CHUNK = 64


def wkv(
    receptances: mx.array,
    log_decay: mx.array,
    keys: mx.array,
    values: mx.array,
    taken: mx.array,
    put: mx.array,
    memory: mx.array | None,
) -> tuple[mx.array, mx.array]:
    """Give what tokens read (B, L, H, V) and the memory after them (B, H, K, V), both float32.

    `receptances`, `log_decay`, `keys`, `taken` (a) and `put` (b) are (B, L, H, K), values (B, L, H, V); `memory` is
    that before the first token, None where there is none. `log_decay` is from -0.61 to 0.
    """
    batch, length, heads, value_dim = values.shape
    if memory is None:
        memory = mx.zeros((batch, heads, keys.shape[-1], value_dim), mx.float32)
    r, w, k, v, a, b = (
        each.transpose(0, 2, 1, 3).astype(mx.float32) for each in (receptances, log_decay, keys, values, taken, put)
    )
    read, memory = (_one if length == 1 else _many)(r, w, k, v, a, b, memory)
    return read.transpose(0, 2, 1, 3), memory


def _one(
    r: mx.array, w: mx.array, k: mx.array, v: mx.array, a: mx.array, b: mx.array, memory: mx.array
) -> tuple[mx.array, mx.array]:
    """Do one token."""
    rewritten = b.swapaxes(-1, -2) @ (a @ memory)
    memory = mx.exp(w).swapaxes(-1, -2) * memory + rewritten + k.swapaxes(-1, -2) @ v
    return r @ memory, memory


def _many(
    r: mx.array, w: mx.array, k: mx.array, v: mx.array, a: mx.array, b: mx.array, memory: mx.array
) -> tuple[mx.array, mx.array]:
    """Do tokens by chunks."""
    length = v.shape[2]
    size = chunk_size(length, _CHUNK)
    r, w, k, v, a, b = (in_chunks(each, size) for each in (r, w, k, v, a, b))
    total = mx.cumsum(w, axis=-2)
    # From the chunk's start on: what a token reads by after its own decay, what it takes out by before it.
    reading, taking = r * mx.exp(total), a * mx.exp(total - w)
    undone = mx.exp(-total)
    added, rewritten = (k * undone).swapaxes(-1, -2), (b * undone).swapaxes(-1, -2)
    earlier, until = mx.tri(size, k=-1, dtype=mx.bool_), mx.tri(size, dtype=mx.bool_)
    solution = inverse_of_unit_lower(mx.where(earlier, -(taking @ rewritten), mx.eye(size)))
    found, seen = solution @ (mx.where(earlier, taking @ added, 0) @ v), solution @ taking
    of_values, of_found = mx.where(until, reading @ added, 0), mx.where(until, reading @ rewritten, 0)
    whole = mx.exp(total[..., -1:, :]).swapaxes(-1, -2)
    read = []
    for at in range(v.shape[2]):
        out = found[:, :, at] + seen[:, :, at] @ memory
        read.append(reading[:, :, at] @ memory + of_values[:, :, at] @ v[:, :, at] + of_found[:, :, at] @ out)
        memory = whole[:, :, at] * (memory + added[:, :, at] @ v[:, :, at] + rewritten[:, :, at] @ out)
    return mx.concatenate(read, axis=2)[:, :, :length], memory
