from itertools import islice, pairwise

import numpy as np
import pytest
from scipy import optimize

from agg_core.base.errors import UnreachableError
from agg_core.learn.esteps.pairs import least_squares, least_squares_steps
from agg_core.made.people import random_hmm
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused


def sample_groups(rng, model, n_groups, size, length):
    """Counts (K, T, S) of groups of people."""
    return oracles.moving_groups(rng, np.full(n_groups, size), model, length)


def row_error(estimate, truth):
    return np.abs(estimate - truth).sum(axis=1).mean()


def distinct_emission(rng):
    """Three states that four symbols tell apart well."""
    return 0.6 * np.eye(3, 4) + 0.4 * rng.dirichlet(np.ones(4), size=3)


# ------------------------------------------------------------------------------- right values


def test_three_groups_by_hand():
    # Shares of the first cell 1, 0, 1/2 become 1/2, 0, 1/2. The normal equations
    # 5/4 a + 1/4 b = 3/4 and 1/4 a + 5/4 b = 1/4 have a = 7/12, b = 1/12.
    histograms = [[[2, 0], [1, 1]], [[0, 2], [0, 2]], [[1, 1], [1, 1]]]
    startprob, transmat = least_squares(
        Aggregates.from_dense(histograms), oracles.start_knowing(np.eye(2))
    )
    np.testing.assert_allclose(transmat, [[7 / 12, 5 / 12], [1 / 12, 11 / 12]], atol=1e-7)
    np.testing.assert_allclose(startprob, [0.5, 0.5], atol=1e-12)


def test_one_person_per_group_gives_the_frequencies_of_moves():
    states = np.random.default_rng(3).integers(0, 4, (60, 5))
    moves = np.zeros((4, 4))
    np.add.at(moves, (states[:, :-1], states[:, 1:]), 1)
    startprob, transmat = least_squares(
        aggregate(states, 1, 4, 0), oracles.start_knowing(np.eye(4))
    )
    np.testing.assert_allclose(transmat, moves / moves.sum(axis=1, keepdims=True), atol=1e-7)
    np.testing.assert_allclose(startprob, np.bincount(states[:, 0], minlength=4) / 60, atol=1e-12)


