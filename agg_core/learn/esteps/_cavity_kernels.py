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

    ``steps`` are their places among all steps, ``states`` what their tokens can come from,
    ``ahead`` and ``back`` F and H, ``sent`` the forward messages (the backward ones are kept for
    later calls). The rest is scratch for one edge.
    """

    steps: IntArray
    states: IntArray
    n_states: IntArray
    ahead: FloatArray
    back: FloatArray
    sent: FloatArray
    reached: FloatArray
    pair: FloatArray
    total: FloatArray
    total_back: FloatArray
    pull: FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def _mark_states(tokens, at, seen, states):
    """Write the states that a step's tokens can come from; return how many.

    Where they are many of all, all are taken: rows of the matrix are then read as they lie.
    """
    n = 0
    for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
        for e in range(tokens.table_indptr[tokens.row[i]], tokens.table_indptr[tokens.row[i] + 1]):
            x = tokens.table_states[e]
            if seen[x] != at:
                seen[x] = at
                states[n] = x
                n += 1
    if 4 * n <= tokens.n_states:
        return n
    for x in range(tokens.n_states):
        states[x] = x
    return tokens.n_states


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _meet(states, weight, reached, n, met):
    """met[i] = sum over the states of a token of its weight times what i reaches."""
    for i in range(n):
        total = 0.0
        for e in range(states.size):
            total += weight[e] * reached[i, states[e]]
        met[i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _spread(states, weight, matrix, wanted, n, reached):
    """``reached`` = weights of a token's states times the matrix, on the n states wanted."""
    if n == reached.size:
        reached[:] = 0.0
        for e in range(states.size):
            value, line = weight[e], matrix[states[e]]
            for y in range(reached.size):
                reached[y] += value * line[y]
        return
    for j in range(n):
        reached[wanted[j]] = 0.0
    for e in range(states.size):
        value, line = weight[e], matrix[states[e]]
        if value != 0.0:
            for j in range(n):
                reached[wanted[j]] += value * line[wanted[j]]


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(states, people, message, reached, likelihood, weight):
    """New weights of a token from what the tokens i of the other step send.

    They are made to sum to 1; returns what they summed to.
    """
    weight[:] = 0.0
    for i in range(people.size):
        factor = people[i] * message[i]
        for e in range(states.size):
            weight[e] += factor * reached[i, states[e]]
    total = 0.0
    for e in range(states.size):
        weight[e] *= likelihood[e]
        total += weight[e]
    if total > 0.0:
        weight /= total
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _totals(pair, back, people, total):
    """total[u] = sum over v of c_v E_uv / den'_uv; false if somebody cannot go anywhere."""
    for u in range(pair.shape[0]):
        value = 0.0
        for v in range(pair.shape[1]):
            value += people[v] * pair[u, v] * back[u, v]
        total[u] = value
        if not value > 0.0:
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _totals_back(pair, ahead, people, total):
    """total[v] = sum over u of c_u E_uv / den_uv; false if somebody can come from nowhere."""
    total[: pair.shape[1]] = 0.0
    for u in range(pair.shape[0]):
        for v in range(pair.shape[1]):
            total[v] += people[u] * pair[u, v] * ahead[u, v]
    return total[: pair.shape[1]].min() > 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _rest(terms, people, v, own):
    """A total less the own term, added up without it where the difference would lose digits.

    That is at one v at most, which holds more than half of the total.
    """
    rest = (people[v] - own) * terms[v]
    for w in range(terms.size):
        if w != v:
            rest += people[w] * terms[w]
    return rest


@njit(cache=True, nogil=True, error_model="numpy")
def _message(rest, total, old, damped):
    """1 / den, damped if asked for."""
    value = 1.0 / max(rest, FLOOR * total)
    if damped:
        value = np.sqrt(value) * np.sqrt(old)
    return min(max(value, LEAST), MOST)


