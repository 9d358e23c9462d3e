"""Compiled inner loops of the cavity E-step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["Links", "Paths", "cavity_of_groups"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

INNER = 2
"""Updates of both messages of an edge each time that a pass comes by."""

FALLS = 1 - 1e-6
"""Messages are damped once a sweep leaves more than this part of the disagreement before it."""

FLOOR = 1e-100
"""Least share of a normaliser that leaving out the own term may leave: then all but certain."""

LEAST, MOST = 1e-150, 1e150
"""Bounds of messages, reached only where no matching exists."""


class Links(NamedTuple):
    """Multiplicities of the tokens, and where their messages lie.

    Token i stands for ``people[i]`` people and has its F and H at
    ``entry_indptr[i] : entry_indptr[i + 1]``, counted from its sequence's first token. The
    messages between step t of sequence k and the next step observed, a matrix, start at
    ``pair_indptr[k * length + t]``. A token leaves out ``own[k]`` of a person (at most all that
    it stands for) when it asks who else could continue it.
    """

    people: FloatArray
    own: FloatArray
    entry_indptr: IntArray
    pair_indptr: IntArray


class Paths(NamedTuple):
    """The chain between observed steps: ``start[g]`` (d,) the chances of the states g steps after
    the first, ``ahead[g - 1]`` (d, d) the transitions over g steps and ``back[g - 1]`` transposed.
    """

    start: FloatArray
    ahead: FloatArray
    back: FloatArray


class Work(NamedTuple):
    """What one sequence is solved in; step s is the s-th of its ``n_steps`` observed steps.

    ``steps`` are their places among all steps, ``states[s]`` the ``n_states[s]`` states that their
    tokens can come from, ``ahead`` and ``back`` F and H. ``sent`` and ``kept`` are the forward and
    the backward messages, (n, m) an edge, those of the first edge (m, n). ``from_first`` holds what
    the tokens of the first step reach, ``from_last`` those of the last one, ``from_here`` those of
    the step between that was asked last: one row a state, one column a token.

    The rest is scratch. Of one edge: ``pair`` is E, ``turned`` and ``turned_too`` messages of
    edges between, ``total`` one number a column, ``total_of_row`` one a row, ``rest`` totals less
    own terms, ``factor``, ``alike`` and ``sent_on`` one number a token. Of counts: ``passed`` (m,
    n) and ``pull`` (n, d) where people go, ``pull_turned`` (d, n) the same, ``head``, ``after`` and
    ``whose`` the list of `_list_by_state`. ``line`` is one row of the transitions.
    """

    steps: IntArray
    states: IntArray
    n_states: IntArray
    ahead: FloatArray
    back: FloatArray
    sent: FloatArray
    kept: FloatArray
    from_first: FloatArray
    from_last: FloatArray
    from_here: FloatArray
    line: FloatArray
    pair: FloatArray
    turned: FloatArray
    turned_too: FloatArray
    total: FloatArray
    total_of_row: FloatArray
    factor: FloatArray
    alike: FloatArray
    sent_on: FloatArray
    rest: FloatArray
    passed: FloatArray
    pull: FloatArray
    pull_turned: FloatArray
    head: IntArray
    after: IntArray
    whose: IntArray


class Edge(NamedTuple):
    """Two steps observed one after the other, looked at from one of them.

    Rows are the ``n`` tokens of the step that is told something, from token ``first`` on, columns
    the ``m`` tokens of the other step, from ``other`` on, whose weights times the transitions are
    ``reached`` (states, m). ``pair`` is E, ``toward`` the messages to the rows and ``away`` those
    from them: on the way ahead 1 / den and 1 / den', on the way back the other way round.
    """

    first: int
    n: int
    other: int
    m: int
    people: FloatArray
    people_sent: FloatArray
    reached: FloatArray
    pair: FloatArray
    toward: FloatArray
    away: FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def _mark_states(tokens, at, seen, states):
    """Write the states that a step's tokens can come from; return how many."""
    n = 0
    for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
        for e in range(tokens.table_indptr[tokens.row[i]], tokens.table_indptr[tokens.row[i] + 1]):
            x = tokens.table_states[e]
            if seen[x] != at:
                seen[x] = at
                states[n] = x
                n += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _spread(states, weight, matrix, wanted, n, line):
    """``line`` = weights of a token's states times the matrix, on the n states wanted at least.

    Where these are many of all, rows of the matrix are read as they lie.
    """
    if 4 * n > line.size:
        whole = states.size - states.size % 3
        line[:] = 0.0
        for e in range(0, whole, 3):
            a, b, c = weight[e], weight[e + 1], weight[e + 2]
            one, two, three = matrix[states[e]], matrix[states[e + 1]], matrix[states[e + 2]]
            for y in range(line.size):
                line[y] += a * one[y] + b * two[y] + c * three[y]
        for e in range(whole, states.size):
            a, one = weight[e], matrix[states[e]]
            for y in range(line.size):
                line[y] += a * one[y]
        return
    for j in range(n):
        line[wanted[j]] = 0.0
    for e in range(states.size):
        a, one = weight[e], matrix[states[e]]
        if a != 0.0:
            for j in range(n):
                line[wanted[j]] += a * one[wanted[j]]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _totals(edge, total):
    """total[c] = sum over rows r of their people times E times what they sent away.

    False if somebody cannot go anywhere.
    """
    pair, away, people, n, m = edge.pair, edge.away, edge.people, edge.n, edge.m
    for c in range(m):
        total[c] = 0.0
    for r in range(n):
        for c in range(m):
            total[c] += people[r] * (pair[r, c] * away[r, c])
    least = np.inf
    for c in range(m):
        least = total[c] if total[c] < least else least
    return least > 0.0


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _totals_of_rows(edge, total):
    """total[r] = sum over columns c of their people times E times what is sent to r.

    False if somebody can come from nowhere.
    """
    pair, toward, people, n, m = edge.pair, edge.toward, edge.people_sent, edge.n, edge.m
    least = np.inf
    for r in range(n):
        value = 0.0
        for c in range(m):
            value += people[c] * (pair[r, c] * toward[r, c])
        total[r] = value
        least = value if value < least else least
    return least > 0.0


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _renew(rest, old, n, m, damped):
    """Messages ``old`` (n, m) renewed, 1 / den."""
    if damped:
        for r in range(n):
            for c in range(m):
                value = np.sqrt(1.0 / rest[r, c]) * np.sqrt(old[r, c])
                value = value if value > LEAST else LEAST
                old[r, c] = value if value < MOST else MOST
        return
    for r in range(n):
        for c in range(m):
            value = 1.0 / rest[r, c]
            value = value if value > LEAST else LEAST
            old[r, c] = value if value < MOST else MOST


