"""Sparse transitions of moves that may be: every use of them gives what whole ones give."""

import numpy as np
import pytest
from scipy import sparse

from agg_core.base.moves import entries, moves_like, whole
from agg_core.learn.calibration import calibrated_steps, simulated_groups
from agg_core.learn.choosing import prediction_scores
from agg_core.learn.em import accelerated_em_steps, em_steps
from agg_core.learn.esteps.cfb import collective_forward_backward
from agg_core.learn.esteps.sampling import sampled_counts, sampled_moves
from agg_core.learn.estimator import AggregateHMM
from agg_core.learn.gravity import gravity_rows
from agg_core.learn.learners import learn, learner_steps, least_squares_start, log_likelihood
from agg_core.learn.mstep import Pull
from agg_core.learn.noise import noise_steps
from agg_core.learn.table import LEARNERS
from agg_core.learn.worlds import SimulatedWorlds
from agg_core.model.aggregates import aggregate
from agg_core.model.emissions import CategoricalEmission, Misplacing
from agg_core.model.hmm import HMM, allowed_moves, distance_decay_transmat
from agg_core.space.build import Grid
from tests.faults import refused

GRID = Grid.from_bbox(139.5, 35.5, 139.8, 35.74, rows=4, cols=5)
REACH = 9_000.0
D = GRID.n_cells


def near_model():
    transmat = distance_decay_transmat(GRID, reach_m=REACH)
    emission = Misplacing.on_grid(GRID, is_sparse=True).emission(0.1)
    return HMM(np.full(D, 1 / D), transmat, emission)


def whole_model(hmm):
    return HMM(
        hmm.startprob,
        whole(hmm.transmat),
        CategoricalEmission(whole(hmm.emission.emissionprob)),
    )


NEAR = near_model()
WHOLE = whole_model(NEAR)


def groups(n=600, size=6, length=3, seed=0):
    observations, _ = NEAR.sample(n, length, seed)
    return aggregate(observations, size, D, np.random.default_rng([seed, 1]))


def expected(inference, hmm, aggregates, **choices):
    return inference(hmm, aggregates, hmm.emission.likelihoods(aggregates), **choices)


def assert_like(near, full, **tolerance):
    """A model with sparse tables is one with whole ones, and has kept its pattern."""
    assert near.transmat.nnz == NEAR.transmat.nnz
    np.testing.assert_allclose(near.startprob, full.startprob, **tolerance)
    np.testing.assert_allclose(whole(near.transmat), full.transmat, **tolerance)
    np.testing.assert_allclose(
        whole(near.emission.emissionprob), full.emission.emissionprob, **tolerance
    )


# ------------------------------------------------------------------------------ models


def test_moves_within_a_reach_are_those_of_cells_that_near():
    places = GRID.centroids_m
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.testing.assert_array_equal(allowed_moves(GRID, REACH).toarray() > 0, apart <= REACH)
    out = allowed_moves(GRID, REACH, outside=True).toarray()
    assert out[-1].all()
    assert out[:, -1].all()


@pytest.mark.parametrize("outside", [False, True])
def test_a_reach_beyond_the_grid_is_none(outside):
    near = distance_decay_transmat(GRID, outside=outside, reach_m=1e6)
    full = distance_decay_transmat(GRID, outside=outside)
    np.testing.assert_allclose(near.toarray(), full, rtol=1e-14)


@pytest.mark.parametrize("reach", [0.0, -1.0, np.nan, np.inf])
def test_a_reach_that_is_none_is_refused(reach):
    with refused("value-out-of-range", str(reach)):
        allowed_moves(GRID, reach)


def test_cells_out_of_reach_of_all_others_keep_their_people():
    near = distance_decay_transmat(GRID, reach_m=1.0)
    np.testing.assert_array_equal(near.toarray(), np.eye(D))


def test_people_of_a_sparse_model_are_those_of_the_whole_one():
    for found, same in zip(NEAR.sample(50, 4, 7), WHOLE.sample(50, 4, 7), strict=True):
        np.testing.assert_array_equal(found, same)
    order = np.random.default_rng(0).permutation(D)
    again, full = NEAR.permuted(order), WHOLE.permuted(order)
    np.testing.assert_array_equal(again.transmat.toarray(), full.transmat)
    np.testing.assert_array_equal(again.emission.emissionprob.toarray(), full.emission.emissionprob)


@pytest.mark.parametrize(
    ("change", "code"),
    [(lambda v: -v, "not-probabilities"), (lambda v: v / 2, "sum-not-one"),
     (lambda v: v * np.nan, "not-probabilities")],
)  # fmt: skip
def test_sparse_chances_are_checked_as_whole_ones_are(change, code):
    wrong = moves_like(NEAR.transmat, change(NEAR.transmat.data))
    with refused(code):
        HMM.categorical(NEAR.startprob, wrong, np.eye(D))