@njit(cache=True, nogil=True, error_model="numpy")
def _renew_ahead(edge, own, damped, work):
    """1 / den of every pair of an edge; false if somebody cannot go anywhere."""
    if not _totals(edge.pair, edge.back, edge.people_next, work.total):
        return False
    for u in range(edge.n):
        total = work.total[u]
        for v in range(edge.m):
            left_out = min(own, edge.people[u], edge.people_next[v])
            mine = left_out * edge.pair[u, v] * edge.back[u, v]
            rest = total - mine
            if mine > 0.5 * total:
                rest = _rest(edge.pair[u] * edge.back[u], edge.people_next, v, left_out)
            edge.ahead[u, v] = _message(rest, total, edge.ahead[u, v], damped)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _renew_back(edge, own, damped, work):
    """1 / den' of every pair of an edge; false if somebody can come from nowhere."""
    if not _totals_back(edge.pair, edge.ahead, edge.people, work.total_back):
        return False
    for u in range(edge.n):
        for v in range(edge.m):
            total = work.total_back[v]
            left_out = min(own, edge.people[u], edge.people_next[v])
            mine = left_out * edge.pair[u, v] * edge.ahead[u, v]
            rest = total - mine
            if mine > 0.5 * total:
                rest = _rest(edge.pair[:, v] * edge.ahead[:, v], edge.people, u, left_out)
            edge.back[u, v] = _message(rest, total, edge.back[u, v], damped)
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _disagreement(edge, work):
    """L1 distance, in shares, between the matchings that either side's messages imply."""
    total, total_back = work.total, work.total_back
    if not _totals(edge.pair, edge.back, edge.people_next, total):
        return np.inf
    if not _totals_back(edge.pair, edge.ahead, edge.people, total_back):
        return np.inf
    total_back[: edge.m] = 1.0 / total_back[: edge.m]
    distance = 0.0
    for u in range(edge.n):
        weight = 1.0 / total[u]
        part = 0.0
        for v in range(edge.m):
            apart = edge.back[u, v] * weight - edge.ahead[u, v] * total_back[v]
            part += edge.people_next[v] * edge.pair[u, v] * abs(apart)
        distance += edge.people[u] * part
    return distance / edge.people.sum()


class Edge(NamedTuple):
    """Two steps observed one after the other: n tokens, m tokens, and what links them.

    ``pair`` is E, ``ahead`` 1 / den and ``back`` 1 / den', all (n, m).
    """

    here: int
    n: int
    there: int
    m: int
    people: FloatArray
    people_next: FloatArray
    gap: int
    pair: FloatArray
    ahead: FloatArray
    back: FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def _edge(tokens, links, work, messages, s):
    """The edge from the s-th observed step to the next."""
    at, after = work.steps[s], work.steps[s + 1]
    here, end = tokens.indptr[at], tokens.indptr[at + 1]
    there, stop = tokens.indptr[after], tokens.indptr[after + 1]
    n, m = end - here, stop - there
    first = links.pair_indptr[at]
    own_first = first - links.pair_indptr[work.steps[0]]
    return Edge(
        here, n, there, m, links.people[here:end], links.people[there:stop], after - at,
        work.pair[: n * m].reshape(n, m),
        work.sent[own_first : own_first + n * m].reshape(n, m),
        messages[first : first + n * m].reshape(n, m),
    )  # fmt: skip


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
def _begin(tokens, links, work, start):
    """F of the first observed step; returns the sum of c_u log of its scale, -inf: impossible."""
    at, log_scale = work.steps[0], 0.0
    one, sent = np.ones(1), start.reshape(1, start.size)
    for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
        weight = _weight_of(tokens, links, work, i, work.ahead)
        scale = _gather(_states_of(tokens, i), one, one, sent, _likelihood_of(tokens, i), weight)
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
def _reach_ahead(tokens, links, work, paths, edge, s):
    """N_u = F_u A of every token of an edge's first step."""
    matrix = paths.ahead[edge.gap - 1]
    for u in range(edge.n):
        i = edge.here + u
        weight = _weight_of(tokens, links, work, i, work.ahead)
        _spread(
            _states_of(tokens, i), weight, matrix, work.states[s + 1], work.n_states[s + 1],
            work.reached[u],
        )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _reach_back(tokens, links, work, paths, edge, s):
    """A H_v of every token of an edge's second step."""
    matrix = paths.back[edge.gap - 1]
    for v in range(edge.m):
        i = edge.there + v
        weight = _weight_of(tokens, links, work, i, work.back)
        _spread(
            _states_of(tokens, i), weight, matrix, work.states[s], work.n_states[s],
            work.reached[v],
        )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_ahead(tokens, links, work, edge):
    """E_uv = <N_u, H_v>."""
    for v in range(edge.m):
        i = edge.there + v
        weight = _weight_of(tokens, links, work, i, work.back)
        _meet(_states_of(tokens, i), weight, work.reached, edge.n, edge.pair[:, v])


@njit(cache=True, nogil=True, error_model="numpy")
def _pair_back(tokens, links, work, edge):
    """E_uv = <F_u, A H_v>."""
    for u in range(edge.n):
        i = edge.here + u
        weight = _weight_of(tokens, links, work, i, work.ahead)
        _meet(_states_of(tokens, i), weight, work.reached, edge.m, edge.pair[u])


@njit(cache=True, nogil=True, error_model="numpy")
def _push_ahead(tokens, links, work, edge):
    """F_v = l_v sum_u c_u N_u / den_uv, summing to 1; returns sum_v c_v log of its scale."""
    log_scale = 0.0
    for v in range(edge.m):
        i = edge.there + v
        scale = _gather(
            _states_of(tokens, i), edge.people, edge.ahead[:, v], work.reached,
            _likelihood_of(tokens, i), _weight_of(tokens, links, work, i, work.ahead),
        )  # fmt: skip
        log_scale += edge.people_next[v] * np.log(scale)
    return log_scale


