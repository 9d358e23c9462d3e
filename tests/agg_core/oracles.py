"""Plain, slow reference code that shares nothing with what it checks: sums over all paths."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from agg_core.model.hmm import HMM


@dataclass(frozen=True)
class Counts:
    """Expected people: start (d,), transitions (d, d), emission (d, S); and the free energy."""

    start: np.ndarray
    transitions: np.ndarray
    emission: np.ndarray
    free_energy: float

    def __add__(self, other):
        return Counts(
            self.start + other.start,
            self.transitions + other.transitions,
            self.emission + other.emission,
            self.free_energy + other.free_energy,
        )


def random_model(rng, n_states, n_symbols):
    """Start, transitions and emission, every row uniform on the simplex."""
    return (
        rng.dirichlet(np.ones(n_states)),
        rng.dirichlet(np.ones(n_states), n_states),
        rng.dirichlet(np.ones(n_symbols), n_states),
    )


def random_histograms(rng, model, size, length):
    """Counts (length, S) of ``size`` people who follow the model, drawn one by one."""
    start, trans, emit = model
    counts = np.zeros((length, emit.shape[1]))
    for _ in range(size):
        state = rng.choice(len(start), p=start)
        for t in range(length):
            counts[t, rng.choice(emit.shape[1], p=emit[state])] += 1
            state = rng.choice(len(start), p=trans[state])
    return counts


def path_tensor(model, length):
    """p(x_1..x_T, o_1..o_T) as an array with 2 T axes: first the states, then the symbols."""
    start, trans, emit = model

    def along(part, *axes):
        """The array with its axes at these places among the 2 T."""
        shape = np.ones(2 * length, dtype=int)
        shape[list(axes)] = part.shape
        return part.reshape(shape)

    tensor = along(start, 0)
    for t in range(length):
        tensor = tensor * along(emit, t, length + t)
        if t > 0:
            tensor = tensor * along(trans, t - 1, t)
    return tensor


def marginal(tensor, *axes):
    return tensor.sum(axis=tuple(a for a in range(tensor.ndim) if a not in axes))


def projection(tensor, histograms, sweeps=100_000):
    """The distribution nearest to ``tensor`` (KL) whose symbols have the shares observed.

    Iterative proportional fitting over whole paths. Steps that count nobody are left free.
    """
    length = len(histograms)
    fitted = tensor.copy()
    for _ in range(sweeps):
        worst = 0.0
        for t, counts in enumerate(histograms):
            if counts.sum() == 0:
                continue
            share, now = counts / counts.sum(), marginal(fitted, length + t)
            worst = max(worst, np.abs(now - share).sum())
            ratio = np.divide(share, now, out=np.zeros_like(share), where=now > 0)
            fitted *= ratio.reshape([-1 if a == length + t else 1 for a in range(2 * length)])
        if worst < 1e-14:
            return fitted
    raise AssertionError("the fitting did not converge")


def collective_counts(model, histograms):
    """Optimum of the paper's Problem 1 for one sequence, (T, S) histograms."""
    length, size = len(histograms), histograms.sum(axis=1).max()
    prior = path_tensor(model, length)
    fitted = projection(prior, histograms)
    seen = [t for t in range(length) if histograms[t].sum() > 0]
    some = fitted > 0
    return Counts(
        start=size * marginal(fitted, 0),
        transitions=size
        * sum((marginal(fitted, t, t + 1) for t in range(length - 1)), np.zeros_like(model[1])),
        emission=size * sum(marginal(fitted, t, length + t) for t in seen),
        free_energy=size * float((fitted[some] * np.log(fitted[some] / prior[some])).sum()),
    )


