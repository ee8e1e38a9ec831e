"""The selective scan (arXiv 2312.00752): states that decay and take in, at rates of each token's own."""

from __future__ import annotations

import mlx.core as mx

from weightloom.plugins.layers.linear_recurrence import states_of

# Within a chunk all tokens are done at once, in steps that double how far back they look.
_CHUNK = 64


def selective_scan(
    x: mx.array, dt: mx.array, a: mx.array, b: mx.array, c: mx.array, state: mx.array | None = None
) -> tuple[mx.array, mx.array]:
    """Give y (B, L, D) and the state after the last token, (B, D, N), both float32.

    state[t] = exp(dt[t] a) state[t - 1] + dt[t] x[t] b[t], and y[t] = state[t] c[t], for inputs x and step sizes dt
    (B, L, D), rates a (D, N), and b and c (B, L, N). Before the first token is `state`, or 0.
    """
    x, dt, b, c = (each.astype(mx.float32) for each in (x, dt, b, c))
    if state is None:
        state = mx.zeros((x.shape[0], *a.shape))
    made = []
    for start in range(0, x.shape[1], _CHUNK):
        now = slice(start, start + _CHUNK)
        states = states_of(mx.exp(dt[:, now, :, None] * a), (dt * x)[:, now, :, None] * b[:, now, None, :], state)
        made.append((states @ c[:, now, :, None])[..., 0])
        state = states[:, -1]
    return mx.concatenate(made, axis=1), state
