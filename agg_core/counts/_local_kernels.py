"""Compiled layers of transitions within a reach: chances of moves by time of day, and slopes."""

from __future__ import annotations

from numba import njit

__all__ = ["add_slopes", "fill_moves"]


@njit(cache=True, nogil=True)
def fill_moves(first, dest, weight, draw, share, hours, moves):
    """Chances of moves of some times of day ``hours``, written to rows of ``moves`` (H, n + d).

    Entries ``first[i]`` to ``first[i + 1]`` of n are moves from cell i to ``dest``; ``weight`` (n,)
    is how much these draw all day, ``draw`` (H, d) a factor of each destination at a time of day,
    ``share`` (H, d) are those who leave. The last d are stays.
    """
    d, n = len(first) - 1, len(dest)
    for h in hours:
        for i in range(d):
            total = 0.0
            for at in range(first[i], first[i + 1]):
                moves[h, at] = weight[at] * draw[h, dest[at]]
                total += moves[h, at]
            scale = share[h, i] / total if total > 0 else 0.0
            for at in range(first[i], first[i + 1]):
                moves[h, at] *= scale
            moves[h, n + i] = 1 - share[h, i]


@njit(cache=True, nogil=True)
def add_slopes(first, dest, moves, slopes, share, hours, by_row, by_dest, by_leaving):
    """From slopes (H, n + d) in chances of moves to those in logits, for some times of day.

    They are added to ``by_row`` (n,), logits of moves all day, and written to ``by_dest`` and
    ``by_leaving`` (H, d), those of destinations and of leaving at a time of day.
    """
    d, n = len(first) - 1, len(dest)
    for h in hours:
        for i in range(d):
            leave = share[h, i]
            mean = 0.0
            for at in range(first[i], first[i + 1]):
                mean += moves[h, at] * slopes[h, at]
            if leave > 0:
                mean /= leave
            for at in range(first[i], first[i + 1]):
                slope = moves[h, at] * (slopes[h, at] - mean)
                by_row[at] += slope
                by_dest[h, dest[at]] += slope
            by_leaving[h, i] = leave * (1 - leave) * (mean - slopes[h, n + i])
