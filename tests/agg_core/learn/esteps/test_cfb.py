import itertools

import numpy as np
import pytest
from scipy import optimize

from agg_core.base.errors import InputError, UnreachableError
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused

TIGHT = {"tol": 1e-13, "max_sweeps": 100_000}


def infer(model, aggregates, **choices):
    """Expected counts with the emission, and the emission's counts as (d, S)."""
    return oracles.expected_by(
        collective_forward_backward, model, aggregates, **{**TIGHT, **choices}
    )


def assert_meets(model, histograms, oracle, atol=1e-8):
    """All that the E-step says of histograms (K, T, S) equals the oracle's counts."""
    expected, shown = infer(model, Aggregates.from_dense(histograms))
    np.testing.assert_allclose(expected.start, oracle.start, atol=atol, rtol=0)
    np.testing.assert_allclose(expected.transitions, oracle.transitions, atol=atol, rtol=0)
    np.testing.assert_allclose(shown, oracle.emission, atol=atol, rtol=0)
    assert expected.free_energy == pytest.approx(oracle.free_energy, abs=atol)
    assert expected.n_unconverged == 0
    return expected


def random_case(seed, d, n_symbols, length, size):
    rng = np.random.default_rng(seed)
    model = oracles.random_model(rng, d, n_symbols)
    # Counts from another model than the one that explains them: the fit has work to do.
    other = oracles.random_model(rng, d, n_symbols)
    return model, oracles.random_histograms(rng, other, size, length)


SIZES = [(d, s, t, m) for d, s, t, m in itertools.product((2, 3), (2, 3), (2, 3), (2, 3, 4))]


@pytest.mark.parametrize(("d", "n_symbols", "length", "size"), SIZES)
def test_optimum_of_problem_1_by_fitting_all_paths(d, n_symbols, length, size):
    model, histograms = random_case(d + 10 * n_symbols + size, d, n_symbols, length, size)
    assert_meets(model, histograms[None], oracles.collective_counts(model, histograms))


def test_one_step_and_a_big_group_and_soft_counts():
    model, histograms = random_case(1, 3, 3, 1, 5)
    assert_meets(model, histograms[None], oracles.collective_counts(model, histograms))
    model, histograms = random_case(2, 2, 3, 4, 1000)
    assert_meets(model, histograms[None], oracles.collective_counts(model, histograms), 1e-7)
    soft = np.array([[0.3, 0.9, 1.3], [1.1, 1.4, 0.0], [0.25, 0.25, 2.0]])
    assert_meets(model, soft[None], oracles.collective_counts(model, soft))


def bethe_free_energy(model, length):
    """Equation 4 as it should read, of flat local marginals (pairs, then emissions)."""
    start, trans, emit = model
    d, n_symbols = emit.shape
    cut = (length - 1) * d * d

    def energy(flat):
        pairs = flat[:cut].reshape(length - 1, d, d)
        shown = flat[cut:].reshape(length, d, n_symbols)
        n = shown.sum(axis=2)
        total = -(shown * np.log(emit)).sum() - (pairs * np.log(trans)).sum()
        total -= n[0] @ np.log(start)
        total -= (n[0] * np.log(n[0])).sum() + (n[-1] * np.log(n[-1])).sum()
        total -= 2 * (n[1:-1] * np.log(n[1:-1])).sum()
        return total + (shown * np.log(shown)).sum() + (pairs * np.log(pairs)).sum()

    return energy


