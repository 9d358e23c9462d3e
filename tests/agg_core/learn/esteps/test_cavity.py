import numpy as np
import pytest

from agg_core.base.errors import UnreachableError
from agg_core.learn.esteps.cavity import cavity_forward_backward
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.model.aggregates import Aggregates, aggregate
from agg_core.model.emissions import TokenLikelihoods
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused

TIGHT = {"tol": 1e-12, "max_sweeps": 5000}


def infer(model, aggregates, **choices):
    """Expected counts with the emission, and the emission's counts as (d, S)."""
    return oracles.expected_by(cavity_forward_backward, model, aggregates, **{**TIGHT, **choices})


def assert_meets(model, histograms, oracle, atol=1e-10, **choices):
    """All that the E-step says of histograms (K, T, S) equals the oracle's counts."""
    expected, shown = infer(model, Aggregates.from_dense(histograms), **choices)
    np.testing.assert_allclose(expected.start, oracle.start, atol=atol, rtol=0)
    np.testing.assert_allclose(expected.transitions, oracle.transitions, atol=atol, rtol=0)
    np.testing.assert_allclose(shown, oracle.emission, atol=atol, rtol=0)
    assert expected.free_energy == pytest.approx(oracle.free_energy, abs=atol)
    assert expected.n_unconverged == 0
    return expected


def random_case(seed, d, n_symbols, length, size):
    rng = np.random.default_rng(seed)
    model = oracles.random_model(rng, d, n_symbols)
    return model, oracles.random_histograms(rng, model, size, length)


# ---------------------------------------------------------------- the oracle itself


@pytest.mark.parametrize(
    ("d", "n_symbols", "length", "size"), [(2, 3, 2, 2), (2, 2, 3, 2), (3, 2, 2, 2), (2, 2, 2, 3)]
)
def test_the_oracle_agrees_with_adding_up_what_each_person_may_do(d, n_symbols, length, size):
    model, histograms = random_case(size, d, n_symbols, length, size)
    one = oracles.group_counts(model, histograms)
    other = oracles.group_counts_by_person(model, histograms)
    np.testing.assert_allclose(one.start, other.start, atol=1e-12)
    np.testing.assert_allclose(one.transitions, other.transitions, atol=1e-12)
    np.testing.assert_allclose(one.emission, other.emission, atol=1e-12)
    assert one.free_energy == pytest.approx(other.free_energy, abs=1e-12)


# ---------------------------------------------------------------- where it is exact


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("left_out", [None, 1.0, 0.0])
def test_one_person_is_forward_backward_in_one_sweep(seed, left_out):
    rng = np.random.default_rng(seed)
    model = oracles.random_model(rng, 3, 4)
    symbols = rng.integers(4, size=5)
    oracle = oracles.individual_counts(model, symbols)
    histograms = oracles.histogram(symbols, 4)[None]
    expected = assert_meets(model, histograms, oracle, 1e-10, left_out=left_out)
    assert expected.sweeps == 1


def test_long_sequences_keep_their_numbers():
    rng = np.random.default_rng(50)
    model = oracles.random_model(rng, 3, 6)
    symbols = rng.integers(6, size=400)
    oracle = oracles.log_forward_backward(model, symbols)
    expected, shown = infer(model, aggregate(symbols[None], 1, 6))
    assert expected.free_energy == pytest.approx(oracle.free_energy, rel=1e-12)
    np.testing.assert_allclose(expected.transitions, oracle.transitions, atol=1e-9)
    np.testing.assert_allclose(shown, oracle.emission, atol=1e-9)


def test_one_step_is_a_multinomial():
    model, histograms = random_case(1, 3, 3, 1, 5)
    expected = assert_meets(model, histograms[None], oracles.group_counts(model, histograms))
    assert expected.transitions.sum() == 0


def test_a_group_that_always_agrees_counts_as_so_many_single_people():
    """All in one cell at each step: one token faces one token and nothing is left to match."""
    model, symbols = oracles.random_model(np.random.default_rng(5), 3, 3), np.array([2, 0, 1, 1])
    alone = oracles.individual_counts(model, symbols)
    expected, shown = infer(model, Aggregates.from_dense(7 * oracles.histogram(symbols, 3)[None]))
    assert expected.sweeps == 1
    np.testing.assert_allclose(expected.transitions, 7 * alone.transitions, atol=1e-10)
    np.testing.assert_allclose(shown, 7 * alone.emission, atol=1e-10)
    half, _ = infer(model, Aggregates.from_dense(0.5 * oracles.histogram(symbols, 3)[None]))
    np.testing.assert_allclose(half.transitions, alone.transitions / 2, atol=1e-10)