@njit(cache=True, nogil=True, error_model="numpy")
def _push_back(tokens, links, work, edge):
    """H_u = l_u sum_v c_v A H_v / den'_uv, summing to 1; false if no state is left."""
    for u in range(edge.n):
        i = edge.here + u
        scale = _gather(
            _states_of(tokens, i), edge.people_next, edge.back[u], work.reached,
            _likelihood_of(tokens, i), _weight_of(tokens, links, work, i, work.back),
        )  # fmt: skip
        if not scale > 0.0:
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _recall(tokens, links, work, paths, messages, n_steps):
    """H of every step from backward messages as they are; false if no state is left."""
    _end(tokens, links, work, n_steps)
    for s in range(n_steps - 2, -1, -1):
        edge = _edge(tokens, links, work, messages, s)
        _reach_back(tokens, links, work, paths, edge, s)
        if not _push_back(tokens, links, work, edge):
            return False
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def _pass_ahead(tokens, links, work, paths, messages, n_steps, lead, own, damped, first):
    """Forward pass; the largest disagreement at any edge (0 the first time: den is not known)."""
    worst = 0.0
    if not _begin(tokens, links, work, paths.start[lead]) > -np.inf:
        return np.inf
    for s in range(n_steps - 1):
        edge = _edge(tokens, links, work, messages, s)
        _reach_ahead(tokens, links, work, paths, edge, s)
        _pair_ahead(tokens, links, work, edge)
        if not first:
            worst = max(worst, _disagreement(edge, work))
        for _ in range(INNER):
            if not (_renew_ahead(edge, own, damped, work) and _renew_back(edge, own, damped, work)):
                return np.inf
        if not _push_ahead(tokens, links, work, edge) > -np.inf:
            return np.inf
    return worst


@njit(cache=True, nogil=True, error_model="numpy")
def _pass_back(tokens, links, work, paths, messages, n_steps, own, damped):
    """Backward pass; the largest disagreement at any edge."""
    worst = 0.0
    _end(tokens, links, work, n_steps)
    for s in range(n_steps - 2, -1, -1):
        edge = _edge(tokens, links, work, messages, s)
        _reach_back(tokens, links, work, paths, edge, s)
        _pair_back(tokens, links, work, edge)
        worst = max(worst, _disagreement(edge, work))
        for _ in range(INNER):
            if not (_renew_back(edge, own, damped, work) and _renew_ahead(edge, own, damped, work)):
                return np.inf
        if not _push_back(tokens, links, work, edge):
            return np.inf
    return worst


@njit(cache=True, nogil=True, error_model="numpy")
def _pull_on(tokens, links, work, edge, s, u):
    """pull(y) = sum over v of c_v H_v(y) / den'_uv, on the states of the next step."""
    for j in range(work.n_states[s + 1]):
        work.pull[work.states[s + 1, j]] = 0.0
    for v in range(edge.m):
        weight = _weight_of(tokens, links, work, edge.there + v, work.back)
        factor = edge.people_next[v] * edge.back[u, v]
        states = _states_of(tokens, edge.there + v)
        for e in range(weight.size):
            work.pull[states[e]] += factor * weight[e]


@njit(cache=True, nogil=True, error_model="numpy")
def _move(states, weight, factor, pull, wanted, n, moves):
    """Add to ``moves`` (without the factor A) where the people of one token go."""
    for e in range(states.size):
        line, value = moves[states[e]], factor * weight[e]
        if n == pull.size:
            for y in range(pull.size):
                line[y] += value * pull[y]
        elif value != 0.0:
            for j in range(n):
                line[wanted[j]] += value * pull[wanted[j]]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _people_of(states, weight, factor, pull, wanted, n, matrix, people):
    """How many of one token's people are in each state of its row."""
    for e in range(states.size):
        line, total = matrix[states[e]], 0.0
        if n == pull.size:
            for y in range(pull.size):
                total += line[y] * pull[y]
        else:
            for j in range(n):
                total += line[wanted[j]] * pull[wanted[j]]
        people[e] = factor * weight[e] * total


