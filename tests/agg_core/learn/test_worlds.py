"""Simulated worlds: who moves in them, and what is seen of it."""

from itertools import product

import numpy as np
import pytest

from agg_core.learn.worlds import SimulatedWorlds
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.hmm import HMM

A = np.array([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.25, 0.25, 0.5]])
START = np.array([0.5, 0.3, 0.2])
NOISE = np.array([[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.1, 0.9]])
CLEAR = HMM.categorical(START, A, np.eye(3))
NOISY = HMM.categorical(START, A, NOISE)


def worlds_of(n, *given, **options):
    worlds = SimulatedWorlds(*given, **options)
    return [worlds.drawn() for _ in range(n)]


def observed(hmm, n=400, size=7, length=4):
    symbols, _ = hmm.sample(n, length, 0)
    return aggregate(symbols, size, 3, 1)


def test_groups_of_a_world_have_the_sizes_of_the_given_ones():
    groups = observed(NOISY)
    for world, moves in worlds_of(2, NOISY, groups, random_state=2):
        np.testing.assert_array_equal(world.sizes, groups.sizes)
        assert (world.length, world.n_symbols) == (4, 3)
        np.testing.assert_array_equal(moves.sum(axis=(1, 2)), [400, 400, 400])
        # Who arrives at a step leaves from there.
        np.testing.assert_array_equal(moves[0].sum(axis=0), moves[1].sum(axis=1))


def test_without_noise_as_many_people_are_at_each_place_as_were_in_the_window():
    groups = observed(CLEAR)
    window = np.arange(groups.n_sequences) % 3
    real = groups.to_dense()
    for world, moves in worlds_of(2, CLEAR, groups, window, random_state=5):
        dense = world.to_dense()
        for part in range(3):
            of = window == part
            np.testing.assert_array_equal(dense[of].sum(axis=0), real[of].sum(axis=0))
        assert (dense != real).any()
        total = real.sum(axis=0)
        np.testing.assert_array_equal(moves.sum(axis=2), total[:-1])
        np.testing.assert_array_equal(moves.sum(axis=1), total[1:])


def brute_force(counts, hmm):
    """Expected moves (T - 1, d, d) of two people given their counts (T, S), path by path."""
    d, length = hmm.n_states, len(counts)
    emission = hmm.emission.emissionprob
    paths = list(product(range(d), repeat=length))
    prior = [
        hmm.startprob[path[0]] * np.prod([hmm.transmat[a, b] for a, b in zip(path, path[1:])])  # noqa: B905, RUF007
        for path in paths
    ]
    shown = [np.repeat(np.arange(len(step)), step.astype(int)) for step in counts]
    expected, total = np.zeros((length - 1, d, d)), 0.0
    for (one, p), (other, q) in product(zip(paths, prior, strict=True), repeat=2):
        seen = 1.0
        for t, (x, y) in enumerate(shown):
            both = emission[one[t], x] * emission[other[t], y]
            # Who of them showed which is not known.
            seen *= both if x == y else both + emission[one[t], y] * emission[other[t], x]
        total += p * q * seen
        for t in range(length - 1):
            expected[t, one[t], one[t + 1]] += p * q * seen
            expected[t, other[t], other[t + 1]] += p * q * seen
    return expected / total


def test_people_of_worlds_are_those_who_may_have_been():
    """Two people, three steps: moves on average as brute force over all paths has them."""
    counts = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 0.0], [1.0, 0.0, 1.0]])
    groups = Aggregates.from_dense(np.repeat(counts[None], 400, axis=0))
    worlds = worlds_of(10, NOISY, groups, random_state=0)
    mean = np.mean([moves / 400 for _, moves in worlds], axis=0)
    expected = brute_force(counts, NOISY)
    assert np.abs(mean - expected).max() < 4 * np.sqrt(expected.max() / 4000)


def test_noise_is_new():
    groups = observed(CLEAR, n=20_000, size=20_000)
    flipped = HMM.categorical(START, A, np.eye(3)[[1, 0, 2]] * 0.9 + 0.1 / 3)
    world, moves = worlds_of(1, flipped, groups, random_state=1)[0]
    seen = moves[0].sum(axis=1) @ flipped.emission.emissionprob
    assert np.abs(world.to_dense()[0, 0] - seen).max() < 4 * np.sqrt(seen.max() / 4)


def test_what_was_not_seen_is_not_seen_in_a_world():
    counts = np.zeros((2, 3, 3))
    counts[0, 1], counts[1, :] = [50, 30, 20], [40, 30, 30]
    world, _ = worlds_of(1, NOISY, Aggregates.from_dense(counts), random_state=4)[0]
    assert world.to_dense().sum(axis=2).tolist() == [[0, 100, 0], [100, 100, 100]]


def test_places_are_simulated_as_symbols_are():
    means = np.array([[0.0], [10.0], [20.0]])
    hmm = HMM.gaussian(START, A, means, np.ones((3, 1, 1)))
    places = np.repeat(means[[0, 0, 2, 1]], 50, axis=0).reshape(1, 2, 100, 1)
    world, (moves,) = worlds_of(1, hmm, Aggregates.from_samples(places), random_state=0)[0]
    assert moves.sum(axis=1).tolist() == [100, 0, 0]
    assert moves.sum(axis=0).tolist() == [0, 50, 50]
    shown = world.points[world.symbol[world.indptr[1] : world.indptr[2]], 0]
    near = np.bincount(np.rint(shown / 10).astype(int), minlength=3)
    np.testing.assert_array_equal(near, moves.sum(axis=0))


@pytest.mark.parametrize("seed", [0, 1])
def test_the_same_seed_makes_the_same_worlds(seed):
    groups = observed(NOISY)
    ones, others = (list(worlds_of(2, NOISY, groups, random_state=seed)) for _ in range(2))
    for (one, moves), (other, again) in zip(ones, others, strict=True):
        np.testing.assert_array_equal(one.to_dense(), other.to_dense())
        np.testing.assert_array_equal(moves, again)
    assert (ones[0][1] != ones[1][1]).any()