def test_a_group_weighs_as_many_people_as_it_has():
    # All start in cell 0; of eleven people, six stay.
    aggregates = Aggregates.from_dense([[[10, 0], [5, 5]], [[1, 0], [1, 0]]])
    start = oracles.start_knowing(np.eye(2), transmat=[[0.5, 0.5], [0.3, 0.7]])
    state = next(least_squares_steps(aggregates, start))
    assert state.n_empty == 1
    np.testing.assert_allclose(state.transmat, [[6 / 11, 5 / 11], [0.3, 0.7]], atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_exact_expectations_give_back_the_model(seed):
    rng = np.random.default_rng(seed)
    startprob, transmat, _ = oracles.random_model(rng, 3, 3)
    emission = distinct_emission(rng)
    shown = startprob @ emission
    # Pairs of groups that lie as far to either side keep the mean.
    shift = rng.dirichlet(np.ones(4), size=6) - 0.25
    shift *= 0.9 * shown.min() / np.abs(shift).max()
    first = np.concatenate([shown + shift, shown - shift])
    state_given_symbol = (startprob[:, None] * emission / shown).T
    second = first @ state_given_symbol @ transmat @ emission
    aggregates = Aggregates.from_dense(np.stack([first, second], axis=1) * 30)
    learned = least_squares(aggregates, oracles.start_knowing(emission), n_iter=5000, tol=1e-12)
    np.testing.assert_allclose(learned[0], startprob, atol=1e-6)
    np.testing.assert_allclose(learned[1], transmat, atol=1e-5)


def most_likely_weights(shares, emission):
    """Mixture weights by a general optimiser."""
    d = len(emission)
    found = optimize.minimize(
        lambda p: -shares @ np.log(p @ emission),
        np.full(d, 1 / d),
        bounds=[(1e-12, 1)] * d,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return found.x


def predictions(histograms, probs, emission, transmat):
    """Size, next shares and their predicted for the groups and steps one by one."""
    for counts in histograms:
        for t in range(len(counts) - 1):
            size = counts[t].sum()
            posterior = (probs[t][:, None] * emission / (probs[t] @ emission)).T
            yield size, counts[t + 1] / size, counts[t] / size @ posterior @ transmat @ emission


def distance(histograms, probs, emission, transmat, covariance):
    """The objective as it is written down."""
    inverse = np.linalg.inv(covariance)
    terms = [
        size * (seen - predicted) @ inverse @ (seen - predicted)
        for size, seen, predicted in predictions(histograms, probs, emission, transmat)
    ]
    return np.mean(terms)


def pooled_covariance(histograms):
    people = histograms[:, 1:].sum(axis=(0, 1)) + 0.5
    return np.diag(people / people.sum())


def covariance_given(histograms, probs, emission, transmat):
    """Mean over people of the multinomial covariance of the next symbol, a tenth of q added."""
    d_symbols = emission.shape[1]
    total, people = np.zeros((d_symbols, d_symbols)), 0
    for counts in histograms:
        for t in range(len(counts) - 1):
            for symbol in range(d_symbols):
                state = probs[t] * emission[:, symbol]
                chance = state / state.sum() @ transmat @ emission
                total += counts[t, symbol] * (np.diag(chance) - np.outer(chance, chance))
                people += counts[t, symbol]
    return total / people + 0.1 * pooled_covariance(histograms)


def best_transmat(objective, start):
    """Minimum over rows on the simplex, zeros of start kept, by a general optimiser."""
    free = start > 0
    rows = np.nonzero(free)[0]

    def matrix(values):
        transmat = np.zeros_like(start)
        transmat[free] = values
        return transmat

    found = optimize.minimize(
        lambda values: objective(matrix(values)),
        start[free],
        bounds=[(0, 1)] * free.sum(),
        constraints=[
            {"type": "eq", "fun": lambda values, x=x: values[rows == x].sum() - 1}
            for x in range(len(start))
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return matrix(found.x), found.fun


@pytest.mark.parametrize("seed", range(6))
def test_optimum_by_a_general_optimiser(seed, monkeypatch):
    # The first fit, which gives the weights, to its end.
    monkeypatch.setattr("agg_core.learn.esteps.pairs.FIRST_STEPS", 5000)
    monkeypatch.setattr("agg_core.learn.esteps.pairs.FIRST_TOL", 0.0)
    rng = np.random.default_rng(seed)
    emission = distinct_emission(rng)
    # Groups of two sizes from models that differ: rows end on the border of the simplex.
    histograms = np.concatenate(
        [sample_groups(rng, oracles.random_model(rng, 3, 4), 3, size, 3) for size in (3, 20)]
    )
    start = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.4, 0.2, 0.4]])
    pooled = histograms.sum(axis=0) / histograms.sum(axis=(0, 2))[:, None]
    probs = [most_likely_weights(shares, emission) for shares in pooled]
    known = (histograms, probs, emission)

    first, _ = best_transmat(lambda a: distance(*known, a, pooled_covariance(histograms)), start)
    covariance = covariance_given(*known, first)
    transmat, least = best_transmat(lambda a: distance(*known, a, covariance), start)

    steps = least_squares_steps(
        Aggregates.from_dense(histograms), oracles.start_knowing(emission, None, start)
    )
    state = next(islice(steps, 100, None))
    assert state.objective == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(state.transmat, transmat, atol=1e-5)
    np.testing.assert_allclose(state.startprob, probs[0], atol=1e-4)


@pytest.mark.parametrize("size", [10, 100])
@pytest.mark.parametrize(("d", "noisy"), [(3, False), (3, True), (5, True)])
def test_error_falls_as_the_root_of_the_number_of_groups(d, noisy, size):
    n_groups = [400, 1600, 6400] if d == 5 else [100, 400, 1600, 6400]
    errors = np.zeros(len(n_groups))
    for seed in range(8):
        rng = np.random.default_rng(seed)
        startprob, transmat, emission = random_hmm(d, random_state=seed)
        emission = emission if noisy else np.eye(d)
        histograms = sample_groups(rng, (startprob, transmat, emission), n_groups[-1], size, 5)
        for i, n in enumerate(n_groups):
            aggregates = Aggregates.from_dense(histograms[:n])
            learned = least_squares(aggregates, oracles.start_knowing(emission), tol=1e-4)[1]
            errors[i] += row_error(learned, transmat) / 8
    slope = np.polyfit(np.log(n_groups), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.12)


def test_it_beats_the_start_where_groups_are_many_and_sizes_differ():
    rng = np.random.default_rng(5)
    startprob, transmat, emission = random_hmm(4, random_state=5)
    model = (startprob, transmat, emission)
    histograms = np.concatenate([sample_groups(rng, model, 1500, size, 4) for size in (4, 200)])
    learned = least_squares(Aggregates.from_dense(histograms), oracles.start_knowing(emission))
    assert row_error(learned[1], transmat) < 0.06
    assert np.abs(learned[0] - startprob).sum() < 0.02


# --------------------------------------------------------------------------------- invariants


@pytest.fixture
def case():
    """Few groups, five noisy states, structural zeros in startprob and transmat."""
    rng = np.random.default_rng(11)
    _, _, emission = random_hmm(5, random_state=2)
    startprob = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    transmat = rng.dirichlet(np.ones(5), size=5) * (1 - np.eye(5)[::-1])
    transmat /= transmat.sum(axis=1, keepdims=True)
    histograms = sample_groups(rng, (startprob, transmat, emission), 15, 40, 4)
    start = (transmat > 0) / (transmat > 0).sum(axis=1, keepdims=True)
    hmm = HMM.categorical([0.25, 0.25, 0.25, 0.25, 0], start, emission)
    return hmm, histograms


def test_objective_never_rises_and_rows_stay_on_their_simplex(case):
    hmm, histograms = case
    states = list(islice(least_squares_steps(Aggregates.from_dense(histograms), hmm), 300))
    assert all(after.objective <= before.objective for before, after in pairwise(states))
    assert states[-1].objective < states[0].objective
    assert [state.iteration for state in states[:3]] == [1, 2, 3]
    for state in states[::50]:
        assert (state.transmat >= 0).all()
        np.testing.assert_allclose(state.transmat.sum(axis=1), 1, atol=1e-12)
        assert (state.transmat[hmm.transmat == 0] == 0).all()
        assert state.startprob.sum() == pytest.approx(1, abs=1e-12)
        assert state.startprob[4] == 0
    assert states[0].change > 0.1
    assert states[-1].change < 1e-6


def test_inputs_are_not_changed(case):
    hmm, histograms = case
    aggregates = Aggregates.from_dense(histograms)
    arrays = [hmm.startprob, hmm.transmat, hmm.emission.emissionprob, aggregates.count]
    before = [array.copy() for array in arrays]
    states = list(islice(least_squares_steps(aggregates, hmm), 3))
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert np.abs(states[0].transmat - states[2].transmat).max() > 0


def test_change_weighs_rows_by_their_people():
    # Three of four people start in cell 0, and its row moves from 1/2, 1/2 to 1/3, 2/3;
    # the row of cell 1 moves from 1/2, 1/2 to 1, 0.
    states = [[0, 0], [0, 1], [0, 1], [1, 0]]
    state = next(least_squares_steps(aggregate(states, 1, 2, 0), oracles.start_knowing(np.eye(2))))
    assert state.change == pytest.approx((3 * (1 / 3) + 1 * 1) / 4, abs=1e-9)


def test_fixed_parts_are_kept(case):
    hmm, histograms = case
    aggregates = Aggregates.from_dense(histograms)
    free = least_squares(aggregates, hmm)
    kept_start = least_squares(aggregates, hmm, fixed=("startprob", "emission"))
    np.testing.assert_array_equal(kept_start[0], hmm.startprob)
    assert np.abs(kept_start[1] - free[1]).max() > 1e-3
    state = next(least_squares_steps(aggregates, hmm, fixed=("transmat",)))
    np.testing.assert_array_equal(state.transmat, hmm.transmat)
    np.testing.assert_allclose(state.startprob, free[0], atol=1e-12)
    assert state.change == 0


def test_one_step_teaches_startprob_only():
    start = np.array([[0.9, 0.1], [0.4, 0.6]])
    aggregates = Aggregates.from_dense([[[3, 1]], [[2, 2]]])
    state = next(least_squares_steps(aggregates, oracles.start_knowing(np.eye(2), transmat=start)))
    np.testing.assert_allclose(state.startprob, [5 / 8, 3 / 8], atol=1e-12)
    np.testing.assert_array_equal(state.transmat, start)
    assert (state.objective, state.change, state.n_empty) == (0, 0, 0)


def test_a_pair_with_a_missing_step_is_left_out():
    histograms = sample_groups(
        np.random.default_rng(1), oracles.random_model(np.random.default_rng(2), 3, 3), 8, 10, 4
    )
    holed = histograms.copy()
    holed[:3, 1] = 0
    pairs = [holed[k, t : t + 2] for k in range(8) for t in range(3)]
    pairs = np.array([pair for pair in pairs if (pair.sum(axis=1) > 0).all()])
    assert len(pairs) == 8 * 3 - 3 * 2
    start = oracles.start_knowing(np.eye(3))
    learned = least_squares(Aggregates.from_dense(holed), start)[1]
    np.testing.assert_allclose(
        learned, least_squares(Aggregates.from_dense(pairs), start)[1], atol=1e-6
    )


def test_without_any_pair_transmat_keeps_the_start():
    aggregates = Aggregates.from_dense([[[2, 1], [0, 0], [1, 2]]])
    start = oracles.start_knowing(np.eye(2), transmat=[[0.9, 0.1], [0.4, 0.6]])
    state = next(least_squares_steps(aggregates, start))
    np.testing.assert_array_equal(state.transmat, start.transmat)
    np.testing.assert_allclose(state.startprob, [2 / 3, 1 / 3], atol=1e-12)
    assert (state.n_empty, state.change) == (2, 0)


def test_a_first_step_that_nobody_observed_keeps_startprob():
    aggregates = Aggregates.from_dense([[[0, 0], [2, 2], [3, 1]]])
    start = oracles.start_knowing(np.eye(2), startprob=[0.8, 0.2])
    np.testing.assert_array_equal(least_squares(aggregates, start)[0], [0.8, 0.2])


def test_noisy_totals_count_as_shares_of_the_stated_size():
    rng = np.random.default_rng(4)
    model = oracles.random_model(rng, 3, 3)
    histograms = sample_groups(rng, model, 10, 12, 3).astype(float)
    plain = least_squares(Aggregates.from_dense(histograms), oracles.start_knowing(np.eye(3)))
    histograms[:, 1] *= 1.5
    scaled = Aggregates.from_dense(histograms, sizes=np.full(10, 12.0))
    learned = least_squares(scaled, oracles.start_knowing(np.eye(3)))
    np.testing.assert_allclose(learned[1], plain[1], atol=1e-9)
    np.testing.assert_allclose(learned[0], plain[0], atol=1e-12)


def test_it_stops_at_the_limit():
    aggregates = Aggregates.from_dense([[[2, 1], [1, 2]], [[3, 0], [1, 2]]])
    start = oracles.start_knowing(np.eye(2), transmat=[[0.9, 0.1], [0.4, 0.6]])
    steps = list(islice(least_squares_steps(aggregates, start), 2))
    for n_iter, state in enumerate(steps, start=1):
        learned = least_squares(aggregates, start, n_iter=n_iter, tol=0)
        np.testing.assert_array_equal(learned[1], state.transmat)
    np.testing.assert_array_equal(least_squares(aggregates, start, n_iter=0)[1], start.transmat)


# ------------------------------------------------------------------------------------- errors


def test_errors_say_what_to_do():
    aggregates = Aggregates.from_dense([[[2, 1], [1, 2]]])
    with refused("unknown-part"):
        least_squares(aggregates, oracles.start_knowing(np.eye(2)), fixed=("start",))
    with refused("symbols-differ", "has 3 symbols but the observations count over 2"):
        least_squares(aggregates, oracles.start_knowing(np.eye(3)))
    continuous = HMM(np.full(2, 0.5), np.full((2, 2), 0.5), emission=object())
    with refused("symbols-needed"):
        least_squares(aggregates, continuous)


@pytest.mark.parametrize(
    ("startprob", "transmat", "step"),
    [([1, 0], [[0.5, 0.5], [0.5, 0.5]], 0), ([0.5, 0.5], [[1, 0], [1, 0]], 1)],
)
def test_an_observation_that_cannot_happen_is_named(startprob, transmat, step):
    aggregates = Aggregates.from_dense([[[2, 1], [2, 1]]])
    start = oracles.start_knowing(np.eye(2), startprob, transmat)
    with refused(
        "observation-impossible", f"symbol 1 in sequence 0 at step {step}", kind=UnreachableError
    ):
        least_squares(aggregates, start)