def individual_counts(model, symbols):
    """Exact posterior counts of one person by a sum over all state paths; -1 is not seen."""
    start, trans, emit = model
    total = 0.0
    first, moves, shown = np.zeros_like(start), np.zeros_like(trans), np.zeros_like(emit)
    for states in itertools.product(range(len(start)), repeat=len(symbols)):
        p = start[states[0]]
        for before, after in itertools.pairwise(states):
            p *= trans[before, after]
        for x, o in zip(states, symbols, strict=True):
            p *= emit[x, o] if o >= 0 else 1.0
        total += p
        first[states[0]] += p
        for before, after in itertools.pairwise(states):
            moves[before, after] += p
        for x, o in zip(states, symbols, strict=True):
            if o >= 0:
                shown[x, o] += p
    with np.errstate(divide="ignore"):
        return Counts(first / total, moves / total, shown / total, -np.log(total))


def log_forward_backward(model, symbols):
    """Counts of one person in log space, for sequences too long to enumerate."""
    start, trans, emit = (np.log(np.maximum(part, 0)) for part in model)
    length = len(symbols)
    ahead, back = np.empty((length, len(start))), np.zeros((length, len(start)))
    ahead[0] = start + emit[:, symbols[0]]
    for t in range(1, length):
        ahead[t] = np.logaddexp.reduce(ahead[t - 1][:, None] + trans, axis=0) + emit[:, symbols[t]]
    for t in range(length - 2, -1, -1):
        after = emit[:, symbols[t + 1]] + back[t + 1]
        back[t] = np.logaddexp.reduce(trans + after, axis=1)
    log_p = np.logaddexp.reduce(ahead[-1])
    moves, shown = np.zeros_like(trans), np.zeros_like(emit)
    for t, symbol in enumerate(symbols):
        shown[:, symbol] += np.exp(ahead[t] + back[t] - log_p)
        if t + 1 < length:
            after = emit[:, symbols[t + 1]] + back[t + 1]
            moves += np.exp(ahead[t][:, None] + trans + after - log_p)
    return Counts(np.exp(ahead[0] + back[0] - log_p), moves, shown, -log_p)


def maximised(counts, model):
    """The M-step: normalised counts; rows that nobody is in keep their value."""

    def rows(part, old):
        total = part.sum(axis=1, keepdims=True)
        return np.where(total > 0, part / np.where(total > 0, total, 1), old)

    _, trans, emit = model
    return (
        counts.start / counts.start.sum(),
        rows(counts.transitions, trans),
        rows(counts.emission, emit),
    )


def histogram(symbols, n_symbols):
    """One person's symbols (T,) as histograms (T, S); -1 gives an empty row."""
    counts = np.zeros((len(symbols), n_symbols))
    for t, symbol in enumerate(symbols):
        if symbol >= 0:
            counts[t, symbol] = 1
    return counts


def group_counts(model, histograms):
    """Exact posterior counts of a finite group and -log p(histograms), (T, S) whole numbers.

    Forward and backward over how many people are in each state: a step from one such split to
    another adds up all tables of moves between them (each row a multinomial), and a histogram
    given a split adds up all tables of who shows what. Steps that count nobody are left free.
    """
    start, trans, emit = model
    d, n_symbols, length = len(start), emit.shape[1], len(histograms)
    size = int(histograms.sum(axis=1).max())
    splits = _splits(size, d)
    moved, moves = _tables(splits, splits, trans)
    shown, shows = [], []
    for counts in histograms.astype(int):
        if counts.sum() == 0:
            shown.append(np.ones(len(splits)))
            shows.append(np.zeros((len(splits), d, n_symbols)))
        else:
            chance, table = _tables(splits, [tuple(counts)], emit)
            shown.append(chance[:, 0])
            shows.append(table[:, 0])
    ahead = [np.array([_multinomial(split, start) for split in splits]) * shown[0]]
    back = [np.ones(len(splits))]
    for t in range(1, length):
        ahead.append(ahead[-1] @ moved * shown[t])
        back.insert(0, moved @ (shown[length - t] * back[0]))
    p = ahead[-1].sum()
    emission = sum(np.einsum("i,ixo->xo", ahead[t] * back[t] / p, shows[t]) for t in range(length))
    transitions = sum(
        (
            np.einsum("i,j,ij,ijxy->xy", ahead[t], back[t + 1] * shown[t + 1], moved, moves) / p
            for t in range(length - 1)
        ),
        np.zeros((d, d)),
    )
    first = (ahead[0] * back[0] / p) @ np.array(splits)
    return Counts(first, transitions, emission, -np.log(p))