@pytest.mark.parametrize("seed", [0, 1])
def test_optimum_of_problem_1_by_a_general_optimiser(seed):
    d, length, size = 2, 3, 4.0
    rng = np.random.default_rng(seed)
    model = oracles.random_model(rng, d, 2)
    histograms = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]])
    cut = (length - 1) * d * d

    def constraints(flat):
        pairs = flat[:cut].reshape(length - 1, d, d)
        shown = flat[cut:].reshape(length, d, 2)
        n = shown.sum(axis=2)
        # One column of each margin follows from the totals: left out, the rest is independent.
        return np.concatenate(
            [
                (shown.sum(axis=1) - histograms).ravel(),
                (pairs.sum(axis=2) - n[:-1]).ravel(),
                (pairs.sum(axis=1) - n[1:])[:, 0],
            ]
        )

    guess = np.concatenate([np.full(cut, size / 4), np.repeat(histograms / 2, d, axis=0).ravel()])
    energy = bethe_free_energy(model, length)
    found = optimize.minimize(
        energy, guess, method="SLSQP", bounds=[(1e-9, size)] * guess.size,
        constraints={"type": "eq", "fun": constraints}, options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert np.abs(constraints(found.x)).max() < 1e-9
    pairs = found.x[:cut].reshape(length - 1, d, d)
    shown = found.x[cut:].reshape(length, d, 2)
    expected, emission = infer(model, Aggregates.from_dense(histograms[None]))
    np.testing.assert_allclose(expected.transitions, pairs.sum(axis=0), atol=2e-5)
    np.testing.assert_allclose(emission, shown.sum(axis=0), atol=2e-5)
    # Equation 4 of counts is the energy per person in counts, less M log M.
    assert expected.free_energy == pytest.approx(found.fun - size * np.log(size), abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_one_person_is_forward_backward_in_one_sweep(seed):
    rng = np.random.default_rng(seed)
    model = oracles.random_model(rng, 3, 4)
    symbols = rng.integers(4, size=5)
    oracle = oracles.individual_counts(model, symbols)
    expected = assert_meets(model, oracles.histogram(symbols, 4)[None], oracle, 1e-12)
    assert expected.sweeps == 1
    loose, _ = infer(model, aggregate(symbols[None], 1, 4), tol=1.0, max_sweeps=1)
    np.testing.assert_allclose(loose.transitions, oracle.transitions, atol=1e-12)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_many_single_people_seen_anywhere_are_the_sum_over_their_paths(length):
    rng = np.random.default_rng(length)
    model = oracles.random_model(rng, 3, 4)
    symbols = rng.integers(-1, 4, (30, length))  # -1 was not seen
    symbols = symbols[(symbols >= 0).any(axis=1)]
    oracle = oracles.individual_counts(model, symbols[0])
    for one in symbols[1:]:
        oracle += oracles.individual_counts(model, one)
    histograms = np.array([oracles.histogram(one, 4) for one in symbols])
    expected = assert_meets(model, histograms, oracle, 1e-12)
    aggregates, hmm = Aggregates.from_dense(histograms), HMM.categorical(*model)
    table = hmm.emission.likelihoods(aggregates)
    without = collective_forward_backward(hmm, aggregates, table)
    np.testing.assert_array_equal(without.transitions, expected.transitions)


def test_a_group_that_agrees_counts_as_so_many_single_people():
    rng = np.random.default_rng(5)
    model, symbols = oracles.random_model(rng, 3, 3), np.array([2, 0, 1, 1])
    alone = oracles.individual_counts(model, symbols)
    seven = oracles.Counts(*(7 * np.asarray(part) for part in vars(alone).values()))
    assert_meets(model, 7 * oracles.histogram(symbols, 3)[None], seven, 1e-11)


def local_case(n_groups, size, seed=0):
    """A row of 7 cells; people move anywhere and are seen no further than the next cell."""
    rng = np.random.default_rng(seed)
    near = np.abs(np.subtract.outer(range(7), range(7))) <= 1
    rows = rng.random((7, 7)) + 2 * np.eye(7)
    emit = near * np.where(np.eye(7) > 0, 0.9, 0.05)
    model = (
        rng.dirichlet(np.ones(7)),
        rows / rows.sum(axis=1, keepdims=True),
        emit / emit.sum(axis=1, keepdims=True),
    )
    groups = [oracles.random_histograms(rng, model, size, 3) for _ in range(n_groups)]
    return model, groups


@pytest.mark.parametrize("size", [3, 5])
def test_a_local_sensor_gives_each_sequence_its_own_states(size):
    model, groups = local_case(4, size)
    assert any((group.sum(axis=0) == 0).any() for group in groups), "all cells are seen"
    counts = [oracles.collective_counts(model, group) for group in groups]
    assert_meets(model, np.array(groups), sum(counts[1:], counts[0]))


def test_many_sequences_are_the_sum_of_single_ones():
    model, groups = local_case(23, 9, seed=1)
    aggregates = Aggregates.from_dense(groups)
    together, shown = infer(model, aggregates)
    alone = [infer(model, Aggregates.from_dense(group[None])) for group in groups]
    np.testing.assert_allclose(
        together.transitions, sum(one.transitions for one, _ in alone), atol=1e-10
    )
    np.testing.assert_allclose(shown, sum(seen for _, seen in alone), atol=1e-10)
    assert together.free_energy == pytest.approx(sum(one.free_energy for one, _ in alone))
    assert together.sweeps == pytest.approx(np.mean([one.sweeps for one, _ in alone]))
    again, _ = infer(model, aggregates)
    np.testing.assert_array_equal(together.transitions, again.transitions)


def test_marginals_agree():
    for seed, (length, size) in enumerate([(2, 5), (3, 8), (6, 30), (12, 200)]):
        model, histograms = random_case(seed, 4, 5, length, size)
        expected, shown = infer(model, Aggregates.from_dense(histograms[None]))
        people = shown.sum(axis=1)  # in each state, over all steps
        close = {"atol": 1e-10 * size * length, "rtol": 0}
        assert expected.start.sum() == pytest.approx(size, abs=1e-9)
        assert expected.transitions.sum() == pytest.approx(size * (length - 1), abs=1e-9)
        np.testing.assert_allclose(
            people - expected.transitions.sum(axis=0), expected.start, **close
        )
        np.testing.assert_allclose(shown.sum(axis=0), histograms.sum(axis=0), **close)
        if length == 2:
            np.testing.assert_allclose(expected.transitions.sum(axis=1), expected.start, **close)


def test_the_emission_counts_of_a_token_sum_to_its_count():
    """As printed, the paper's n_tt(x, o) lacks y_t(o) and would sum to 1 or to M."""
    model, _ = random_case(3, 3, 3, 2, 2)
    histograms = np.array([[1.0, 6.0, 0.0], [2.0, 2.0, 3.0]])
    _, shown = infer(model, Aggregates.from_dense(histograms[None]))
    np.testing.assert_allclose(shown.sum(axis=0), [3, 8, 3], atol=1e-10)


def test_sequences_of_unequal_size_add_up():
    rng = np.random.default_rng(11)
    model = oracles.random_model(rng, 3, 3)
    other = oracles.random_model(rng, 3, 3)
    groups = [oracles.random_histograms(rng, other, size, 3) for size in (1, 2, 5, 40)]
    total = sum(
        (oracles.collective_counts(model, g) for g in groups[1:]),
        oracles.collective_counts(model, groups[0]),
    )
    assert_meets(model, np.array(groups), total)


def test_twice_the_sequences_twice_the_counts():
    model, histograms = random_case(12, 3, 4, 4, 6)
    once, shown = infer(model, Aggregates.from_dense(histograms[None]))
    thrice, shown3 = infer(model, Aggregates.from_dense(np.repeat(histograms[None], 3, axis=0)))
    np.testing.assert_allclose(thrice.transitions, 3 * once.transitions, rtol=1e-12)
    np.testing.assert_allclose(shown3, 3 * shown, rtol=1e-12, atol=1e-300)
    assert thrice.free_energy == pytest.approx(3 * once.free_energy, rel=1e-12)
    assert thrice.sweeps == once.sweeps


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_a_step_that_nobody_observed_is_left_out(missing):
    rng = np.random.default_rng(20 + missing)
    model = oracles.random_model(rng, 2, 3)
    symbols = np.array([1, 0, 2])
    symbols[missing] = -1
    alone = oracles.individual_counts(model, symbols)
    assert_meets(model, oracles.histogram(symbols, 3)[None], alone, 1e-12)
    histograms = np.array([[2.0, 3.0, 1.0], [0.0, 1.0, 5.0], [2.0, 2.0, 2.0]])
    histograms[missing] = 0
    assert_meets(model, histograms[None], oracles.collective_counts(model, histograms))


def test_two_steps_that_nobody_observed():
    model, histograms = random_case(30, 2, 2, 4, 6)
    histograms[1:3] = 0
    assert_meets(model, histograms[None], oracles.collective_counts(model, histograms))


def test_structural_zeros_stay_zero_and_the_rest_is_right():
    start = np.array([0.5, 0.5, 0.0])
    trans = np.array([[0.7, 0.3, 0.0], [0.0, 0.5, 0.5], [0.4, 0.0, 0.6]])
    emit = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.3, 0.7]])
    model = start, trans, emit
    histograms = np.array([[2.0, 3.0, 0.0], [1.0, 3.0, 1.0], [1.0, 2.0, 2.0]])
    expected = assert_meets(model, histograms[None], oracles.collective_counts(model, histograms))
    assert expected.start[2] == 0
    assert (expected.transitions[trans == 0] == 0).all()
    _, shown = infer(model, Aggregates.from_dense(histograms[None]))
    assert (shown[emit == 0] == 0).all()


