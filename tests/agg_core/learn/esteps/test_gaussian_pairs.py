from itertools import islice, pairwise

import numpy as np
import pytest
from scipy import optimize, sparse

from agg_core.base.errors import UnreachableError
from agg_core.learn.esteps import gaussian_pairs
from agg_core.learn.esteps.gaussian_pairs import DITHER, gaussian_pairs_steps
from agg_core.model.aggregates import Aggregates
from agg_core.model.hmm import HMM
from tests.agg_core import oracles
from tests.faults import refused

GRID = np.array([[abs(a // 3 - b // 3) <= 1 and abs(a % 3 - b % 3) <= 1 for a in range(9)]
                 for b in range(9)])  # fmt: skip


def model_from(emission, transmat=None, startprob=None):
    """A start that knows the emission and, unless told, nothing else."""
    return oracles.start_knowing(emission, startprob, transmat)


def stay_or_go(stay, allowed):
    """Rows that stay with one chance and go to every other allowed cell with the same."""
    goes = allowed * (1.0 - np.eye(len(allowed)))
    return stay * np.eye(len(allowed)) + (1 - stay) * goes / goes.sum(axis=1, keepdims=True)


def random_moves(rng, allowed, stay=0.8):
    goes = allowed * (1 - np.eye(len(allowed))) * rng.gamma(1.0, size=allowed.shape)
    goes /= goes.sum(axis=1, keepdims=True)
    return stay * np.eye(len(allowed)) + (1 - stay) * goes


def sample_groups(rng, sizes, startprobs, transmat, emission, length):
    """Counts (K, T, S); startprobs (d,) or (K, d)."""
    return oracles.moving_groups(rng, sizes, (startprobs, transmat, emission), length)


def last_of(aggregates, hmm, n_iter=400, tol=1e-6, **options):
    for state in islice(gaussian_pairs_steps(aggregates, hmm, **options), n_iter):
        if state.change < tol:
            break
    return state


def moved(transmat, people):
    return float(people @ (1 - np.diag(transmat)))


# ------------------------------------------------------------------------------- right values


def value_of(pairs, transmat, emission=None, shares=None):
    """Minus the log-likelihood as it is written down, the posterior from ``shares`` (d,)."""
    d = len(transmat)
    emission = np.eye(d) if emission is None else emission
    shares = np.full(d, 1 / d) if shares is None else shares
    given = (shares[:, None] * emission / (shares @ emission)).T
    predicted = given @ transmat @ emission
    total = 0.0
    for now, following in pairs:
        mean = now @ predicted
        spread = sum(
            people * (np.diag(row) - np.outer(row, row))
            for people, row in zip(now, predicted, strict=True)
        )
        n = len(mean)
        ridged = spread + DITHER * np.eye(n)
        # On the plane of changes that sum to zero, where all happens.
        plane = np.linalg.svd(np.ones((1, n)))[2][1:]
        inverse = np.linalg.inv(plane @ ridged @ plane.T)
        error = plane @ (following - mean)
        total += 0.5 * (
            error @ inverse @ error
            + DITHER * np.trace(inverse)
            + np.linalg.slogdet(2 * np.pi * plane @ ridged @ plane.T)[1]
        )
    return total


def objective_at(histograms, transmat, emission=None):
    """The objective of transmat itself: it is the start, and it is kept."""
    emission = np.eye(len(transmat)) if emission is None else emission
    steps = gaussian_pairs_steps(
        Aggregates.from_dense(histograms), model_from(emission, transmat), fixed=("transmat",),
        prior=0.0,
    )  # fmt: skip
    return next(steps).objective


def test_two_states_by_hand():
    # Ten people in cell 0 of whom each leaves with 1/5, ten in cell 1 each with 1/2: the first
    # cell gets 8 + 5 with variance 1.6 + 2.5, and 10 were seen. Counts move along (1, -1), where
    # a change of one has length sqrt 2: error 9 * 2, variance 2 * 4.1.
    transmat = [[0.8, 0.2], [0.5, 0.5]]
    variance = 2 * 4.1 + DITHER
    by_hand = 0.5 * (18 / variance + DITHER / variance + np.log(2 * np.pi * variance))
    assert objective_at([[[10, 10], [10, 10]]], np.array(transmat)) == pytest.approx(by_hand)


def test_every_group_and_step_counts_with_its_own_size():
    rng = np.random.default_rng(0)
    _, transmat, _ = oracles.random_model(rng, 4, 4)
    sizes = np.array([3, 20, 20, 400])
    histograms = sample_groups(rng, sizes, np.full(4, 0.25), transmat, np.eye(4), 5)
    histograms[2] = histograms[1]
    pairs = [pair for group in histograms for pair in pairwise(group)]
    assert objective_at(histograms, transmat) == pytest.approx(value_of(pairs, transmat))


def test_noise_and_other_numbers_of_symbols():
    rng = np.random.default_rng(1)
    startprob, transmat, emission = oracles.random_model(rng, 3, 4)
    pairs = rng.multinomial(30, np.full(4, 0.25), size=(6, 2))
    # The very shares of the model: pooled counts in proportion to what they show.
    shown = startprob @ emission
    scaled = pairs.astype(float)
    scaled[:, 0] = 30 * shown
    assert objective_at(scaled, transmat, emission) == pytest.approx(
        value_of(scaled, transmat, emission, startprob), rel=1e-6
    )


def problem_of(histograms, hmm, prior=0.7):
    aggregates = Aggregates.from_dense(histograms)
    table = gaussian_pairs.symbol_table(aggregates, hmm)
    probs = gaussian_pairs.state_shares(aggregates, hmm, table, keep_start=False)
    emission = hmm.emission.emissionprob
    return gaussian_pairs._Problem.of(aggregates, hmm, emission, table, probs, prior)


@pytest.mark.parametrize("noisy", [False, True])
@pytest.mark.parametrize("differ", [False, True])
def test_gradient_is_that_of_finite_differences(noisy, differ):
    rng = np.random.default_rng(2)
    emission = stay_or_go(0.9, GRID) if noisy else np.eye(9)
    shares = rng.dirichlet(np.ones(9), size=5) if differ else np.full(9, 1 / 9)
    sizes = np.array([4, 30, 30, 100, 1000])
    histograms = sample_groups(rng, sizes, shares, random_moves(rng, GRID), emission, 3)
    hmm = model_from(emission, stay_or_go(0.6, GRID))
    problem = problem_of(histograms, hmm)
    x = problem.logits(hmm)
    x = x + rng.normal(size=x.shape)
    _, gradient = problem.objective(x)
    steps = 1e-5 * np.eye(len(x))
    numeric = [(problem.objective(x + h)[0] - problem.objective(x - h)[0]) / 2e-5 for h in steps]
    np.testing.assert_allclose(gradient, numeric, atol=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("seed", range(3))
def test_minimum_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    allowed = np.ones((4, 4), dtype=bool)
    emission = stay_or_go(0.9, allowed)
    histograms = sample_groups(
        rng, np.full(30, 200), rng.dirichlet(np.ones(4), size=30), random_moves(rng, allowed),
        emission, 3,
    )  # fmt: skip
    hmm = model_from(emission, stay_or_go(0.6, allowed))
    problem = problem_of(histograms, hmm, prior=1.0)
    found = optimize.minimize(
        problem.objective, problem.logits(hmm), jac=True, method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 9000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 30},
    )  # fmt: skip
    state = last_of(Aggregates.from_dense(histograms), hmm, n_iter=1000, tol=1e-9, prior=1.0)
    assert state.objective == pytest.approx(found.fun, rel=1e-9)
    np.testing.assert_allclose(state.transmat, problem.transmat(found.x), atol=1e-3)


def test_a_single_pair_of_many_people_is_a_binomial():
    # All start in cell 0: the most likely share that stays is the observed one, but for a term of
    # order one in the variance.
    state = last_of(
        Aggregates.from_dense([[[100_000, 0], [83_000, 17_000]]]), model_from(np.eye(2)), prior=0.0
    )
    np.testing.assert_allclose(state.transmat, [[0.83, 0.17], [0.5, 0.5]], atol=1e-4)
    assert state.n_empty == 1


# ---------------------------------------------------------------------------------- recovery


def standard_error_of_movement(problem, transmat, people):
    """From the curvature of the objective at the truth, by finite differences."""
    logits = np.log(transmat[problem.support])
    x = logits * np.broadcast_to(problem.scale, transmat.shape)[problem.support]
    steps = 1e-4 * np.eye(len(x))
    hessian = [(problem.objective(x + h)[1] - problem.objective(x - h)[1]) / 2e-4 for h in steps]
    slope = [
        (moved(problem.transmat(x + h), people) - moved(problem.transmat(x - h), people)) / 2e-4
        for h in steps
    ]
    return float(np.sqrt(slope @ np.linalg.pinv(np.array(hessian), rcond=1e-8) @ slope))


@pytest.mark.parametrize("stay", [0.6, 0.95])
@pytest.mark.parametrize("size", [5, 20, 1000])
def test_movement_is_right_at_every_size_of_group(size, stay):
    rng = np.random.default_rng(size)
    allowed = np.ones((3, 3), dtype=bool)
    truth, people = random_moves(rng, allowed), np.array([0.5, 0.3, 0.2])
    histograms = sample_groups(rng, np.full(1500, size), people, truth, np.eye(3), 2)
    state = last_of(
        Aggregates.from_dense(histograms), model_from(np.eye(3), stay_or_go(stay, allowed))
    )
    problem = problem_of(histograms, model_from(np.eye(3), truth), prior=0.0)
    error = standard_error_of_movement(problem, truth, people)
    # Five in a million chances of a false alarm; few people are not normal, hence the factor.
    assert abs(moved(state.transmat, people) - moved(truth, people)) < 4.5 * error * (
        1.5 if size == 5 else 1.0
    )
    assert error < 0.1 * moved(truth, people)


@pytest.mark.parametrize("differ", [False, True])
def test_movement_is_right_through_noise_even_if_groups_differ(differ):
    rng = np.random.default_rng(5)
    emission, truth = stay_or_go(0.95, GRID), random_moves(rng, GRID)
    shares = rng.dirichlet(np.full(9, 2.0), size=20) if differ else np.full(9, 1 / 9)
    histograms = sample_groups(rng, np.full(20, 1800), shares, truth, emission, 20)
    hmm = model_from(emission, stay_or_go(0.6, GRID))
    state = last_of(Aggregates.from_dense(histograms), hmm, n_iter=150, tol=1e-4)
    people = histograms[:, :-1].sum(axis=(0, 1)) / histograms[:, :-1].sum()
    assert moved(state.transmat, people) == pytest.approx(moved(truth, people), rel=0.05)
    assert (state.transmat[~GRID] == 0).all()
    assert np.abs(state.transmat - truth).sum(axis=1).mean() < 0.1


@pytest.mark.parametrize(("alpha", "expected"), [(None, np.inf), (12.0, 12.0)])
def test_concentration_of_groups(alpha, expected):
    rng = np.random.default_rng(6)
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    own = shares if alpha is None else rng.dirichlet(alpha * shares, size=4000)
    counts = rng.multinomial(np.full(4000, 50), own)
    found = gaussian_pairs._concentration(sparse.csr_array(counts * 1.0), shares[None])
    assert found == pytest.approx(expected, rel=0.1)


# --------------------------------------------------------------------------------- invariants


@pytest.fixture
def case():
    """A few noisy groups on a grid, moves to neighbours only."""
    rng = np.random.default_rng(7)
    emission = stay_or_go(0.9, GRID)
    startprob = np.append(np.full(8, 1 / 8), 0.0)
    histograms = sample_groups(rng, np.full(6, 90), startprob, random_moves(rng, GRID), emission, 4)
    return model_from(emission, stay_or_go(0.6, GRID), startprob), histograms


def test_objective_never_rises_rows_stay_on_their_simplex_and_zeros_stay(case):
    hmm, histograms = case
    states = list(islice(gaussian_pairs_steps(Aggregates.from_dense(histograms), hmm), 400))
    assert all(after.objective <= before.objective for before, after in pairwise(states))
    assert states[-1].objective < states[0].objective
    assert [state.iteration for state in states[:3]] == [1, 2, 3]
    for state in states[::50]:
        assert (state.transmat >= 0).all()
        np.testing.assert_allclose(state.transmat.sum(axis=1), 1, atol=1e-12)
        assert (state.transmat[~GRID] == 0).all()
        assert state.startprob[8] == 0
        assert state.startprob.sum() == pytest.approx(1, abs=1e-12)
    assert max(state.change for state in states[:10]) > 1e-3
    assert states[-1].change < 1e-5


def test_it_stands_still_at_the_bottom():
    histograms = [[[30, 10], [25, 15]], [[5, 35], [10, 30]], [[20, 20], [18, 22]]]
    steps = gaussian_pairs_steps(Aggregates.from_dense(histograms), model_from(np.eye(2)))
    last = list(islice(steps, 150))[-2:]
    assert last[1].change == 0
    np.testing.assert_array_equal(last[0].transmat, last[1].transmat)


def test_rows_without_noise_that_nobody_leaves_do_not_diverge():
    # Nobody moves: the likelihood without dither is infinite at transmat = 1.
    histograms = np.tile([[4, 0, 2], [4, 0, 2]], (50, 1, 1))
    state = last_of(Aggregates.from_dense(histograms), model_from(np.eye(3)))
    assert np.isfinite(state.objective)
    assert state.n_empty == 1
    np.testing.assert_allclose(np.diag(state.transmat)[[0, 2]], 1, atol=0.02)
    np.testing.assert_array_equal(state.transmat[1], np.full(3, 1 / 3))


def test_fixed_parts_are_kept(case):
    hmm, histograms = case
    aggregates = Aggregates.from_dense(histograms)
    free = next(gaussian_pairs_steps(aggregates, hmm))
    assert np.abs(free.startprob - hmm.startprob).max() > 1e-3
    kept = next(gaussian_pairs_steps(aggregates, hmm, fixed=("startprob", "emission")))
    np.testing.assert_array_equal(kept.startprob, hmm.startprob)
    kept = list(islice(gaussian_pairs_steps(aggregates, hmm, fixed=("transmat",)), 2))
    np.testing.assert_array_equal(kept[1].transmat, hmm.transmat)
    np.testing.assert_array_equal(kept[1].startprob, free.startprob)
    assert (kept[1].change, kept[1].objective) == (0, kept[0].objective)


def test_a_pair_with_a_missing_step_is_left_out():
    rng = np.random.default_rng(8)
    _, transmat, _ = oracles.random_model(rng, 3, 3)
    histograms = sample_groups(rng, np.full(4, 30), np.full(3, 1 / 3), transmat, np.eye(3), 4)
    histograms[:2, 1] = 0
    pairs = [pair for group in histograms for pair in pairwise(group) if min(map(sum, pair)) > 0]
    assert len(pairs) == 4 * 3 - 2 * 2
    assert objective_at(histograms, transmat) == pytest.approx(value_of(pairs, transmat))


@pytest.mark.parametrize("histograms", [[[[3, 1]], [[2, 2]]], [[[2, 1], [0, 0], [1, 2]]]])
def test_without_any_pair_transmat_keeps_the_start(histograms):
    hmm = model_from(np.eye(2), [[0.9, 0.1], [0.4, 0.6]])
    state = next(gaussian_pairs_steps(Aggregates.from_dense(histograms), hmm))
    np.testing.assert_array_equal(state.transmat, hmm.transmat)
    np.testing.assert_allclose(state.startprob, np.sum(histograms, axis=0)[0] / np.sum(
        histograms, axis=(0, 2))[0], atol=1e-12)  # fmt: skip
    assert (state.change, state.objective) == (0, 0)
    assert state.n_empty == (2 if len(histograms[0]) > 1 else 0)


def test_noisy_totals_count_as_shares_of_the_stated_size():
    rng = np.random.default_rng(9)
    histograms = rng.multinomial(12, np.full(3, 1 / 3), size=(10, 3)).astype(float)
    hmm = model_from(np.eye(3))
    plain = last_of(Aggregates.from_dense(histograms), hmm, n_iter=20)
    histograms[:, 1] *= 1.5
    scaled = last_of(Aggregates.from_dense(histograms, sizes=np.full(10, 12.0)), hmm, n_iter=20)
    np.testing.assert_allclose(scaled.transmat, plain.transmat, atol=1e-6)


def test_a_strong_prior_keeps_the_start(case):
    hmm, histograms = case
    aggregates = Aggregates.from_dense(histograms)
    strong = last_of(aggregates, hmm, prior=1e9)
    np.testing.assert_allclose(strong.transmat, hmm.transmat, atol=1e-4)


# ------------------------------------------------------------------------------------- errors


def test_errors_say_what_to_do():
    aggregates = Aggregates.from_dense([[[2, 1], [1, 2]]])
    with refused("unknown-part"):
        next(gaussian_pairs_steps(aggregates, model_from(np.eye(2)), fixed=("start",)))
    with refused("symbols-differ", "has 3 symbols but the observations count over 2"):
        next(gaussian_pairs_steps(aggregates, model_from(np.eye(3))))
    with refused("value-out-of-range", "prior"):
        next(gaussian_pairs_steps(aggregates, model_from(np.eye(2)), prior=-1.0))
    half = np.full(2, 0.5)
    places = HMM.gaussian(half, np.full((2, 2), 0.5), [[0.0], [1.0]], [[[1.0]], [[1.0]]])
    with refused("symbols-needed"):
        next(gaussian_pairs_steps(Aggregates.from_samples([[[[0.0]], [[1.0]]]]), places))


@pytest.mark.parametrize(
    ("histogram", "step"),
    [([[0, 0, 4], [0, 0, 4]], 0), ([[2, 2, 0], [1, 0, 3]], 1), ([[4, 0, 0], [2, 0, 2]], 1)],
)
def test_an_observation_that_cannot_happen_is_named(histogram, step):
    # Cell 2 can be reached from cell 1 in the last case, but nobody is there.
    from_1 = step == 1 and histogram[0][1] == 0
    transmat = [[0.5, 0.5, 0], [0.5, 0.25, 0.25] if from_1 else [0.5, 0.5, 0], [0, 0.5, 0.5]]
    hmm = model_from(np.eye(3), transmat, [0.5, 0.5, 0])
    with refused(
        "observation-impossible", f"symbol 2 in sequence 0 at step {step}", kind=UnreachableError
    ):
        next(gaussian_pairs_steps(Aggregates.from_dense([histogram]), hmm))