def _splits(size, n):
    """All ways to put ``size`` people into n places, as tuples of counts."""
    return [split for split in itertools.product(range(size + 1), repeat=n) if sum(split) == size]


def _multinomial(counts, chances):
    ways = math.factorial(sum(counts))
    for count in counts:
        ways //= math.factorial(count)
    return ways * np.prod(np.power(chances, counts))


def _tables(rows, columns, chances):
    """P(column sums | row sums), and the expected table given both, for all pairs of them."""
    place = {column: j for j, column in enumerate(columns)}
    p = np.zeros((len(rows), len(columns)))
    table = np.zeros((len(rows), len(columns), *chances.shape))
    for i, row in enumerate(rows):
        for lines in itertools.product(*(_splits(n, chances.shape[1]) for n in row)):
            j = place.get(tuple(int(n) for n in np.sum(lines, axis=0)))
            if j is not None:
                chance = np.prod([_multinomial(*pair) for pair in zip(lines, chances, strict=True)])
                p[i, j] += chance
                table[i, j] += chance * np.array(lines)
    known = p > 0
    table[known] /= p[known][:, None, None]
    return p, table


def group_counts_by_person(model, histograms):
    """As `group_counts`, by adding up what every single person may have done and shown."""
    start, trans, emit = model
    length, n_symbols = histograms.shape
    size = int(histograms.sum(axis=1).max())
    joint = path_tensor(model, length)
    paths = list(itertools.product(itertools.product(range(len(start)), repeat=length),
                                   itertools.product(range(n_symbols), repeat=length)))  # fmt: skip
    total = 0.0
    first, moves, shown = np.zeros_like(start), np.zeros_like(trans), np.zeros_like(emit)
    for people in itertools.product(paths, repeat=size):
        counts = np.zeros_like(histograms)
        for _, symbols in people:
            counts[range(length), symbols] += 1
        if (counts != histograms).any():
            continue
        p = np.prod([joint[states + symbols] for states, symbols in people])
        total += p
        for states, symbols in people:
            first[states[0]] += p
            for before, after in itertools.pairwise(states):
                moves[before, after] += p
            for x, o in zip(states, symbols, strict=True):
                shown[x, o] += p
    return Counts(first / total, moves / total, shown / total, -np.log(total))


# ---------------------------------------------------------------- what many tests need


def expected_by(inference, model, aggregates, **choices):
    """Expected counts of an E-step, and those of its emission as (d, S)."""
    hmm = HMM.categorical(*model)
    likelihoods = hmm.emission.likelihoods(aggregates)
    expected = inference(hmm, aggregates, likelihoods, **{"with_emission": True, **choices})
    shown = np.zeros(np.shape(model[2]))
    symbol = np.repeat(np.arange(shown.shape[1]), np.diff(likelihoods.indptr))
    shown[likelihoods.states, symbol] = expected.emission
    return expected, shown


def start_knowing(emission, startprob=None, transmat=None):
    """A start that knows the emission and, unless told, nothing else."""
    d = len(emission)
    uniform = np.full(d, 1 / d)
    return HMM.categorical(
        uniform if startprob is None else startprob,
        np.tile(uniform, (d, 1)) if transmat is None else transmat,
        emission,
    )


def moved(rng, here, chances):
    """People per cell of each group (K, d) after everybody has drawn where to go."""
    return sum(rng.multinomial(here[:, x], chances[x]) for x in range(len(chances)))


def moving_groups(rng, sizes, model, length):
    """Counts (K, T, S) of groups, drawn without drawing the people; startprob (d,) or (K, d)."""
    startprob, transmat, emission = model
    here = rng.multinomial(sizes, startprob)
    histograms = []
    for _ in range(length):
        histograms.append(moved(rng, here, emission))
        here = moved(rng, here, transmat)
    return np.stack(histograms, axis=1)