def test_messages_of_an_earlier_call_save_sweeps():
    model, histograms = random_case(40, 4, 4, 6, 30)
    aggregates = Aggregates.from_dense(histograms[None])
    cold, _ = infer(model, aggregates)
    warm, _ = infer(model, aggregates, messages=cold.messages)
    assert warm.sweeps < cold.sweeps
    np.testing.assert_allclose(warm.transitions, cold.transitions, atol=1e-10)
    assert warm.free_energy == pytest.approx(cold.free_energy, abs=1e-10)
    halfway, _ = infer(model, aggregates, tol=1e-3)
    kept = halfway.messages.copy()
    on, _ = infer(model, aggregates, messages=halfway.messages)
    np.testing.assert_array_equal(halfway.messages, kept)
    np.testing.assert_allclose(on.transitions, cold.transitions, atol=1e-9)
    nearby = tuple(0.9 * part + 0.1 / part.shape[-1] for part in model)
    moved, _ = infer(nearby, aggregates, messages=cold.messages)
    afresh, _ = infer(nearby, aggregates)
    np.testing.assert_allclose(moved.transitions, afresh.transitions, atol=1e-9)


def test_messages_from_where_an_observation_was_out_of_reach_do_no_harm_at_one_person():
    model, _ = random_case(41, 3, 3, 2, 1)
    singles = aggregate([[0, 2, 1]], 1, 3)
    warm, _ = infer(model, singles, messages=np.array([1e-30, 7.0, 3.0]))
    oracle = oracles.individual_counts(model, [0, 2, 1])
    np.testing.assert_allclose(warm.transitions, oracle.transitions, atol=1e-12)
    assert warm.free_energy == pytest.approx(oracle.free_energy, abs=1e-12)


