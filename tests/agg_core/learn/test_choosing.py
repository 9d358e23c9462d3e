"""The weight of the prior: its score against scipy's normal, and what is chosen of whom."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from agg_core.learn import choosing
from agg_core.learn.choosing import PRIORS, n_trial_steps, prediction_scores, prior_steps
from agg_core.learn.table import PRIOR
from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from agg_core.model.hmm import HMM

DITHER = 0.25
D = 5


def by_hand(aggregates, hmm):
    """Bayes, mean and covariance person by person, and scipy's density less what noise adds."""
    emission, counts = hmm.emission.emissionprob, aggregates.to_dense()
    scores = np.zeros(len(counts))
    for t in range(aggregates.length - 1):
        state = hmm.startprob @ np.linalg.matrix_power(hmm.transmat, t)
        for k, (y, z) in enumerate(zip(counts[:, t], counts[:, t + 1], strict=True)):
            mean, cov = np.zeros(len(z)), DITHER * np.eye(len(z))
            if not (y.any() and z.any()):
                continue
            for symbol, people in enumerate(y):
                if people:
                    behind = state * emission[:, symbol]
                    p = behind / behind.sum() @ hmm.transmat @ emission
                    mean += people * p
                    cov += people * (np.diag(p) - np.outer(p, p))
            density = multivariate_normal(mean, cov).logpdf(z) + len(z) / 2 * np.log(2 * np.pi)
            scores[k] += density - DITHER / 2 * np.trace(np.linalg.inv(cov))
    return scores


def chain(stay=0.8, attraction=(1.0, 1.0, 4.0, 1.0, 1.0), noise=0.1):
    """Gravity without distance, seen in another cell now and then."""
    away = np.tile(attraction, (D, 1)) * ~np.eye(D, dtype=bool)
    transmat = stay * np.eye(D) + (1 - stay) * away / away.sum(axis=1, keepdims=True)
    emission = (1 - noise) * np.eye(D) + noise * (1 - np.eye(D)) / (D - 1)
    return HMM.categorical(np.full(D, 1 / D), transmat, emission)


def groups_of(hmm, n, size, seed, length=3):
    people, grouping = np.random.default_rng(seed).spawn(2)
    return aggregate(hmm.sample(n, length, people)[0], size, D, grouping)


def chosen(groups, hmm, **choices):
    steps, n = prior_steps(
        groups, hmm, inference="auto", fixed=("emission",), random_state=0, **choices
    ), 0  # fmt: skip
    while True:
        try:
            assert next(steps).iteration == n + 1
        except StopIteration as end:
            assert n == n_trial_steps(groups)
            return end.value
        n += 1


@pytest.mark.parametrize("size", [1, 4, 40])
def test_the_score_is_that_of_scipys_normal(size):
    groups = groups_of(chain(), 120, size, 3)
    other = chain(0.6, (1.0, 2.0, 3.0, 4.0, 5.0), 0.2)
    np.testing.assert_allclose(prediction_scores(groups, other), by_hand(groups, other), rtol=1e-9)


def test_a_step_that_nobody_observed_is_left_out():
    counts = groups_of(chain(), 24, 4, 1).to_dense()
    counts[2, 1] = counts[4, 0] = 0
    groups = Aggregates.from_dense(counts)
    scores = prediction_scores(groups, chain())
    np.testing.assert_allclose(scores, by_hand(groups, chain()), rtol=1e-9)
    assert scores[2] == 0


@pytest.mark.parametrize("size", [1, 3, 50])
@pytest.mark.parametrize("other", [chain(0.7), chain(0.9), chain(noise=0.2), chain(noise=0.05)])
def test_the_score_is_proper_at_every_size(size, other):
    """The model that made the groups predicts them better on average than its neighbours."""
    groups = groups_of(chain(), 6_000 * min(size, 5), size, 7)
    gain = prediction_scores(groups, chain()) - prediction_scores(groups, other)
    assert gain.mean() > 0


def test_rows_that_are_gravity_take_a_strong_prior_and_others_a_weak_one():
    true = chain()
    start = chain(0.5, np.ones(D))
    assert chosen(groups_of(true, 900, 15, 2), start).prior >= 50
    rng = np.random.default_rng(4)
    rows = rng.dirichlet(np.full(D, 0.15), size=D)
    odd = HMM(true.startprob, rows, true.emission)
    found = chosen(groups_of(odd, 1200, 3, 2), start)
    assert found.prior <= 10
    assert "best" in found.reason


def test_too_few_groups_choose_nothing():
    groups = groups_of(chain(), 20, 4, 0)
    assert (groups.n_sequences, n_trial_steps(groups)) == (5, 0)
    assert chosen(groups, chain()).prior == PRIOR


@pytest.mark.parametrize(
    ("n_groups", "n_folds", "n_kept"), [(6, 3, 6), (40, 3, 40), (41, 1, 10), (400, 1, 100)]
)
def test_parts_are_kept_aside_once(n_groups, n_folds, n_kept):
    groups = groups_of(chain(), 2 * n_groups, 2, 0)
    kept = choosing.kept_aside(groups)
    assert len(kept) == n_folds
    assert np.sum(kept) == n_kept
    assert np.max(np.sum(kept, axis=0)) == 1


def test_positions_choose_too():
    rng = np.random.default_rng(0)
    hmm = HMM.gaussian([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.0], [8.0]], [1.0, 1.0])
    places = hmm.sample(60, 3, rng)[0]
    assert chosen(aggregate_points(places, 5, 0), hmm).prior in PRIORS