# A total less the own term loses digits where that is more than half of it, which is so of one at
# most: there what is left is added up without it.


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _renew_toward(edge, own, damped, total, work):
    """The messages to the rows, from the `_totals` of the columns."""
    pair, away, toward = edge.pair, edge.away, edge.toward
    people, people_sent, n, m = edge.people, edge.people_sent, edge.n, edge.m
    others, rest = work.alike, work.rest
    for c in range(m):
        others[c] = 0.0
    for r in range(n):
        at_most = min(own, people[r])
        for c in range(m):
            left_out = at_most if at_most < people_sent[c] else people_sent[c]
            term = pair[r, c] * away[r, c]
            large = 2.0 * left_out * term > total[c]
            others[c] += (people[r] - left_out if large else people[r]) * term
    for r in range(n):
        at_most = min(own, people[r])
        for c in range(m):
            left_out = at_most if at_most < people_sent[c] else people_sent[c]
            term = left_out * (pair[r, c] * away[r, c])
            least, left = FLOOR * total[c], total[c] - term
            left = others[c] if 2.0 * term > total[c] else left
            rest[r, c] = left if left > least else least
    _renew(rest, toward, n, m, damped)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _renew_away(edge, own, damped, total_of_row, work):
    """The messages from the rows, from the totals of these."""
    pair, away, toward = edge.pair, edge.away, edge.toward
    people, people_sent, n, m = edge.people, edge.people_sent, edge.n, edge.m
    rest = work.rest
    for r in range(n):
        at_most, others, all_of_row = min(own, people[r]), 0.0, total_of_row[r]
        least = FLOOR * all_of_row
        for c in range(m):
            left_out = at_most if at_most < people_sent[c] else people_sent[c]
            term = pair[r, c] * toward[r, c]
            large = 2.0 * left_out * term > all_of_row
            others += (people_sent[c] - left_out if large else people_sent[c]) * term
        for c in range(m):
            left_out = at_most if at_most < people_sent[c] else people_sent[c]
            term = left_out * (pair[r, c] * toward[r, c])
            left = others if 2.0 * term > all_of_row else all_of_row - term
            rest[r, c] = left if left > least else least
    _renew(rest, away, n, m, damped)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _disagreement(edge, total, total_of_row, factor):
    """L1 distance, in shares, between the matchings that either side's messages imply."""
    pair, away, toward, people, people_sent = (
        edge.pair, edge.away, edge.toward, edge.people, edge.people_sent
    )  # fmt: skip
    n, m = edge.n, edge.m
    distance = everybody = 0.0
    for c in range(m):
        factor[c] = 1.0 / total[c]
        everybody += people_sent[c]
    for r in range(n):
        part, even = 0.0, 1.0 / total_of_row[r]
        for c in range(m):
            apart = away[r, c] * factor[c] - toward[r, c] * even
            part += people_sent[c] * (pair[r, c] * abs(apart))
        distance += people[r] * part
    return distance / everybody


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(edge, own, damped, begun, ahead, work):
    """Renew the messages of an edge; how far they disagreed before, inf: no matching exists.

    At the first visit (not ``begun``) the forward messages are not known yet.
    """
    total, of_row = work.total, work.total_of_row
    if not begun:
        if ahead:
            if not _totals(edge, total):
                return np.inf
            _renew_toward(edge, own, False, total, work)
        else:
            if not _totals_of_rows(edge, of_row):
                return np.inf
            _renew_away(edge, own, False, of_row, work)
    if not (_totals(edge, total) and _totals_of_rows(edge, of_row)):
        return np.inf
    apart = _disagreement(edge, total, of_row, work.factor)
    for again in range(INNER):
        if again and not _totals(edge, total):
            return np.inf
        _renew_toward(edge, own, damped, total, work)
        if not _totals_of_rows(edge, of_row):
            return np.inf
        _renew_away(edge, own, damped, of_row, work)
    return apart