def test_the_limit_of_sweeps_is_reported():
    model, histograms = random_case(42, 3, 3, 4, 20)
    both = Aggregates.from_dense(np.array([histograms, histograms]))
    expected, _ = infer(model, both, max_sweeps=1)
    assert expected.n_unconverged == 2
    assert expected.sweeps == 1


def test_inputs_are_not_changed():
    model, histograms = random_case(43, 3, 3, 4, 20)
    aggregates = Aggregates.from_dense(histograms[None])
    before = [part.copy() for part in (*model, aggregates.count, aggregates.symbol)]
    infer(model, aggregates)
    for part, kept in zip((*model, aggregates.count, aggregates.symbol), before, strict=True):
        np.testing.assert_array_equal(part, kept)


def test_without_the_emission_no_emission_is_counted():
    model, histograms = random_case(44, 3, 3, 3, 4)
    hmm, aggregates = HMM.categorical(*model), Aggregates.from_dense(histograms[None])
    expected = collective_forward_backward(
        hmm, aggregates, hmm.emission.likelihoods(aggregates), **TIGHT
    )
    assert expected.emission is None
    counted, _ = infer(model, aggregates)
    np.testing.assert_array_equal(expected.transitions, counted.transitions)


# ---------------------------------------------------------------- what cannot happen

SEEN = np.eye(3)
"""Every state shows itself."""


@pytest.mark.parametrize("others", [[0, 1, 1], [2, 0, 1]])
def test_an_observation_out_of_reach_is_named(others):
    # From 0 one only stays or goes to 1; 2 leads everywhere.
    trans = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4]])
    singles = aggregate([others, [2, 2, 0], [0, 1, 2]], 1, 3)
    with refused(
        "observation-impossible", "symbol 2 in sequence 2 at step 2", kind=UnreachableError
    ) as raised:
        infer((np.array([0.4, 0.3, 0.3]), trans, SEEN), singles)
    assert isinstance(raised.value, InputError)


