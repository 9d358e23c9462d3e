from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from agg_core.base.errors import UnreachableError
from agg_core.base.moves import as_moves, moves_like, whole
from agg_core.learn.esteps.sampling import sampled_counts, whole_people
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused
from tests.threads import in_two_threads

CHAINS, BATCHES, ROUNDS = 40, 8, 60
"""Each group is sampled by so many chains of its own in each of so many batches."""


def drawn(hmm, aggregates, **choices):
    table = hmm.emission.likelihoods(aggregates)
    found = sampled_counts(hmm, aggregates, table, with_emission=True, **choices)
    shown = hmm.emission.statistics(aggregates, table, found.emission)
    if aggregates.points is None:
        shown = whole(moves_like(hmm.emission.emissionprob, shown))
    return found, np.concatenate([found.start, whole(found.transitions).ravel(), shown.ravel()])


def batches(hmm, dense, chains=CHAINS, rounds=ROUNDS, n=BATCHES):
    """Counts (batches, entries) of one copy of the groups."""
    many = Aggregates.from_dense(np.tile(dense, (chains, 1, 1)))
    return np.array([drawn(hmm, many, max_sweeps=rounds, seed=s)[1] for s in range(n)]) / chains


def assert_exact(model, dense, exact, **choices):
    """The mean of the batches differs from exact counts by less than its own noise allows.

    Student's t with 7 degrees of freedom is beyond 8 once in 10,000; the smallest noise is that
    of one draw in all.
    """
    hmm = HMM.categorical(*model)
    found = batches(hmm, np.asarray(dense, dtype=float), **choices)
    true = np.concatenate([exact.start, exact.transitions.ravel(), exact.emission.ravel()])
    least = 1 / (CHAINS * ROUNDS * BATCHES)
    noise = np.maximum(found.std(axis=0, ddof=1) / np.sqrt(len(found)), least)
    assert noise.max() < 0.05  # or the test would say little
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - true), 8 * noise)
    impossible = np.concatenate([np.ravel(whole(as_moves(part))) for part in model]) == 0
    np.testing.assert_array_equal(found[:, impossible], 0.0)


# ---------------------------------------------------------------- against exact sums


@pytest.mark.parametrize(
    ("size", "length", "d", "n_symbols"),
    [(2, 2, 2, 2), (2, 4, 3, 3), (3, 3, 3, 2), (4, 3, 2, 3), (5, 2, 3, 3), (2, 2, 4, 4)],
)
def test_groups_seen_with_noise(size, length, d, n_symbols):
    rng = np.random.default_rng([size, length, d])
    model = oracles.random_model(rng, d, n_symbols)
    group = oracles.random_histograms(rng, oracles.random_model(rng, d, n_symbols), size, length)
    assert_exact(model, [group], oracles.group_counts(model, group))


@pytest.mark.parametrize(("size", "length", "d"), [(2, 3, 2), (3, 3, 3), (5, 3, 2), (4, 2, 4)])
def test_groups_seen_without_noise(size, length, d):
    """All that is hidden is who goes on as whom."""
    rng = np.random.default_rng([size, length, d, 1])
    start, trans, _ = oracles.random_model(rng, d, d)
    model = (start, trans, np.eye(d))
    group = oracles.random_histograms(rng, model, size, length)
    assert_exact(model, [group], oracles.group_counts(model, group))


def test_groups_of_unequal_size_with_steps_not_observed():
    rng = np.random.default_rng(5)
    model = oracles.random_model(rng, 2, 3)
    groups = np.array([oracles.random_histograms(rng, model, size, 4) for size in (1, 4, 2, 3)])
    groups[0, 1] = groups[1, 0] = groups[2, 1:3] = groups[3, 3] = 0
    exact = [oracles.group_counts(model, group) for group in groups]
    assert_exact(model, groups, sum(exact[1:], exact[0]))


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("seen_as", ["noisy", "plain"])
def test_structural_zeros(seen_as, near):
    start = np.array([0.6, 0.4, 0.0])
    trans = np.array([[0.5, 0.5, 0.0], [0.2, 0.4, 0.4], [0.0, 0.7, 0.3]])
    emit = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    model = (start, trans, emit if seen_as == "noisy" else np.eye(3))
    groups = np.array([[[2, 1, 0], [1, 1, 1], [0, 2, 1]], [[1, 1, 0], [1, 1, 0], [0, 2, 0]]])
    exact = [oracles.group_counts(model, group) for group in groups]
    if near:
        model = (start, *(sparse.csr_array(table) for table in model[1:]))
    assert_exact(model, groups, exact[0] + exact[1])


@pytest.mark.parametrize("length", [1, 2, 5])
def test_single_people(length):
    rng = np.random.default_rng(length)
    model = oracles.random_model(rng, 3, 3)
    symbols = rng.integers(3, size=(4, length))
    if length > 2:
        symbols[0, 1] = symbols[1, 0] = -1
    exact = [oracles.individual_counts(model, person) for person in symbols]
    dense = [oracles.histogram(person, 3) for person in symbols]
    assert_exact(model, dense, sum(exact[1:], exact[0]))


