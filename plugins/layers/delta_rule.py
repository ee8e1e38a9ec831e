"""The gated delta rule (arXiv 2412.06464): a memory that decays, and that each token corrects where its key looks.

A head's memory S (key_dim, value_dim) becomes, with a token's key k and value v, its decay a and its rate b,

    S' = a S,  S = S' + k (b (v - S'ᵀ k))ᵀ,

and its query q reads Sᵀ q. A decay is one number for the whole memory, or one for each of its rows (arXiv 2510.26692).
A chunk of tokens is done by matrices (arXiv 2406.06484): what each token writes is the solution of
a triangular system in what the others write, and the memory goes from chunk to chunk.
"""

from __future__ import annotations

import mlx.core as mx

from weightloom.plugins.layers.chunks import (
    chunk_size,
    decayed_products,
    in_chunks,
    inverse_of_unit_lower,
    until_the_end,
)

_CHUNK = 64


def unit(x: mx.array) -> mx.array:
    """Give x (..., D) over its length, as float32."""
    wide = x.astype(mx.float32)
    return wide * mx.rsqrt(mx.square(wide).sum(axis=-1, keepdims=True) + 1e-6)


def gated_delta_rule(
    queries: mx.array,
    keys: mx.array,
    values: mx.array,
    log_decay: mx.array,
    rate: mx.array,
    memory: mx.array | None,
) -> tuple[mx.array, mx.array]:
    """Give what tokens read (B, L, H, V) and the memory after them (B, H, K, V), both float32.

    Queries and keys are (B, L, G, K), each of their heads for H / G in a row of the values' (B, L, H, V). `log_decay`
    (0 or less) is (B, L, H), or (B, L, H, K) where rows decay each by itself, `rate` (B, L, H); `memory` is that before
    the first token, None where there is none.
    """
    batch, length, heads, value_dim = values.shape
    repeats = heads // keys.shape[2]
    queries, keys = (_by_head(mx.repeat(each, repeats, axis=2)) for each in (queries, keys))
    decays = _by_head(log_decay if log_decay.ndim == 4 else log_decay[..., None])
    rates = _by_head(rate[..., None])
    if memory is None:
        memory = mx.zeros((batch, heads, keys.shape[-1], value_dim), mx.float32)
    read, memory = (_one if length == 1 else _many)(queries, keys, _by_head(values), decays, rates, memory)
    return read.transpose(0, 2, 1, 3), memory


def _by_head(x: mx.array) -> mx.array:
    """(B, L, H, D) -> (B, H, L, D), float32."""
    return x.transpose(0, 2, 1, 3).astype(mx.float32)


def _one(
    queries: mx.array, keys: mx.array, values: mx.array, decays: mx.array, rates: mx.array, memory: mx.array
) -> tuple[mx.array, mx.array]:
    """Do one token."""
    memory = memory * mx.exp(decays).swapaxes(-1, -2)
    written = (values - keys @ memory) * rates
    memory = memory + keys.swapaxes(-1, -2) @ written
    return queries @ memory, memory


def _many(
    queries: mx.array, keys: mx.array, values: mx.array, decays: mx.array, rates: mx.array, memory: mx.array
) -> tuple[mx.array, mx.array]:
    """Do tokens by chunks."""
    length = keys.shape[2]
    size = chunk_size(length, _CHUNK)
    # What fills up the last chunk writes nothing and lets nothing decay.
    queries, keys, values, decays, rates = (in_chunks(each, size) for each in (queries, keys, values, decays, rates))
    begun = mx.exp(mx.cumsum(decays, axis=-2))
    system = mx.tril(_products(rates * keys, keys, decays), k=-1) + mx.eye(size)
    solution = inverse_of_unit_lower(system)
    wanted, seen = solution @ (rates * values), solution @ (rates * begun * keys)
    scores = _products(queries, keys, decays)
    far, left = queries * begun, keys * mx.exp(until_the_end(decays))
    whole = begun[..., -1:, :].swapaxes(-1, -2)
    read = []
    for at in range(keys.shape[2]):
        written = wanted[:, :, at] - seen[:, :, at] @ memory
        read.append(far[:, :, at] @ memory + scores[:, :, at] @ written)
        memory = whole[:, :, at] * memory + left[:, :, at].swapaxes(-1, -2) @ written
    return mx.concatenate(read, axis=2)[:, :, :length], memory


def _products(left: mx.array, right: mx.array, decays: mx.array) -> mx.array:
    """Multiply rows of a chunk, (..., n, K) each, by what is left of the earlier at the later; 0 above the diagonal."""
    if decays.shape[-1] > 1:
        return decayed_products(left, right, decays)
    # Summed for each pair: differences of sums over a chunk would lose what little a late token decays.
    size = left.shape[-2]
    since = mx.cumsum(mx.where(mx.tri(size, k=-1, dtype=mx.bool_), decays, 0), axis=-2)
    return mx.tril((left @ right.swapaxes(-1, -2)) * mx.exp(since))