# ----------------------------------------------------------------------------- E-steps


@pytest.mark.parametrize("size", [1, 6, 60])
@pytest.mark.parametrize("missing", [False, True])
def test_cfb(size, missing):
    dense = groups(size=size).to_dense()
    if missing:
        dense[::3, 1] = 0
        dense[1::3, 0] = 0
    aggregates = type(groups()).from_dense(dense)
    near, full = (
        expected(collective_forward_backward, hmm, aggregates, with_emission=True)
        for hmm in (NEAR, WHOLE)
    )
    np.testing.assert_allclose(near.transitions.toarray(), full.transitions, atol=1e-9)
    np.testing.assert_allclose(near.start, full.start, atol=1e-9)
    np.testing.assert_allclose(near.emission, full.emission, atol=1e-9)
    assert near.free_energy == pytest.approx(full.free_energy, rel=1e-12)
    assert near.sweeps == full.sweeps


def test_sampling_has_the_same_posterior():
    aggregates = groups(n=60)
    found = []
    for hmm in (NEAR, WHOLE):
        draws = [
            entries_of(expected(sampled_counts, hmm, aggregates, max_sweeps=400, seed=seed))
            for seed in range(8)
        ]
        found.append((np.mean(draws, axis=0), np.std(draws, axis=0, ddof=1) / np.sqrt(8)))
    (near, near_error), (full, full_error) = found
    noise = np.hypot(near_error, full_error) + 1e-3
    assert noise.max() < 0.2
    np.testing.assert_array_less(np.abs(near - full), 7 * noise)


def entries_of(counts):
    return np.concatenate([counts.start, whole(counts.transitions).ravel()])


def test_sampling_of_several_sparse_tables_is_apart_by_table():
    aggregates = groups(n=120, length=3)
    which = np.zeros((aggregates.n_sequences, 2), dtype=np.int64)
    which[:, 1] = 1
    stays = moves_like(NEAR.transmat, np.where(entries(NEAR.transmat) < 0.6, 1e-9, 1.0))
    found = sampled_moves(
        NEAR.startprob, [NEAR.transmat, stays], which, aggregates,
        NEAR.emission.likelihoods(aggregates), max_sweeps=50,
    )  # fmt: skip
    first, second = found.moves
    assert first.sum() == pytest.approx(120, abs=1)
    assert second.diagonal().sum() / second.sum() > first.diagonal().sum() / first.sum()


def test_an_observation_out_of_reach_is_named_by_either():
    far = np.zeros((1, 2, D))
    far[0, 0, 0] = far[0, 1, D - 1] = 2
    aggregates = type(groups()).from_dense(far)
    exact = HMM(NEAR.startprob, NEAR.transmat, CategoricalEmission(sparse.csr_array(np.eye(D))))
    for inference in (collective_forward_backward, sampled_counts):
        with refused("observation-impossible", str(D - 1)):
            expected(inference, exact, aggregates)


# ------------------------------------------------------------------------------ M-step