def test_places():
    """Each place is a symbol that was seen once; its density takes the part of p(o | x)."""
    hmm = HMM.gaussian([0.7, 0.3], [[0.8, 0.2], [0.4, 0.6]], [[0.0, 0.0], [2.0, 1.0]], [1.0, 2.0])
    places = hmm.sample(3, 2, 4)[0]
    scale = np.array([1.0, 2.0])[:, None]
    away = ((places[None] - hmm.emission.means[:, None, None]) ** 2).sum(-1).reshape(2, 6)
    density = np.exp(-away / 2 / scale) / (2 * np.pi * scale)
    model = hmm.startprob, hmm.transmat, density
    # People by steps: place 2 i + t is that of person i at step t.
    seen = np.zeros((2, 6))
    seen[0, [0, 2, 4]] = seen[1, [1, 3, 5]] = 1
    exact = oracles.group_counts(model, seen)
    chains = 200
    one = aggregate_points(places, 3, 0)
    many = one.take(np.zeros(chains, dtype=int))
    table = hmm.emission.likelihoods(many)
    found = sampled_counts(hmm, many, table, max_sweeps=200, with_emission=True)
    np.testing.assert_allclose(found.start / chains, exact.start, atol=0.03)
    np.testing.assert_allclose(found.transitions / chains, exact.transitions, atol=0.03)
    shown = hmm.emission.statistics(many, table, found.emission)
    np.testing.assert_allclose(shown[:, 0] / chains, exact.emission.sum(axis=1), atol=0.05)


# ---------------------------------------------------------------- what is promised of it


def groups_of(size=6, n=30, seed=0, d=3):
    model = oracles.random_model(np.random.default_rng(seed), d, d)
    hmm = HMM.categorical(*model)
    return hmm, aggregate(hmm.sample(size * n, 3, seed)[0], size, d, seed + 1)


def test_without_choice_there_is_no_noise():
    """One person, seen as they are: counts are counts, the energy is -log p."""
    hmm = HMM.categorical([0.2, 0.8], [[0.7, 0.3], [0.4, 0.6]], np.eye(2))
    found, _ = drawn(hmm, aggregate([[0, 1, 1], [1, 1, 0]], 1, 2), max_sweeps=3)
    np.testing.assert_array_equal(found.start, [1.0, 1.0])
    np.testing.assert_array_equal(found.transitions, [[0.0, 1.0], [1.0, 2.0]])
    by_hand = np.log([0.2, 0.3, 0.6]).sum() + np.log([0.8, 0.6, 0.4]).sum()
    assert found.free_energy == pytest.approx(-by_hand, rel=1e-12)
    assert found.n_unconverged == 0
    assert found.sweeps == 3


def test_the_energy_of_places_is_that_of_their_densities():
    hmm = HMM.gaussian([1.0], [[1.0]], [[2.0]], [4.0])
    aggregates = Aggregates.from_samples([[[[1.0], [5.0]]]])
    found = sampled_counts(hmm, aggregates, hmm.emission.likelihoods(aggregates), max_sweeps=1)
    by_hand = -(1 + 9) / 8 - np.log(2 * np.pi * 4)
    assert found.free_energy == pytest.approx(-by_hand, rel=1e-12)
    assert found.emission is None


def test_people_are_counted_once_at_each_step():
    hmm, aggregates = groups_of()
    found, _ = drawn(hmm, aggregates, max_sweeps=5)
    assert found.start.sum() == pytest.approx(180)
    assert found.transitions.sum() == pytest.approx(360)
    assert found.emission.sum() == pytest.approx(540)
    dense = aggregates.to_dense().sum(axis=(0, 1))
    table = hmm.emission.likelihoods(aggregates)
    shown = hmm.emission.statistics(aggregates, table, found.emission)
    np.testing.assert_allclose(shown.sum(axis=0), dense)


def drawn_twice(seed):
    """A draw, and the one that goes on from it."""
    hmm, aggregates = groups_of()
    one, first = drawn(hmm, aggregates, max_sweeps=5, seed=seed)
    return first, drawn(hmm, aggregates, max_sweeps=5, messages=one.messages)[1]


def test_a_seed_gives_the_same_counts_with_any_number_of_threads():
    once = drawn_twice(3)
    np.testing.assert_array_equal(once, drawn_twice(3))
    np.testing.assert_array_equal(once, in_two_threads(drawn_twice, 3))
    assert not np.array_equal(once[0], drawn_twice(4)[0])


def test_a_chain_goes_on_and_is_not_changed_by_that():
    hmm, aggregates = groups_of()
    first, _ = drawn(hmm, aggregates, max_sweeps=5)
    once, again = (drawn(hmm, aggregates, max_sweeps=5, messages=first.messages) for _ in range(2))
    np.testing.assert_array_equal(once[1], again[1])
    further, _ = drawn(hmm, aggregates, max_sweeps=5, messages=once[0].messages)
    assert not np.array_equal(further.transitions, once[0].transitions)