def test_the_first_of_several_impossible_sequences_is_named():
    people = np.zeros((40, 2), dtype=int)
    people[[17, 31, 38], 1] = 2
    trans = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4]])
    with refused(
        "observation-impossible", "symbol 2 in sequence 17 at step 1", kind=UnreachableError
    ):
        infer((np.full(3, 1 / 3), trans, SEEN), aggregate(people, 1, 3))


def test_a_start_out_of_reach_is_named():
    singles = aggregate([[0, 0], [1, 1]], 1, 3)
    model = np.array([1.0, 0.0, 0.0]), np.full((3, 3), 1 / 3), SEEN
    with refused(
        "observation-impossible", "symbol 1 in sequence 1 at step 0", kind=UnreachableError
    ):
        infer(model, singles)


def test_one_of_a_group_out_of_reach_is_named():
    histograms = np.array([[[2.0, 2.0, 0.0], [1.0, 2.0, 1.0]]])
    trans = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4]])
    with refused(
        "observation-impossible", "symbol 2 in sequence 0 at step 1", kind=UnreachableError
    ):
        infer((np.full(3, 1 / 3), trans, SEEN), Aggregates.from_dense(histograms))


def test_a_group_whose_counts_do_not_fit_is_refused_or_reported():
    """Each symbol can happen, but with no moves the shares of the two steps cannot both hold."""
    model = np.array([0.5, 0.5]), np.eye(2), np.eye(2)
    aggregates = Aggregates.from_dense([[[3.0, 1.0], [1.0, 3.0]]])
    try:
        expected, _ = infer(model, aggregates, max_sweeps=500)
    except UnreachableError:
        return
    assert expected.n_unconverged == 1


def test_a_symbol_that_no_state_emits_is_named():
    emit = np.array([[0.5, 0.5, 0.0], [0.1, 0.9, 0.0]])
    with refused("symbol-impossible", "Symbol 2 was observed (sequence 1, step 2)"):
        infer(
            (np.full(2, 0.5), np.full((2, 2), 0.5), emit), aggregate([[0, 1, 0], [1, 0, 2]], 1, 3)
        )


def test_another_number_of_symbols_is_refused():
    model, _ = random_case(1, 2, 3, 2, 2)
    with refused("symbols-differ", "has 3 symbols but the observations count over 4"):
        infer(model, aggregate([[0, 1]], 1, 4))


# ---------------------------------------------------------------- numbers at the edge


def test_long_sequences_keep_their_numbers():
    rng = np.random.default_rng(50)
    model = oracles.random_model(rng, 3, 6)
    symbols = rng.integers(6, size=400)
    oracle = oracles.log_forward_backward(model, symbols)
    expected, shown = infer(model, aggregate(symbols[None], 1, 6))
    assert expected.free_energy == pytest.approx(oracle.free_energy, rel=1e-12)
    np.testing.assert_allclose(expected.transitions, oracle.transitions, atol=1e-9)
    np.testing.assert_allclose(shown, oracle.emission, atol=1e-9)


def test_long_sequences_of_big_groups_converge():
    rng = np.random.default_rng(51)
    model = oracles.random_model(rng, 3, 4)
    people = HMM.categorical(*model).sample(1000, 200, 1)[0]
    expected, shown = infer(model, aggregate(people, 1000, 4), tol=1e-11)
    assert expected.n_unconverged == 0
    assert np.isfinite(expected.free_energy)
    np.testing.assert_allclose(
        shown.sum(axis=1) - expected.transitions.sum(axis=0), expected.start, atol=1e-5
    )
    assert expected.transitions.sum() == pytest.approx(199_000, abs=1e-4)