@pytest.mark.parametrize("seed", range(3))
def test_gravity(seed):
    rng = np.random.default_rng(seed)
    shape = distance_decay_transmat(GRID, reach_m=REACH)
    moves = moves_like(shape, rng.random(shape.nnz) * 5 * (rng.random(shape.nnz) < 0.7))
    near, full = gravity_rows(moves, shape), gravity_rows(moves.toarray(), shape.toarray())
    np.testing.assert_allclose(near.toarray(), full, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("steps", [em_steps, accelerated_em_steps])
@pytest.mark.parametrize("fixed", [("emission",), ()])
@pytest.mark.parametrize("prior", [0.0, 3.0])
def test_em(steps, fixed, prior):
    aggregates, streams = groups(), []
    for hmm in (NEAR, WHOLE):
        pull = Pull(hmm.transmat, prior) if prior else None
        streams.append(
            steps(
                aggregates, hmm, inference=collective_forward_backward, fixed=fixed, pull=pull,
                sweep_tol=1e-9, max_sweeps=100,
            )
        )  # fmt: skip
    for _, near, full in zip(range(7), *streams, strict=False):
        assert_like(near.hmm, full.hmm, atol=1e-7)
        assert near.change == pytest.approx(full.change, rel=1e-4, abs=1e-7)


def test_calibration():
    aggregates = groups()
    near, full = (
        calibrated_steps(
            aggregates, hmm, inference=collective_forward_backward, fixed=("emission",),
            random_state=1,
        )
        for hmm in (NEAR, WHOLE)
    )  # fmt: skip
    for _, one, other in zip(range(6), near, full, strict=False):
        assert_like(one.hmm, other.hmm, atol=1e-7)
    drawn, truth, _ = simulated_groups(NEAR, aggregates, 3)
    assert truth.transitions.sum() == aggregates.n_individuals * 2
    assert drawn.n_individuals == aggregates.n_individuals


# ---------------------------------------------------------------------------- learners


@pytest.mark.parametrize("name", [row.name for row in LEARNERS.own.values()])
def test_learners_take_sparse_transitions_or_refuse_them(name):
    aggregates, row = groups(size=6 if LEARNERS[name].groups else 1), LEARNERS[name]
    if not row.near:
        with refused("learner-needs-all-moves"):
            learner_steps(name, aggregates, NEAR, fixed=("emission",))
        return
    found, monitor = learn(
        aggregates, NEAR, inference=name, fixed=("emission",), n_iter=5, random_state=0
    )
    assert monitor.reason != "failed"
    assert found.transmat.nnz == NEAR.transmat.nnz
    np.testing.assert_allclose(found.transmat.sum(axis=1), 1.0)


def test_sampling_learns_what_it_learns_from_whole_ones():
    aggregates = groups(n=4000)
    found = [
        learn(aggregates, hmm, inference="sampling", fixed=("emission",), n_iter=30, random_state=0)
        for hmm in (NEAR, WHOLE)
    ]
    near, full = (hmm for hmm, _ in found)
    apart = np.abs(whole(near.transmat) - full.transmat).sum(axis=1).mean()
    assert apart < 0.1
    assert near.transmat.diagonal().mean() == pytest.approx(0.6, abs=0.05)


def test_the_estimator_keeps_sparse_tables():
    aggregates = groups()
    given = {"transmat": NEAR.transmat, "emissionprob": NEAR.emission.emissionprob}
    model = AggregateHMM(D, init=given, fixed=("emission",), n_iter=3, random_state=0)
    model.fit(aggregates)
    assert model.choice_.learner == "sampling"
    assert model.transmat_.nnz == NEAR.transmat.nnz
    people = np.array([[0, 1, 1], [3, 3, 4]])
    near = AggregateHMM(D, init=given, fixed=("emission",), n_iter=2, random_state=0).fit(people)
    assert near.choice_.learner == "cfb"
    assert near.predict(people).shape == (2, 3)
    assert np.isfinite(near.score(people))


def test_predictions_are_scored_alike():
    aggregates = groups(n=300)
    near, full = (prediction_scores(aggregates, hmm) for hmm in (NEAR, WHOLE))
    np.testing.assert_allclose(near, full, rtol=1e-10)


def test_the_noise_of_single_people_is_learned_alike():
    people = [groups(n=400, size=1)]
    found = []
    for is_sparse, hmm in ((True, NEAR), (False, WHOLE)):
        steps = noise_steps(people, hmm, Misplacing.on_grid(GRID, is_sparse=is_sparse))
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found.append(end.value.amount)
                break
    assert found[0] == pytest.approx(found[1], rel=1e-6)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: list(noise_steps([groups()], NEAR, Misplacing.on_grid(GRID, is_sparse=True))),
        lambda: log_likelihood(NEAR, groups()),
        lambda: least_squares_start(groups(), NEAR, fixed=("emission",)),
    ],
)
def test_what_needs_all_moves_says_so(asked):
    with refused("learner-needs-all-moves"):
        asked()


def test_worlds_have_people_who_make_allowed_moves():
    aggregates = groups()
    worlds = SimulatedWorlds(NEAR, aggregates, random_state=0)
    again, moves = worlds.drawn()
    assert len(moves) == 2
    assert again.n_individuals == aggregates.n_individuals
    for step in moves:
        assert step.nnz == NEAR.transmat.nnz
        assert step.sum() == pytest.approx(600, abs=3)


def test_memory_does_not_grow_with_the_square_of_the_states():
    import tracemalloc

    grid = Grid.from_bbox(139.5, 35.5, 139.9, 35.9, rows=60, cols=60)
    transmat = distance_decay_transmat(grid, reach_m=1_500.0)
    emission = Misplacing.on_grid(grid, is_sparse=True).emission(0.05)
    d = grid.n_cells
    hmm = HMM(np.full(d, 1 / d), transmat, emission)
    observations, _ = hmm.sample(2_000, 3, 0)
    aggregates = aggregate(observations, 40, d, np.random.default_rng(0))
    for name in ("cfb", "sampling"):
        tracemalloc.start()
        learn(aggregates, hmm, inference=name, fixed=("emission",), n_iter=2, random_state=0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8 * d * d / 2, name
