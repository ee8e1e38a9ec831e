"""Assigning: one to one, so that the scores add up to the most (the Hungarian method, by shortest paths)."""

from __future__ import annotations

from collections.abc import Sequence

_FAR = float("inf")


def assigned(scores: Sequence[Sequence[float]]) -> list[int]:
    """Give for each row its column, -1 for none; scores of zero or less are never taken."""
    if not scores or not scores[0]:
        return [-1] * len(scores)
    turned = len(scores) > len(scores[0])
    table = [list(column) for column in zip(*scores, strict=True)] if turned else [list(row) for row in scores]
    columns = _best([[-max(score, 0.0) for score in row] for row in table])
    taken = [column if table[row][column] > 0 else -1 for row, column in enumerate(columns)]
    if not turned:
        return taken
    back = [-1] * len(scores)
    for column, row in enumerate(taken):
        if row >= 0:
            back[row] = column
    return back


def _best(costs: Sequence[Sequence[float]]) -> list[int]:
    """Give for each row the column of an assignment of least cost; there are no more rows than columns."""
    rows, columns = len(costs), len(costs[0])
    over, under = [0.0] * (rows + 1), [0.0] * (columns + 1)
    row_of, before = [0] * (columns + 1), [0] * (columns + 1)
    for row in range(1, rows + 1):
        row_of[0], column = row, 0
        least, used = [_FAR] * (columns + 1), [False] * (columns + 1)
        while row_of[column]:
            used[column] = True
            here, step, following = row_of[column], _FAR, 0
            for other in range(1, columns + 1):
                if used[other]:
                    continue
                cost = costs[here - 1][other - 1] - over[here] - under[other]
                if cost < least[other]:
                    least[other], before[other] = cost, column
                if least[other] < step:
                    step, following = least[other], other
            for other in range(columns + 1):
                if used[other]:
                    over[row_of[other]] += step
                    under[other] -= step
                else:
                    least[other] -= step
            column = following
        while column:
            row_of[column] = row_of[before[column]]
            column = before[column]
    found = [-1] * rows
    for column in range(1, columns + 1):
        if row_of[column]:
            found[row_of[column] - 1] = column - 1
    return found