@pytest.mark.parametrize("tiny", [1e-100, 1e-300])
def test_probabilities_next_to_nothing_still_count(tiny):
    """Symbol 1 is all but impossible, yet it was seen: who saw it is decided by the ratio 1 : 3."""
    model = (
        np.array([0.5, 0.5]),
        np.array([[0.6, 0.4], [0.2, 0.8]]),
        np.array([[1 - tiny, tiny], [1 - 3 * tiny, 3 * tiny]]),
    )
    expected, _ = infer(model, aggregate([[1, 1]], 1, 2))
    joint = np.array([[0.3 * 1 * 1, 0.2 * 1 * 3], [0.1 * 3 * 1, 0.4 * 3 * 3]])
    np.testing.assert_allclose(expected.transitions, joint / joint.sum(), rtol=1e-10)
    assert expected.free_energy == pytest.approx(-np.log(joint.sum()) - 2 * np.log(tiny))
    group, _ = infer(model, Aggregates.from_dense([[[3.0, 1.0], [1.0, 3.0]]]))
    milder = (*model[:2], np.array([[1.0, 1e-9], [1.0, 3e-9]]))
    alike = oracles.collective_counts(milder, np.array([[3.0, 1.0], [1.0, 3.0]]))
    np.testing.assert_allclose(group.transitions, alike.transitions, atol=1e-6)


@pytest.mark.parametrize("length", [100, 150])
def test_evidence_too_improbable_for_a_double_is_told_apart_from_impossible(length):
    """Nobody moves: many symbols speak for state 0, then one that only state 1 can show."""
    model = (
        np.array([0.5, 0.5]),
        np.eye(2),
        np.array([[0.998, 0.002, 0.0], [0.002, 0.5, 0.498]]),
    )
    group = aggregate([[0] * length + [2]], 1, 3)
    if length == 100:
        expected, _ = infer(model, group)
        by_hand = np.log(0.5) + length * np.log(0.002) + np.log(0.498)
        assert expected.free_energy == pytest.approx(-by_hand, rel=1e-12)
    else:
        with refused("sequence-improbable", "sequence 0", kind=UnreachableError):
            infer(model, group)


@pytest.mark.parametrize("local", [False, True])
def test_people_who_showed_the_same_are_counted_as_often_as_they_are(local):
    rng = np.random.default_rng(5)
    d = 12
    emission = np.eye(d) * 0.9 + np.roll(np.eye(d), 1, axis=1) * 0.1
    model = (
        rng.dirichlet(np.ones(d)), rng.dirichlet(np.ones(d), d),
        emission if local else rng.dirichlet(np.ones(d), d),
    )  # fmt: skip
    symbols = rng.integers(0, 3, (40, 3))
    seen = aggregate(symbols, 1, d)
    # The second step of every third person was not observed.
    keep = (seen.step_of_token % 9) != 4
    counts = np.bincount(seen.step_of_token[keep], minlength=len(seen.indptr) - 1)
    seen = Aggregates(
        np.concatenate([[0], np.cumsum(counts)]), seen.symbol[keep], seen.count[keep], 3, d
    )
    assert seen.distinct.aggregates.n_sequences < seen.n_sequences

    together, shown = infer(model, seen)

    one_by_one = [infer(model, seen[k : k + 1]) for k in range(seen.n_sequences)]
    for name in ("start", "transitions", "free_energy"):
        summed = sum(getattr(expected, name) for expected, _ in one_by_one)
        np.testing.assert_allclose(getattr(together, name), summed, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(shown, sum(each for _, each in one_by_one), atol=1e-12)


@pytest.mark.parametrize("full", [False, True])
def test_of_equal_sequences_that_cannot_happen_the_first_is_named(full):
    noise = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]] if full else np.eye(3)
    model = [0.5, 0.5, 0.0], [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1.0]], noise
    symbols = [[0, 1], [1, 1], [0, 1], [1, 2], [1, 1], [0, 2], [1, 2], [0, 1], [1, 1], [0, 1]]
    with refused("observation-impossible", "sequence 3 ", kind=UnreachableError):
        infer(model, aggregate(symbols, 1, 3))


def test_transitions_that_may_only_be_read_are_enough():
    """As those are that came to a worker of a cluster."""
    model, histograms = random_case(3, 3, 3, 3, 4)
    hmm, groups = HMM.categorical(*model), Aggregates.from_dense([histograms])
    table = hmm.emission.likelihoods(groups)
    expected = collective_forward_backward(hmm, groups, table)
    hmm.transmat.flags.writeable = False
    again = collective_forward_backward(hmm, groups, table)
    np.testing.assert_array_equal(expected.transitions, again.transitions)
