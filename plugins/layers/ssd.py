"""State space duality (arXiv 2405.21060): a selective scan with one rate a head, as products of matrices."""

from __future__ import annotations

import mlx.core as mx

# Tokens of a chunk are compared pair by pair: as many as a state commonly has numbers.
_CHUNK = 128


def ssd(
    x: mx.array, dt: mx.array, a: mx.array, b: mx.array, c: mx.array, state: mx.array | None = None
) -> tuple[mx.array, mx.array]:
    """Give y (B, L, H, P) and the state after the last token, (B, H, P, N), both float32.

    state[t] = exp(dt[t] a) state[t - 1] + dt[t] x[t] b[t], and y[t] = state[t] c[t], for inputs x (B, L, H, P), step
    sizes dt (B, L, H), rates a (H,), and b and c (B, L, G, N) of which each serves H / G heads in a row. Before the
    first token is `state`, or 0.
    """
    batch, length, heads, dims = x.shape
    groups, numbers = b.shape[2:]
    x, dt, b, c = (each.astype(mx.float32) for each in (x, dt, b, c))
    decay = dt * a
    # Heads by group, so that b and c are broadcast and never repeated.
    x = (x * dt[..., None]).reshape(batch, length, groups, -1, dims).transpose(0, 2, 3, 1, 4)
    decay = decay.reshape(batch, length, groups, -1).transpose(0, 2, 3, 1)
    b, c = (each.transpose(0, 2, 1, 3)[:, :, None] for each in (b, c))
    if state is None:
        state = mx.zeros((batch, heads, dims, numbers))
    state = state.reshape(batch, groups, -1, dims, numbers)
    made, step = [], _one if length == 1 else _chunk
    for start in range(0, length, _CHUNK):
        now = slice(start, start + _CHUNK)
        y, state = step(x[..., now, :], decay[..., now], b[..., now, :], c[..., now, :], state)
        made.append(y)
    y = mx.concatenate(made, axis=3).transpose(0, 3, 1, 2, 4)
    return y.reshape(batch, length, heads, dims), state.reshape(batch, heads, dims, numbers)


def _one(x: mx.array, decay: mx.array, b: mx.array, c: mx.array, state: mx.array) -> tuple[mx.array, mx.array]:
    """Do one token: x (B, G, R, 1, P), its decay (B, G, R, 1), b and c (B, G, 1, 1, N), state (B, G, R, P, N)."""
    state = mx.exp(decay)[..., None] * state + x.swapaxes(-1, -2) * b
    return (state @ c.swapaxes(-1, -2)).swapaxes(-1, -2), state


def _chunk(x: mx.array, decay: mx.array, b: mx.array, c: mx.array, state: mx.array) -> tuple[mx.array, mx.array]:
    """Do T tokens: x (B, G, R, T, P), decays (B, G, R, T), b and c (B, G, 1, T, N), state (B, G, R, P, N)."""
    total = mx.cumsum(decay, axis=-1)
    count = total.shape[-1]
    earlier = mx.arange(count)[None, :] <= mx.arange(count)[:, None]
    between = mx.where(earlier, total[..., :, None] - total[..., None, :], -mx.inf)
    scores = (c @ b.swapaxes(-1, -2)) * mx.exp(between)
    y = scores @ x + mx.exp(total)[..., None] * (c @ state.swapaxes(-1, -2))
    kept = mx.exp(total[..., -1:] - total)[..., None] * x
    return y, mx.exp(total[..., -1:])[..., None] * state + kept.swapaxes(-1, -2) @ b