def test_one_cell_in_the_middle_leaves_no_choice_either():
    """Who was where at the middle step depends on nobody else: people are independent."""
    model = oracles.random_model(np.random.default_rng(6), 3, 3)
    histograms = np.array([[2.0, 2.0, 0.0], [0.0, 4.0, 0.0]])
    pair = [oracles.individual_counts(model, [first, 1]) for first in (0, 1)]
    expected, _ = infer(model, Aggregates.from_dense(histograms[None]))
    by_hand = 2 * pair[0].transitions + 2 * pair[1].transitions
    np.testing.assert_allclose(expected.transitions, by_hand, atol=1e-10)


@pytest.mark.parametrize("size", [2, 4])
def test_transitions_that_forget_leave_people_independent(size):
    start, trans, emit = oracles.random_model(np.random.default_rng(7), 3, 3)
    model = start, np.tile(trans[0], (3, 1)), emit
    histograms = oracles.random_histograms(np.random.default_rng(8), model, size, 3)
    # Tokens of one symbol that stand for several people are several tokens of one person each.
    for shape in (histograms, np.eye(3)[:2] * size):
        oracle = oracles.group_counts(model, shape)
        expected, _ = infer(model, Aggregates.from_dense(shape[None]))
        np.testing.assert_allclose(expected.start, oracle.start, atol=1e-10)
        np.testing.assert_allclose(expected.transitions, oracle.transitions, atol=1e-10)
        assert expected.free_energy == pytest.approx(oracle.free_energy, abs=1e-9)


def test_two_people_by_hand():
    """Two cells seen without error, one person in each, twice: both stay or both swap.

    With s the chance to stay, the chance b that both do is s^2 / (s^2 + (1 - s)^2). The fixed
    point has b (1 - e b) / ((1 - b) (1 - e (1 - b))) = s / (1 - s): for e = 0 that is b = s, for
    e = 1 nothing but b = 1 is left, and for e = 2 / 3 it is a quadratic equation.
    """
    stay = 0.6
    model = np.array([0.5, 0.5]), np.array([[stay, 1 - stay], [1 - stay, stay]]), np.eye(2)
    swap = Aggregates.from_dense(np.ones((1, 2, 2)))
    fractional, _ = infer(model, swap)
    # With r = s / (1 - s): b (3 - 2 b) = r (1 - b) (1 + 2 b).
    r = stay / (1 - stay)
    a, b, c = 2 * r - 2, 3 - r, -r
    root = (-b + np.sqrt(b * b - 4 * a * c)) / (2 * a)
    np.testing.assert_allclose(fractional.transitions, [[root, 1 - root], [1 - root, root]])
    truth = stay**2 / (stay**2 + (1 - stay) ** 2)
    assert abs(root - truth) < 0.02
    cfb, _ = infer(model, swap, left_out=0.0)
    np.testing.assert_allclose(cfb.transitions, [[0.6, 0.4], [0.4, 0.6]], atol=1e-10)
    bethe, _ = infer(model, swap, left_out=1.0)
    np.testing.assert_allclose(bethe.transitions, np.eye(2), atol=1e-6)


def test_without_leaving_out_it_is_collective_forward_backward():
    for seed, (length, size) in enumerate([(2, 5), (3, 8), (5, 30)]):
        model, histograms = random_case(seed, 4, 5, length, size)
        aggregates = Aggregates.from_dense(histograms[None])
        hmm = HMM.categorical(*model)
        cfb = collective_forward_backward(
            hmm, aggregates, hmm.emission.likelihoods(aggregates), tol=1e-13, max_sweeps=10_000
        )
        ours, _ = infer(model, aggregates, left_out=0.0)
        np.testing.assert_allclose(ours.transitions, cfb.transitions, atol=1e-9)
        np.testing.assert_allclose(ours.start, cfb.start, atol=1e-9)


# ---------------------------------------------------------------- how near it is elsewhere