def test_a_chain_goes_on_under_another_emission():
    """As when the emission is learned: the chain must see the likelihoods of now."""
    start, trans = np.array([0.9, 0.1]), np.array([[0.7, 0.3], [0.4, 0.6]])
    group = np.array([[2.0, 1.0], [1.0, 2.0], [3.0, 0.0]])
    many = Aggregates.from_dense(np.tile(group, (100, 1, 1)))
    chain = drawn(HMM.categorical(start, trans, [[0.9, 0.1], [0.2, 0.8]]), many)[0].messages
    # The last two have other zeros than the first: entries of the table come and go.
    for emit in ([[0.55, 0.45], [0.5, 0.5]], [[0.3, 0.7], [1.0, 0.0]], [[0.6, 0.4], [0.1, 0.9]]):
        model = (start, trans, np.array(emit))
        exact = oracles.group_counts(model, group)
        found, counts = drawn(HMM.categorical(*model), many, messages=chain, max_sweeps=300)
        chain = found.messages
        true = np.concatenate([exact.start, exact.transitions.ravel(), exact.emission.ravel()])
        np.testing.assert_allclose(counts / 100, true, atol=0.04)
        assert found.n_unconverged == 0


def test_a_chain_leaves_what_cannot_be():
    """Links drawn at random are mostly impossible here; those who circle are the only way."""
    d = 5
    hmm = HMM.categorical(np.full(d, 1 / d), np.roll(np.eye(d), 1, axis=1), np.eye(d))
    states = hmm.sample(200, 4, 0)[1]
    found, _ = drawn(hmm, aggregate(states, 20, d, 0), max_sweeps=2)
    moves = np.zeros((d, d))
    np.add.at(moves, (states[:, :-1].ravel(), states[:, 1:].ravel()), 1)
    assert found.n_unconverged == 0
    np.testing.assert_array_equal(found.transitions, moves)


def test_groups_that_are_stuck_are_counted_and_invent_no_way():
    """State 1 is never left, but the last group has one person less there at the end."""
    hmm = HMM.categorical([0.5, 0.5, 0.0], [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]], np.eye(3))
    fine, stuck = ([[1, 1, 0], [0, 2, 0]], [[2, 0, 0], [1, 1, 0]]), [[1, 1, 0], [2, 0, 0]]
    found, _ = drawn(hmm, Aggregates.from_dense([*fine, stuck]), max_sweeps=4)
    assert found.n_unconverged == 1
    np.testing.assert_array_equal(found.transitions, [[2, 2, 0], [0, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize("warm", [False, True])
def test_an_observation_that_cannot_be_is_named(warm):
    trans = np.array([[1.0, 0.0], [0.5, 0.5]])
    hmm = HMM.categorical([1.0, 0.0], trans, np.eye(2))
    aggregates = Aggregates.from_dense([[[2, 0], [2, 0]], [[2, 0], [1, 1]]])
    chain = None
    if warm:
        chain = drawn(HMM.categorical([0.5, 0.5], np.full((2, 2), 0.5), np.eye(2)), aggregates)
        chain = chain[0].messages
    with refused(
        "observation-impossible", "symbol 1 in sequence 1 at step 1", kind=UnreachableError
    ):
        drawn(hmm, aggregates, messages=chain, max_sweeps=2)


def test_a_start_that_cannot_be_is_named():
    hmm = HMM.categorical([1.0, 0.0], [[0.5, 0.5], [0.5, 0.5]], np.eye(2))
    with refused(
        "observation-impossible", "symbol 1 in sequence 0 at step 0", kind=UnreachableError
    ):
        drawn(hmm, aggregate([[1, 0]], 1, 2), max_sweeps=2)


@pytest.mark.parametrize(
    "dense", [[[[1.5, 0.5], [1.0, 1.0]]], [[[0.0, 2.5], [1.0, 1.5]], [[1.0, 0.0], [0.0, 1.0]]]]
)
def test_parts_of_people_are_refused(dense):
    aggregates = Aggregates.from_dense(dense)
    assert not whole_people(aggregates)
    with refused("not-whole-people"):
        drawn(HMM.categorical([0.5, 0.5], np.full((2, 2), 0.5), np.eye(2)), aggregates)


def test_readings_whose_totals_differ_are_no_people():
    readings = Aggregates.from_dense([[[3.0, 1.0], [2.0, 1.0]]], sizes=[4])
    assert not whole_people(readings)
    assert not whole_people(replace(readings, stated_sizes=np.array([3.0])))
    gaps = Aggregates.from_dense([[[3.0, 1.0], [0.0, 0.0], [2.0, 2.0]], [[0, 0], [1, 0], [0, 0]]])
    assert whole_people(gaps)
