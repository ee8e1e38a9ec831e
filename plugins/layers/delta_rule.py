"""The gated delta rule (arXiv 2412.06464): a memory that decays, and that each token corrects where its key looks.

A head's memory S (key_dim, value_dim) becomes, with a token's key k and value v, its decay a and its rate b,

    S' = a S,  S = S' + k (b (v - S'ᵀ k))ᵀ,

and its query q reads Sᵀ q. A chunk of tokens is done by matrices (arXiv 2406.06484): what each token writes is the
solution of a triangular system in what the others write, and the memory goes from chunk to chunk.
"""

from __future__ import annotations

import mlx.core as mx

from weightloom.plugins.layers.chunks import chunk_size, in_chunks, inverse_of_unit_lower

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
    (0 or less) and `rate` are (B, L, H); `memory` is that before the first token, None where there is none.
    """
    batch, length, heads, value_dim = values.shape
    repeats = heads // keys.shape[2]
    queries, keys = (_by_head(mx.repeat(each, repeats, axis=2)) for each in (queries, keys))
    decays, rates = (_by_head(each[..., None])[..., 0] for each in (log_decay, rate))
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
    memory = memory * mx.exp(decays)[..., None]
    written = (values - keys @ memory) * rates[..., None]
    memory = memory + keys.swapaxes(-1, -2) @ written
    return queries @ memory, memory


def _many(
    queries: mx.array, keys: mx.array, values: mx.array, decays: mx.array, rates: mx.array, memory: mx.array
) -> tuple[mx.array, mx.array]:
    """Do tokens by chunks."""
    length = keys.shape[2]
    size = chunk_size(length, _CHUNK)
    # What fills up the last chunk writes nothing and lets nothing decay.
    queries, keys, values, decays, rates = (
        in_chunks(each, size) for each in (queries, keys, values, decays[..., None], rates[..., None])
    )
    earlier = mx.tri(size, k=-1, dtype=mx.bool_)
    # Summed for each pair: differences of sums over a chunk would lose what little a late token decays.
    since = mx.cumsum(mx.where(earlier, decays, 0), axis=-2)
    between = mx.where(mx.tri(size, dtype=mx.bool_), mx.exp(since), 0)
    begun = mx.exp(mx.cumsum(decays, axis=-2))
    system = mx.where(earlier, rates * (keys @ keys.swapaxes(-1, -2)) * between, mx.eye(size))
    solution = inverse_of_unit_lower(system)
    wanted, seen = solution @ (rates * values), solution @ (rates * begun * keys)
    scores = (queries @ keys.swapaxes(-1, -2)) * between
    far, left = queries * begun, keys * between[..., -1, :, None]
    whole = begun[..., -1:, :]
    read = []
    for at in range(keys.shape[2]):
        written = wanted[:, :, at] - seen[:, :, at] @ memory
        read.append(far[:, :, at] @ memory + scores[:, :, at] @ written)
        memory = whole[:, :, at] * memory + left[:, :, at].swapaxes(-1, -2) @ written
    return mx.concatenate(read, axis=2)[:, :, :length], memory