@njit(cache=True, nogil=True, error_model="numpy")
def _weight_of(tokens, links, work, i, weights):
    """The part of ``weights`` (F or H of a sequence) that belongs to token i."""
    base = links.entry_indptr[tokens.indptr[work.steps[0]]]
    return weights[links.entry_indptr[i] - base : links.entry_indptr[i + 1] - base]


@njit(cache=True, nogil=True, error_model="numpy")
def _states_of(tokens, i):
    row = tokens.row[i]
    return tokens.table_states[tokens.table_indptr[row] : tokens.table_indptr[row + 1]]


@njit(cache=True, nogil=True, error_model="numpy")
def _likelihood_of(tokens, i):
    row = tokens.row[i]
    return tokens.table_values[tokens.table_indptr[row] : tokens.table_indptr[row + 1]]


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(rows, n, m, turned):
    """The transpose of a matrix (n, m) that lies in the beginning of ``rows``, in another."""
    for r in range(n):
        for c in range(m):
            turned[c * n + r] = rows[r * m + c]


@njit(cache=True, nogil=True, error_model="numpy")
def _shape_of(tokens, work, s):
    """Tokens of an edge's first step and of its second."""
    at, after = work.steps[s], work.steps[s + 1]
    return (
        tokens.indptr[at + 1] - tokens.indptr[at], tokens.indptr[after + 1] - tokens.indptr[after]
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _messages_at(tokens, links, work, s):
    """Where the messages of an edge are among those of the sequence."""
    n, m = _shape_of(tokens, work, s)
    first = links.pair_indptr[work.steps[s]] - links.pair_indptr[work.steps[0]]
    return first, first + n * m


@njit(cache=True, nogil=True, error_model="numpy")
def _edge_ahead(tokens, links, work, s, reached):
    """The edge from the s-th observed step to the next, looked at from the next."""
    n, m = _shape_of(tokens, work, s)
    other, first = tokens.indptr[work.steps[s]], tokens.indptr[work.steps[s + 1]]
    begin, end = _messages_at(tokens, links, work, s)
    toward, away = work.sent[begin:end], work.kept[begin:end]
    if s > 0:
        _turn(toward, n, m, work.turned)
        _turn(away, n, m, work.turned_too)
        toward, away = work.turned[: n * m], work.turned_too[: n * m]
    return Edge(
        first, m, other, n, links.people[first : first + m], links.people[other : other + n],
        reached, work.pair[: n * m].reshape(m, n), toward.reshape(m, n),
        away.reshape(m, n),
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _keep_ahead(tokens, links, work, s):
    """Put the messages of an edge that was looked at from its second step where they belong."""
    if s > 0:
        n, m = _shape_of(tokens, work, s)
        begin, end = _messages_at(tokens, links, work, s)
        _turn(work.turned, m, n, work.sent[begin:end])
        _turn(work.turned_too, m, n, work.kept[begin:end])


@njit(cache=True, nogil=True, error_model="numpy")
def _edge_back(tokens, links, work, s, reached):
    """The same edge, not the first, looked at from its own step."""
    n, m = _shape_of(tokens, work, s)
    first, other = tokens.indptr[work.steps[s]], tokens.indptr[work.steps[s + 1]]
    begin, end = _messages_at(tokens, links, work, s)
    return Edge(
        first, n, other, m, links.people[first : first + n], links.people[other : other + m],
        reached, work.pair[: n * m].reshape(n, m),
        work.kept[begin:end].reshape(n, m), work.sent[begin:end].reshape(n, m),
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(tokens, links, work, start):
    """F of the first observed step; returns the sum of c_u log of its scale, -inf: impossible."""
    at, log_scale = work.steps[0], 0.0
    for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
        weight, states = _weight_of(tokens, links, work, i, work.ahead), _states_of(tokens, i)
        likelihood, scale = _likelihood_of(tokens, i), 0.0
        for e in range(states.size):
            weight[e] = likelihood[e] * start[states[e]]
            scale += weight[e]
        if scale > 0.0:
            weight /= scale
        log_scale += links.people[i] * np.log(scale)
    return log_scale


@njit(cache=True, nogil=True, error_model="numpy")
def _end(tokens, links, work, n_steps):
    """H of the last observed step."""
    at = work.steps[n_steps - 1]
    for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
        likelihood = _likelihood_of(tokens, i)
        weight = _weight_of(tokens, links, work, i, work.back)
        weight[:] = likelihood / likelihood.sum()


@njit(cache=True, nogil=True, error_model="numpy")
def _reach(tokens, links, work, weights, matrix, s, to, reached):
    """``reached[x, i]`` = weights of the i-th token of step s times the matrix, at step ``to``."""
    at, wanted, n = work.steps[s], work.states[to], work.n_states[to]
    first = tokens.indptr[at]
    for i in range(first, tokens.indptr[at + 1]):
        weight = _weight_of(tokens, links, work, i, weights)
        _spread(_states_of(tokens, i), weight, matrix, wanted, n, work.line)
        for j in range(n):
            reached[wanted[j], i - first] = work.line[wanted[j]]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _pair(tokens, links, work, edge, weights):
    """E of an edge, from the weights of its rows."""
    base = links.entry_indptr[tokens.indptr[work.steps[0]]]
    indptr, states, row, at = tokens.table_indptr, tokens.table_states, tokens.row, edge.first
    first, pair, reached, m = links.entry_indptr, edge.pair, edge.reached, edge.m
    for r in range(edge.n):
        e0, w0 = indptr[row[at + r]], first[at + r] - base
        size = indptr[row[at + r] + 1] - e0
        whole = size - size % 3
        for c in range(m):
            pair[r, c] = 0.0
        for e in range(0, whole, 3):
            a, b, d = weights[w0 + e], weights[w0 + e + 1], weights[w0 + e + 2]
            x, y, z = states[e0 + e], states[e0 + e + 1], states[e0 + e + 2]
            for c in range(m):
                pair[r, c] += a * reached[x, c] + b * reached[y, c] + d * reached[z, c]
        for e in range(whole, size):
            a, x = weights[w0 + e], states[e0 + e]
            for c in range(m):
                pair[r, c] += a * reached[x, c]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _push(tokens, links, work, edge, weights, scale):
    """Weights of the rows: likelihood times what the others' people reach, by the messages.

    They are made to sum to 1; ``scale`` (n,) is what they summed to. False if one has no state
    left.
    """
    base = links.entry_indptr[tokens.indptr[work.steps[0]]]
    indptr, states, row, at = tokens.table_indptr, tokens.table_states, tokens.row, edge.first
    first, likelihood, factor = links.entry_indptr, tokens.table_values, work.factor
    reached, m, people_sent, toward = edge.reached, edge.m, edge.people_sent, edge.toward
    least = np.inf
    for r in range(edge.n):
        e0, w0 = indptr[row[at + r]], first[at + r] - base
        size, total = indptr[row[at + r] + 1] - e0, 0.0
        for c in range(m):
            factor[c] = people_sent[c] * toward[r, c]
        for e in range(size):
            x, value = states[e0 + e], 0.0
            for c in range(m):
                value += factor[c] * reached[x, c]
            weights[w0 + e] = value * likelihood[e0 + e]
            total += weights[w0 + e]
        even = 1.0 / total if total > 0.0 else 0.0
        for e in range(size):
            weights[w0 + e] *= even
        scale[r] = total
        least = total if total < least else least
    return least > 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _gap(work, s):
    """Steps from one observed step to the next, less one."""
    return work.steps[s + 1] - work.steps[s] - 1


@njit(cache=True, nogil=True, error_model="numpy")
def _seen_ahead(tokens, links, work, paths, s):
    """An edge looked at from its second step, with E."""
    reached = work.from_first if s == 0 else work.from_here
    if s > 0:
        _reach(tokens, links, work, work.ahead, paths.ahead[_gap(work, s)], s, s + 1, reached)
    edge = _edge_ahead(tokens, links, work, s, reached)
    _pair(tokens, links, work, edge, work.back)
    return edge


@njit(cache=True, nogil=True, error_model="numpy")
def _seen_back(tokens, links, work, paths, s, is_last):
    """An edge, not the first, looked at from its first step."""
    reached = work.from_last if is_last else work.from_here
    if not is_last:
        _reach(tokens, links, work, work.back, paths.back[_gap(work, s)], s + 1, s, reached)
    return _edge_back(tokens, links, work, s, reached)


@njit(cache=True, nogil=True, error_model="numpy")
def _recall(tokens, links, work, paths, last):
    """H of every step but the first from backward messages as they are; false if none is left."""
    for s in range(last, 0, -1):
        edge = _seen_back(tokens, links, work, paths, s, s == last)
        if not _push(tokens, links, work, edge, work.back, work.total):
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _sweep(tokens, links, work, paths, last, own, damped, begun):
    """Ahead over all edges but the last, back over all but the first; the largest disagreement.

    What the tokens of the first and of the last step reach does not change, and neither does E
    where a sweep turns: these edges are visited once.
    """
    worst = 0.0
    for s in range(max(last, 1)):
        edge = _seen_ahead(tokens, links, work, paths, s)
        worst = max(worst, _settle(edge, own, damped, begun, True, work))
        if not worst < np.inf:
            return np.inf
        _keep_ahead(tokens, links, work, s)
        if s < last and not _push(tokens, links, work, edge, work.ahead, work.total):
            return np.inf
    for s in range(last, 0, -1):
        edge = _seen_back(tokens, links, work, paths, s, s == last)
        _pair(tokens, links, work, edge, work.ahead)
        worst = max(worst, _settle(edge, own, damped, begun or s < last, False, work))
        if not (worst < np.inf and _push(tokens, links, work, edge, work.back, work.total)):
            return np.inf
    return worst


@njit(cache=True, nogil=True, error_model="numpy")
def _pull_on(tokens, links, work, s, passed, wide):
    """pull[u, y] = sum over v of ``passed[v, u]`` H_v(y), on the states of the next step.

    Where these are many of all, the others are 0.
    """
    pull, turned, states, n = work.pull, work.pull_turned, work.states, work.n_states[s + 1]
    m, n_people = passed.shape
    for j in range(n):
        for u in range(n_people):
            turned[states[s + 1, j], u] = 0.0
    first = tokens.indptr[work.steps[s + 1]]
    w = links.entry_indptr[first] - links.entry_indptr[tokens.indptr[work.steps[0]]]
    for v in range(m):
        row = tokens.row[first + v]
        for e in range(tokens.table_indptr[row], tokens.table_indptr[row + 1]):
            y, weight = tokens.table_states[e], work.back[w]
            for u in range(n_people):
                turned[y, u] += weight * passed[v, u]
            w += 1
    if wide:
        pull[:n_people] = 0.0
    for j in range(n):
        y = states[s + 1, j]
        for u in range(n_people):
            pull[u, y] = turned[y, u]


@njit(cache=True, nogil=True, error_model="numpy")
def _list_by_state(tokens, work, s):
    """Link the entries of a step's tokens by state: ``head[x]`` the first, ``after`` the next."""
    at, states = work.steps[s], work.states[s]
    for j in range(work.n_states[s]):
        work.head[states[j]] = -1
    n, first = 0, tokens.indptr[at]
    for i in range(first, tokens.indptr[at + 1]):
        for e in range(tokens.table_indptr[tokens.row[i]], tokens.table_indptr[tokens.row[i] + 1]):
            x = tokens.table_states[e]
            work.after[n], work.head[x] = work.head[x], n
            work.whose[n] = i - first
            n += 1


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _move(tokens, links, work, s, wide, matrix, counted, moves, people):
    """Add to ``moves`` (without the factor A) where the people of a step go, state by state.

    Where they are ``counted``, ``people`` is how many there are by entry.
    """
    d, at = work.line.size, work.steps[s]
    base = links.entry_indptr[tokens.indptr[work.steps[0]]]
    w0 = links.entry_indptr[tokens.indptr[at]] - base
    pull, weights, wanted, n = work.pull, work.ahead, work.states[s + 1], work.n_states[s + 1]
    for i in range(work.n_states[s]):
        x = work.states[s, i]
        e = work.head[x]
        while e >= 0:
            u, value, total = work.whose[e], weights[w0 + e], 0.0
            if wide:
                for y in range(d):
                    moves[x, y] += value * pull[u, y]
                for y in range(d if counted else 0):
                    total += matrix[x, y] * pull[u, y]
            elif value != 0.0:
                for j in range(n):
                    moves[x, wanted[j]] += value * pull[u, wanted[j]]
                for j in range(n if counted else 0):
                    total += matrix[x, wanted[j]] * pull[u, wanted[j]]
            if counted:
                people[e] = value * total
            e = work.after[e]


@njit(cache=True, nogil=True, error_model="numpy")
def _energy(people, total, people_to, ahead, pair_away, own):
    """What one token u adds to log p by an edge.

    c_u log total_u - sum over v of c_u c_v / e log(1 + e odds_uv), of 1 / den_uv (``ahead``) and
    E_uv / den'_uv. Logarithms of single people, who leave out the same, are taken of a product.
    """
    value, product, alike = people * np.log(total), 1.0, min(own, people, 1.0)
    for v in range(people_to.size):
        left_out = min(own, people, people_to[v])
        if left_out > 0.0 and people_to[v] == 1.0:
            product *= ahead[v] * total
            if product > 1e100:  # no factor is larger than that
                value -= people / alike * np.log(product)
                product = 1.0
        elif left_out > 0.0:
            value -= people * people_to[v] * np.log(ahead[v] * total) / left_out
        else:
            value -= people * people_to[v] * pair_away[v] / total
    return value - people / alike * np.log(product) if alike > 0.0 else value


@njit(cache=True, nogil=True, error_model="numpy")
def _place(tokens, work, s, people, start, emission, sums):
    """Book the people of a step by state: under their row of the table, and in ``sums``.

    Either may be empty, then it is left alone; ``sums`` is without the factor ``start``, if there
    is one.
    """
    at, n = work.steps[s], 0
    for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
        for e in range(tokens.table_indptr[tokens.row[i]], tokens.table_indptr[tokens.row[i] + 1]):
            x = tokens.table_states[e]
            if emission.size:
                emission[e] += people[n]
            if sums.size and people[n] > 0.0:
                sums[x] += people[n] / start[x] if start.size else people[n]
            n += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _push_scale(tokens, links, work, edge):
    """`_push` ahead; returns the sum of c_v log of what weights summed to, -inf: impossible."""
    scale, log_scale = work.total_of_row, 0.0
    if not _push(tokens, links, work, edge, work.ahead, scale):
        return -np.inf
    for r in range(edge.n):
        log_scale += edge.people[r] * np.log(scale[r])
    return log_scale


@njit(cache=True, nogil=True, error_model="numpy")
def _last_scale(tokens, edge, total):
    """What `_push_scale` would return of the last edge, which was looked at from its first step."""
    log_scale = 0.0
    if not _totals(edge, total):
        return -np.inf
    for c in range(edge.m):
        likelihood = _likelihood_of(tokens, edge.other + c)
        log_scale += edge.people_sent[c] * np.log(likelihood.sum() * total[c])
    return log_scale


@njit(cache=True, nogil=True, error_model="numpy")
def _pass_on(tokens, links, work, s, edge, ahead, total, own, wide):
    """Where the people of each token u of an edge's first step are pulled, of its ``total`` (u,).

    The edge is looked at on the way ``ahead`` or back. Returns what it adds to log p.
    """
    n, m = (edge.m, edge.n) if ahead else (edge.n, edge.m)
    people = edge.people_sent if ahead else edge.people
    people_to = edge.people if ahead else edge.people_sent
    passed = work.passed[: n * m].reshape(m, n)
    pair_away, sent, log_p = work.alike[:m], work.sent_on[:m], 0.0
    for u in range(n):
        even = people[u] / total[u]
        for v in range(m):
            if ahead:
                message, pair, sent[v] = edge.away[v, u], edge.pair[v, u], edge.toward[v, u]
            else:
                message, pair, sent[v] = edge.toward[u, v], edge.pair[u, v], edge.away[u, v]
            passed[v, u], pair_away[v] = even * (people_to[v] * message), pair * message
        log_p += _energy(people[u], total[u], people_to, sent, pair_away, own)
    _pull_on(tokens, links, work, s, passed, wide)
    return log_p


@njit(cache=True, nogil=True, error_model="numpy")
def _stay(tokens, links, work, n_steps, start, emission, sums, ends, here):
    """Book the people of the last step, from F; ``sums`` are those of the start if it is alone."""
    at, n = work.steps[n_steps - 1], 0
    for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
        weight = _weight_of(tokens, links, work, i, work.ahead)
        for e in range(weight.size):
            here[n] = links.people[i] * weight[e]
            n += 1
    nothing = np.empty(0)
    if n_steps == 1:
        _place(tokens, work, 0, here, start, emission, sums)
        _place(tokens, work, 0, here, nothing, nothing, ends)
    else:
        _place(tokens, work, n_steps - 1, here, nothing, emission, ends)


@njit(cache=True, nogil=True, error_model="numpy")
def _collect(
    tokens, links, work, paths, k, n_steps, own, starts, moves, ends, emission, here
):  # fmt: skip
    """Add the expected counts of one sequence, H held still; return log p less its constant.

    The forward pass is made again with the final H, and token u shares out its people by
    c_v (E_uv / den'_uv) / total_u: nobody is lost, and moves start where people are. F of the last
    step is left out where nobody asks for it.
    """
    lead = work.steps[0] - k * tokens.length
    trail = (k + 1) * tokens.length - 1 - work.steps[n_steps - 1]
    start, nothing, last = paths.start[lead], np.empty(0), n_steps - 2
    asked = emission.size > 0 or trail > 0 or n_steps == 1
    log_p = _begin(tokens, links, work, start)
    for s in range(n_steps - 1):
        ahead, wide = asked or s == 0 or s < last, 4 * work.n_states[s + 1] > tokens.n_states
        if ahead:
            edge, total = _seen_ahead(tokens, links, work, paths, s), work.total
            possible = _totals(edge, total)
            _renew_toward(edge, own, False, total, work)
        else:
            edge, total = _seen_back(tokens, links, work, paths, s, True), work.total_of_row
            _pair(tokens, links, work, edge, work.ahead)
            possible = _totals_of_rows(edge, total)
            _renew_away(edge, own, False, total, work)
        if not (log_p > -np.inf and possible):
            return np.nan
        log_p += _pass_on(tokens, links, work, s, edge, ahead, total, own, wide)
        _list_by_state(tokens, work, s)
        counted = s == 0 or emission.size > 0
        _move(
            tokens, links, work, s, wide, paths.ahead[_gap(work, s)], counted,
            moves[_gap(work, s)], here,
        )  # fmt: skip
        if s == 0:
            _place(tokens, work, s, here, start, emission, starts[lead])
        elif counted:
            _place(tokens, work, s, here, nothing, emission, nothing)
        log_p += (
            _push_scale(tokens, links, work, edge)
            if ahead
            else _last_scale(tokens, edge, work.total)
        )
    if asked:
        _stay(tokens, links, work, n_steps, start, emission, starts[lead], ends[trail], here)
    return log_p


@njit(cache=True, nogil=True, error_model="numpy")
def _look(tokens, k, seen, work):
    """Note the observed steps of sequence k and their states; return how many steps."""
    n_steps = 0
    for at in range(k * tokens.length, (k + 1) * tokens.length):
        if tokens.indptr[at + 1] > tokens.indptr[at]:
            work.steps[n_steps] = at
            work.n_states[n_steps] = _mark_states(tokens, at, seen, work.states[n_steps])
            n_steps += 1
    return n_steps


@njit(cache=True, nogil=True, error_model="numpy")
def _exchange(tokens, links, work, messages, last, into):
    """Copy backward messages of a sequence into its work, or out of it; the first edge is turned.

    What is copied in of the first edge lies (m, n) there.
    """
    base = links.pair_indptr[work.steps[0]]
    for s in range(last + 1):
        begin, end = _messages_at(tokens, links, work, s)
        n, m = _shape_of(tokens, work, s)
        known, own = messages[base + begin : base + end], work.kept[begin:end]
        if s == 0 and into:
            _turn(known, n, m, own)
        elif s == 0:
            _turn(own, m, n, known)
        elif into:
            own[:] = known
        else:
            known[:] = own


@njit(cache=True, nogil=True, error_model="numpy")
def _solve(tokens, links, work, paths, messages, k, n_steps, own, warm, tol, max_sweeps, may_damp):
    """Sweep until the two sides of every edge agree; returns sweeps and the last disagreement."""
    lead, last = work.steps[0] - k * tokens.length, n_steps - 2
    if not _begin(tokens, links, work, paths.start[lead]) > -np.inf:
        return 1, np.inf
    if last < 0:
        return 1, 0.0
    if not warm:
        first = links.pair_indptr[work.steps[0]]
        messages[first : links.pair_indptr[work.steps[n_steps - 1]]] = 1.0
    _exchange(tokens, links, work, messages, last, True)
    _end(tokens, links, work, n_steps)
    _reach(tokens, links, work, work.ahead, paths.ahead[_gap(work, 0)], 0, 1, work.from_first)
    if last > 0:
        _reach(
            tokens, links, work, work.back, paths.back[_gap(work, last)], n_steps - 1, last,
            work.from_last,
        )  # fmt: skip
    if not _recall(tokens, links, work, paths, last):
        return 0, np.inf
    worst, before, done, damped = np.inf, np.inf, 0, False
    while done < max_sweeps:
        worst = _sweep(tokens, links, work, paths, last, own, damped, done > 0)
        done += 1
        if not tol < worst < np.inf:
            break
        damped = damped or (may_damp and worst > FALLS * before)
        before = worst
    _exchange(tokens, links, work, messages, last, False)
    return done, worst


@njit(cache=True, nogil=True, error_model="numpy")
def cavity_of_groups(
    tokens, links, paths, messages, warm, tol, max_sweeps, with_emission, n_ends, may_damp
):
    """Cavity E-step of every sequence on its own support.

    ``messages`` (the backward ones) are the state of the iteration and renewed in place. Returns
    sums by the gap before or after (starts, moves, ends), emission, log p less its constant,
    sweeps, sequences that reached the limit of them, and the first that cannot happen or -1.
    """
    d, length, n_sequences = tokens.n_states, tokens.length, tokens.sizes.size
    starts = np.zeros((paths.start.shape[0], d))
    moves = np.zeros((paths.ahead.shape[0], d, d))
    ends = np.zeros((n_ends, d))
    emission = np.zeros(tokens.table_values.size if with_emission else 0)
    log_p, sweeps, unconverged = 0.0, 0, 0
    most_tokens = np.max(np.diff(tokens.indptr))
    bounds = tokens.indptr[::length].copy()
    most_entries = np.max(np.diff(links.entry_indptr[bounds]))
    most_pairs = np.max(np.diff(links.pair_indptr[::length].copy()))
    work = Work(
        np.empty(length, dtype=np.int64), np.empty((length, d), dtype=np.int64),
        np.empty(length, dtype=np.int64), np.empty(most_entries), np.empty(most_entries),
        np.empty(most_pairs), np.empty(most_pairs), np.empty((d, most_tokens)),
        np.empty((d, most_tokens)), np.empty((d, most_tokens)), np.empty(d),
        np.empty(most_tokens**2), np.empty(most_tokens**2), np.empty(most_tokens**2),
        np.empty(most_tokens), np.empty(most_tokens), np.empty(most_tokens),
        np.empty(most_tokens), np.empty(most_tokens), np.empty((most_tokens, most_tokens)),
        np.empty(most_tokens**2), np.empty((most_tokens, d)), np.empty((d, most_tokens)),
        np.empty(d, dtype=np.int64),
        np.empty(most_entries, dtype=np.int64), np.empty(most_entries, dtype=np.int64),
    )  # fmt: skip
    seen = np.full(d, -1, dtype=np.int64)
    here = np.empty(most_entries)
    for k in range(n_sequences):
        n_steps = _look(tokens, k, seen, work)
        done, worst = _solve(
            tokens, links, work, paths, messages, k, n_steps, links.own[k], warm, tol,
            max_sweeps, may_damp,
        )  # fmt: skip
        sweeps += done
        unconverged += worst > tol
        value = np.nan
        if worst < np.inf:
            value = _collect(
                tokens, links, work, paths, k, n_steps, links.own[k],
                starts, moves, ends, emission, here,
            )  # fmt: skip
        if not np.isfinite(value):
            return starts, moves, ends, emission, log_p, sweeps, unconverged, k
        log_p += value
    return starts, moves, ends, emission, log_p, sweeps, unconverged, -1