def tiny_problems():
    """50 groups, M = 2..5, T = 2..4, d = 2..4, with their exact counts and both E-steps'."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        size, length, d = 2 + seed % 4, int(rng.integers(2, 5)), int(rng.integers(2, 5))
        model = oracles.random_model(rng, d, d)
        histograms = oracles.random_histograms(rng, model, size, length)
        yield {"M": size, "T": length, "d": d}, model, histograms


@pytest.fixture(scope="module")
def tiny_errors():
    """Per problem: the settings, L1 errors of the flows (cavity, CFB), free energies."""
    rows = []
    for settings, model, histograms in tiny_problems():
        oracle = oracles.group_counts(model, histograms)
        hmm, aggregates = HMM.categorical(*model), Aggregates.from_dense(histograms[None])
        likelihoods = hmm.emission.likelihoods(aggregates)
        cavity, cfb = (
            infer_by(hmm, aggregates, likelihoods, tol=1e-9, max_sweeps=1000)
            for infer_by in (cavity_forward_backward, collective_forward_backward)
        )
        assert cavity.n_unconverged == 0
        errors = [np.abs(e.transitions - oracle.transitions).sum() for e in (cavity, cfb)]
        rows.append((settings, np.array(errors), cavity.free_energy, oracle.free_energy))
    return rows


def test_expected_flows_are_nearer_to_the_truth_than_those_of_cfb(tiny_errors):
    total = sum(errors for _, errors, _, _ in tiny_errors)
    assert total[0] < 0.5 * total[1]
    for name in ("M", "T", "d"):
        for value in {settings[name] for settings, *_ in tiny_errors}:
            group = sum(errors for s, errors, _, _ in tiny_errors if s[name] == value)
            assert group[0] < 1.1 * group[1], (name, value)


def test_the_free_energy_is_near_the_log_probability_of_the_counts(tiny_errors):
    ours, exact = np.array([row[2:] for row in tiny_errors]).T
    assert np.corrcoef(ours, exact)[0, 1] > 0.999
    np.testing.assert_allclose(ours, exact, atol=0.5)


# ---------------------------------------------------------------- what always holds


@pytest.mark.parametrize("left_out", [None, 0.0])
@pytest.mark.parametrize("gap", [False, True])
def test_moves_are_the_slope_of_the_free_energy(left_out, gap):
    """The free energy is stationary in the messages: d F / d log A_xy = - moves from x to y."""
    model, histograms = random_case(3, 3, 4, 4, 6)
    if gap:
        histograms[1] = 0
    aggregates = Aggregates.from_dense(histograms[None])
    expected, _ = infer(model, aggregates, left_out=left_out)

    def energy(part, place, log_step):
        changed = [p.copy() for p in model]
        changed[part][place] *= np.exp(log_step)
        hmm = HMM.categorical(*model)
        for name, value in zip(("startprob", "transmat"), changed[:2], strict=True):
            object.__setattr__(hmm, name, value)  # rows need not sum to 1 here
        table = HMM.categorical(*model).emission.likelihoods(aggregates)
        return cavity_forward_backward(
            hmm, aggregates, table, left_out=left_out, **TIGHT
        ).free_energy

    step = 1e-5
    for part, counts in enumerate((expected.start, expected.transitions)):
        slope = np.array(
            [
                (energy(part, place, step) - energy(part, place, -step)) / (2 * step)
                for place in np.ndindex(counts.shape)
            ]
        ).reshape(counts.shape)
        np.testing.assert_allclose(-slope, counts, atol=1e-6)


def test_people_are_neither_lost_nor_invented():
    for seed, (length, size) in enumerate([(2, 5), (3, 8), (6, 30), (5, 200)]):
        model, histograms = random_case(seed, 4, 5, length, size)
        loose, _ = infer(model, Aggregates.from_dense(histograms[None]), max_sweeps=1)
        assert loose.start.sum() == pytest.approx(size, abs=1e-9)
        assert loose.transitions.sum() == pytest.approx(size * (length - 1), abs=1e-9)
        expected, shown = infer(model, Aggregates.from_dense(histograms[None]))
        assert expected.n_unconverged == 0
        if length == 2:
            np.testing.assert_allclose(expected.transitions.sum(axis=1), expected.start, atol=1e-9)
        arrived = shown.sum(axis=1) - expected.transitions.sum(axis=0)
        np.testing.assert_allclose(arrived, expected.start, atol=1e-8)
        np.testing.assert_allclose(shown.sum(axis=0), histograms.sum(axis=0), atol=1e-9)


def test_several_tokens_of_one_person_are_one_token_of_several():
    model, histograms = random_case(9, 3, 3, 3, 6)
    once, _ = infer(model, Aggregates.from_dense(histograms[None]))
    hmm = HMM.categorical(*model)
    # As for continuous observations: every person has a symbol of their own.
    symbols = np.concatenate([np.repeat(np.arange(3), row.astype(int)) for row in histograms])
    singles = Aggregates.from_samples(np.zeros((1, 3, 6, 1)))
    table = hmm.emission.likelihoods(Aggregates.from_dense(histograms[None]))
    apart = TokenLikelihoods(table.indptr, table.states, table.values, symbols, 3)
    scaled = TokenLikelihoods(
        table.indptr, table.states, table.values / 2, symbols, 3, np.full(3, np.log(2))
    )
    expected = cavity_forward_backward(hmm, singles, apart, **TIGHT)
    np.testing.assert_allclose(expected.transitions, once.transitions, atol=1e-8)
    ways = sum(np.log(np.arange(1, n + 1)).sum() for n in histograms.ravel())
    assert expected.free_energy == pytest.approx(once.free_energy - ways, abs=1e-8)
    halved = cavity_forward_backward(hmm, singles, scaled, **TIGHT)
    assert halved.free_energy == pytest.approx(expected.free_energy, abs=1e-8)


def test_sequences_add_up_and_threads_do_not_matter():
    rng = np.random.default_rng(11)
    model = oracles.random_model(rng, 3, 3)
    groups = np.array([oracles.random_histograms(rng, model, size, 3) for size in (1, 2, 5, 40)])
    parts = [infer(model, Aggregates.from_dense(group[None]))[0] for group in groups]
    together, _ = infer(model, Aggregates.from_dense(groups))
    again, _ = infer(model, Aggregates.from_dense(groups))
    np.testing.assert_allclose(
        together.transitions, sum(part.transitions for part in parts), atol=1e-10
    )
    assert together.free_energy == pytest.approx(sum(part.free_energy for part in parts))
    np.testing.assert_array_equal(together.transitions, again.transitions)


def test_real_valued_counts_and_wide_tables():
    """Counts below one person, and more states than the tokens of a step can come from."""
    soft = np.array([[0.3, 0.9, 1.3], [1.1, 1.4, 0.0], [0.25, 0.25, 2.0]])
    model, _ = random_case(12, 3, 3, 3, 1)
    expected, _ = infer(model, Aggregates.from_dense(soft[None]))
    assert expected.n_unconverged == 0
    assert expected.transitions.sum() == pytest.approx(5.0)
    rng = np.random.default_rng(13)
    start, trans, emit = np.full(40, 1 / 40), rng.dirichlet(np.ones(40), 40), np.eye(40)
    symbols = np.array([3, 17, 30])
    group, _ = infer((start, trans, emit), aggregate([symbols, symbols[::-1]], 2, 40))
    near = np.zeros((40, 40))
    for a, b in ((3, 17), (30, 17), (17, 30), (17, 3)):
        near[a, b] = 1.0
    np.testing.assert_allclose(group.transitions, near, atol=1e-10)


# ---------------------------------------------------------------- steps that nobody observed


@pytest.mark.parametrize("missing", [[0], [1], [2], [0, 1], [1, 2], [0, 3], [1, 2, 3], [0, 1, 3]])
def test_a_step_that_nobody_observed_is_exact_at_one_person(missing):
    rng = np.random.default_rng(20)
    model = oracles.random_model(rng, 3, 3)
    symbols = np.array([1, 0, 2, 2])
    symbols[missing] = -1
    alone = oracles.individual_counts(model, symbols)
    assert_meets(model, oracles.histogram(symbols, 3)[None], alone)


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_a_group_at_a_step_that_nobody_observed(missing):
    """One cell at each step observed: exact, whatever the people did in between."""
    model, _ = random_case(21, 3, 3, 4, 3)
    histograms = 3 * oracles.histogram([1, 0, 2, 1], 3)
    histograms[missing] = 0
    oracle = oracles.group_counts(model, histograms)
    expected, _ = infer(model, Aggregates.from_dense(histograms[None]))
    np.testing.assert_allclose(expected.transitions, oracle.transitions, atol=1e-10)
    np.testing.assert_allclose(expected.start, oracle.start, atol=1e-10)


# ---------------------------------------------------------------- messages, limits, the impossible


def test_messages_of_an_earlier_call_save_sweeps():
    model, histograms = random_case(40, 4, 4, 6, 30)
    aggregates = Aggregates.from_dense(histograms[None])
    cold, _ = infer(model, aggregates, tol=1e-8)
    kept = cold.messages.copy()
    warm, _ = infer(model, aggregates, messages=cold.messages, tol=1e-8)
    assert warm.sweeps <= 2 < cold.sweeps
    np.testing.assert_allclose(warm.transitions, cold.transitions, atol=1e-6)
    np.testing.assert_array_equal(cold.messages, kept)


def test_the_limit_of_sweeps_is_reported():
    model, histograms = random_case(42, 3, 3, 4, 20)
    both = Aggregates.from_dense(np.array([histograms, histograms]))
    expected, _ = infer(model, both, max_sweeps=1)
    assert expected.n_unconverged == 2
    assert expected.sweeps == 1


def test_an_observation_out_of_reach_is_named():
    trans = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4]])
    model = np.array([0.4, 0.3, 0.3]), trans, np.eye(3)
    singles = aggregate([[0, 1, 1], [2, 2, 0], [0, 1, 2]], 1, 3)
    with refused(
        "observation-impossible", "symbol 2 in sequence 2 at step 2", kind=UnreachableError
    ):
        infer(model, singles)
    group = Aggregates.from_dense([[[2.0, 2.0, 0.0], [1.0, 2.0, 1.0]]])
    with refused(
        "observation-impossible", "symbol 2 in sequence 0 at step 1", kind=UnreachableError
    ):
        infer(model, group)


def test_a_group_whose_counts_do_not_fit_is_refused_or_reported():
    """Each symbol can happen, but nobody moves and the counts differ: no matching exists."""
    model = np.array([0.5, 0.5]), np.eye(2), np.eye(2)
    aggregates = Aggregates.from_dense([[[3.0, 1.0], [1.0, 3.0]]])
    try:
        expected, _ = infer(model, aggregates, max_sweeps=500)
    except UnreachableError:
        return
    assert expected.n_unconverged == 1


def test_a_share_outside_0_to_1_is_refused():
    model, histograms = random_case(1, 2, 2, 2, 2)
    with refused("value-out-of-range", "left_out"):
        infer(model, Aggregates.from_dense(histograms[None]), left_out=1.5)


# ---------------------------------------------------------------- oscillation


def sharp_problem(seed, sharp):
    """A model of nearly certain rows and a group that follows it."""
    rng = np.random.default_rng([seed, int(100 * sharp)])
    d, length, size = (int(rng.integers(2, most)) for most in (5, 5, 7))
    rows = (rng.dirichlet(np.full(d, sharp)), *rng.dirichlet(np.full(d, sharp), (2, d)))
    model = tuple((part + 1e-6) / (part + 1e-6).sum(axis=-1, keepdims=True) for part in rows)
    return model, oracles.random_histograms(rng, model, size, length)


@pytest.mark.parametrize(("seed", "sharp"), [(52, 1.0), (33, 0.3), (38, 0.1), (60, 0.03)])
def test_belief_propagation_that_oscillates_is_damped(seed, sharp):
    """With the whole own term left out, belief propagation swings to and fro on these groups."""
    model, histogram = sharp_problem(seed, sharp)
    hmm, group = HMM.categorical(*model), Aggregates.from_dense([histogram])
    table = hmm.emission.likelihoods(group)
    swinging, damped = (
        cavity_forward_backward(
            hmm, group, table, left_out=1.0, max_sweeps=1000, damping=damping
        )
        for damping in (False, True)
    )  # fmt: skip
    assert swinging.n_unconverged == 1
    assert swinging.sweeps == 1000
    assert damped.n_unconverged == 0
    by_default = cavity_forward_backward(hmm, group, table, max_sweeps=1000, damping=False)
    assert by_default.n_unconverged == 0, "what is left out by default does not swing"
