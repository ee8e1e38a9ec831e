"""Linear recurrences, number by number: what is held decays by a token's factor and takes in what the token adds."""

from __future__ import annotations

import mlx.core as mx

# Within a chunk all tokens are done at once, in steps that double how far back they look.
_CHUNK = 64


def linear_recurrence(decay: mx.array, added: mx.array, state: mx.array | None = None) -> tuple[mx.array, mx.array]:
    """Give the state after each token, (B, L, ...), and after the last, (B, ...), both float32.

    state[t] = decay[t] state[t - 1] + added[t], for decays and what is added (B, L, ...). Before the first token is
    `state`, or 0.
    """
    decay, added = decay.astype(mx.float32), added.astype(mx.float32)
    last: mx.array = mx.zeros_like(added[:, 0]) if state is None else state
    made = []
    for start in range(0, added.shape[1], _CHUNK):
        now = slice(start, start + _CHUNK)
        made.append(states_of(decay[:, now], added[:, now], last))
        last = made[-1][:, -1]
    return mx.concatenate(made, axis=1), last


def states_of(decay: mx.array, added: mx.array, state: mx.array) -> mx.array:
    """Give the state after each token of a chunk, (B, T, ...); `state` (B, ...) is that before it.

    Two tokens in a row are as one that decays by both and adds both: after k steps each stands for the 2 ** k up to it.
    """
    added = mx.concatenate([added[:, :1] + decay[:, :1] * state[:, None], added[:, 1:]], axis=1)
    length, reach = decay.shape[1], 1
    while reach < length:
        later = added[:, reach:] + decay[:, reach:] * added[:, :-reach]
        added = mx.concatenate([added[:, :reach], later], axis=1)
        decay = mx.concatenate([decay[:, :reach], decay[:, reach:] * decay[:, :-reach]], axis=1)
        reach *= 2
    return added