@njit(cache=True, nogil=True, error_model="numpy")
def _energy(edge, own, work):
    """What an edge adds to log p: sum c_u log total_u - sum c_u c_v / e log(1 + e odds_uv)."""
    value = 0.0
    for u in range(edge.n):
        value += edge.people[u] * np.log(work.total[u])
        for v in range(edge.m):
            left_out = min(own, edge.people[u], edge.people_next[v])
            if left_out > 0.0:
                part = -np.log(edge.ahead[u, v] * work.total[u]) / left_out
            else:
                part = -edge.pair[u, v] * edge.back[u, v] / work.total[u]
            value += edge.people[u] * edge.people_next[v] * part
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def _place(tokens, i, people, start, emission, sums):
    """Book the people of token i by state: under its row of the table, and in ``sums``.

    Either may be empty, then it is left alone; ``sums`` is without the factor ``start``, if there
    is one.
    """
    first = tokens.table_indptr[tokens.row[i]]
    for e in range(people.size):
        x = tokens.table_states[first + e]
        if emission.size:
            emission[first + e] += people[e]
        if sums.size and people[e] > 0.0:
            sums[x] += people[e] / start[x] if start.size else people[e]


@njit(cache=True, nogil=True, error_model="numpy")
def _collect(
    tokens, links, work, paths, messages, k, n_steps, own, starts, moves, ends, emission, here
):
    """Add the expected counts of one sequence, H held still; return log p less its constant.

    The forward pass is made again with the final H, and token u shares out its people by
    c_v (E_uv / den'_uv) / total_u: nobody is lost, and moves start where people are.
    """
    lead = work.steps[0] - k * tokens.length
    trail = (k + 1) * tokens.length - 1 - work.steps[n_steps - 1]
    start, nothing = paths.start[lead], np.empty(0)
    log_p = _begin(tokens, links, work, start)
    for s in range(n_steps - 1):
        edge = _edge(tokens, links, work, messages, s)
        _reach_ahead(tokens, links, work, paths, edge, s)
        _pair_ahead(tokens, links, work, edge)
        if not (log_p > -np.inf and _renew_ahead(edge, own, False, work)):
            return np.nan
        matrix, moved = paths.ahead[edge.gap - 1], moves[edge.gap - 1]
        wanted, n = work.states[s + 1], work.n_states[s + 1]
        for u in range(edge.n):
            i = edge.here + u
            states, weight = _states_of(tokens, i), _weight_of(tokens, links, work, i, work.ahead)
            factor = edge.people[u] / work.total[u]
            _pull_on(tokens, links, work, edge, s, u)
            _move(states, weight, factor, work.pull, wanted, n, moved)
            if s == 0 or emission.size:
                people = here[: states.size]
                _people_of(states, weight, factor, work.pull, wanted, n, matrix, people)
                if s == 0:
                    _place(tokens, i, people, start, emission, starts[lead])
                else:
                    _place(tokens, i, people, nothing, emission, nothing)
        log_p += _energy(edge, own, work) + _push_ahead(tokens, links, work, edge)
    at = work.steps[n_steps - 1]
    for i in range(tokens.indptr[at], tokens.indptr[at + 1]):
        weight = _weight_of(tokens, links, work, i, work.ahead)
        people = here[: weight.size]
        people[:] = links.people[i] * weight
        if n_steps == 1:
            _place(tokens, i, people, start, emission, starts[lead])
            _place(tokens, i, people, nothing, nothing, ends[trail])
        else:
            _place(tokens, i, people, nothing, emission, ends[trail])
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
def _solve(tokens, links, work, paths, messages, k, n_steps, own, warm, tol, max_sweeps, may_damp):
    """Sweep until the two sides of every edge agree; returns sweeps and the last disagreement."""
    if not warm:
        first = links.pair_indptr[work.steps[0]]
        messages[first : links.pair_indptr[work.steps[n_steps - 1]]] = 1.0
    if not _recall(tokens, links, work, paths, messages, n_steps):
        return 0, np.inf
    lead = work.steps[0] - k * tokens.length
    worst, before, done, damped = np.inf, np.inf, 0, False
    while done < max_sweeps:
        worst = _pass_ahead(
            tokens, links, work, paths, messages, n_steps, lead, own, damped, done == 0
        )
        if worst < np.inf:
            worst = max(
                worst, _pass_back(tokens, links, work, paths, messages, n_steps, own, damped)
            )
        done += 1
        if not tol < worst < np.inf:
            break
        damped = damped or (may_damp and worst > before)
        before = worst
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
        np.empty(most_pairs), np.empty((most_tokens, d)), np.empty(most_tokens**2),
        np.empty(most_tokens), np.empty(most_tokens), np.zeros(d),
    )  # fmt: skip
    seen = np.full(d, -1, dtype=np.int64)
    here = np.empty(np.max(np.diff(tokens.table_indptr)))
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
                tokens, links, work, paths, messages, k, n_steps, links.own[k],
                starts, moves, ends, emission, here,
            )  # fmt: skip
        if not np.isfinite(value):
            return starts, moves, ends, emission, log_p, sweeps, unconverged, k
        log_p += value
    return starts, moves, ends, emission, log_p, sweeps, unconverged, -1
