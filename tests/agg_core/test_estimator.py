import numpy as np
import pytest

from agg_core.aggregates import Aggregates, aggregate
from agg_core.errors import InputError
from agg_core.estimator import AggregateHMM
from agg_core.synthetic import random_hmm
from tests.agg_core import oracles

NAMES = ("startprob", "transmat", "emissionprob")


def values(model):
    return dict(zip(NAMES, model, strict=True))


def kept(model, **choices):
    """An estimator that holds the model as it is."""
    symbols = np.zeros((1, 2), dtype=int)
    n_symbols = np.shape(model[2])[1]
    choices = {"init": values(model), "n_iter": 0, **choices}
    return AggregateHMM(len(model[0]), **choices).fit(aggregate(symbols, 1, n_symbols))


def data(size, seed=0, n=120, length=4):
    model = random_hmm(3, 4, seed)
    return aggregate(kept(model).sample(n, length, seed)[0], size, 4, seed), model


def learned(estimator):
    return estimator.startprob_, estimator.transmat_, estimator.emissionprob_


@pytest.mark.parametrize("size", [1, 10])
@pytest.mark.parametrize("free", [0, 1, 2])
def test_fixed_parts_stand_still_and_the_free_one_moves(size, free):
    aggregates, _ = data(size)
    start = oracles.random_model(np.random.default_rng(1), 3, 4)
    fixed = [part for i, part in enumerate(("startprob", "transmat", "emission")) if i != free]
    found = AggregateHMM(3, fixed=fixed, init=values(start), n_iter=5).fit(aggregates)
    for i, (now, before) in enumerate(zip(learned(found), start, strict=True)):
        if i == free:
            assert np.abs(now - before).max() > 1e-3
            np.testing.assert_allclose(now.sum(axis=-1), 1)
        else:
            np.testing.assert_allclose(now, before, atol=1e-15)


def test_no_iterations_keep_the_start():
    model = oracles.random_model(np.random.default_rng(2), 3, 4)
    found = kept(model)
    for now, before in zip(learned(found), model, strict=True):
        np.testing.assert_allclose(now, before, atol=1e-15)
    assert found.monitor_.history == []
    assert found.monitor_.reason == "limit"


def test_fit_gives_itself_and_repeats_with_the_seed():
    aggregates, _ = data(5)
    one = AggregateHMM(3, n_iter=4, random_state=1)
    assert one.fit(aggregates) is one
    two = AggregateHMM(3, n_iter=4, random_state=1).fit(aggregates)
    other = AggregateHMM(3, n_iter=4, random_state=2).fit(aggregates)
    for a, b in zip(learned(one), learned(two), strict=True):
        np.testing.assert_array_equal(a, b)
    assert np.abs(one.transmat_ - other.transmat_).max() > 1e-6


@pytest.mark.parametrize("size", [1, 10])
def test_the_best_of_several_starts_is_kept(size):
    aggregates, _ = data(size)
    rng = np.random.default_rng(8)
    single = [AggregateHMM(3, n_iter=15, random_state=rng).fit(aggregates) for _ in range(6)]
    energies = [one.monitor_.history[-1] for one in single]
    assert np.argmin(energies) > 0, "the first is best: the case shows nothing"
    best = single[int(np.argmin(energies))]
    found = AggregateHMM(3, n_iter=15, n_init=6, random_state=8).fit(aggregates)
    assert found.monitor_.history == best.monitor_.history
    np.testing.assert_array_equal(found.transmat_, best.transmat_)


def test_the_monitor_tells_why_it_ended():
    aggregates, model = data(1)
    limit = AggregateHMM(3, init=values(model), n_iter=2, tol=1e-9).fit(aggregates)
    assert limit.monitor_.reason == "limit"
    assert not limit.monitor_.converged
    assert len(limit.monitor_.history) == 2
    done = AggregateHMM(3, init=values(model), n_iter=5000, tol=1e-4).fit(aggregates)
    assert done.monitor_.reason == "converged"
    assert done.monitor_.converged
    assert (np.diff(done.monitor_.history) <= 1e-9).all()


def test_score_is_the_mean_log_likelihood():
    model = oracles.random_model(np.random.default_rng(3), 3, 4)
    people = np.random.default_rng(4).integers(4, size=(9, 4))
    exact = [-oracles.individual_counts(model, person).free_energy for person in people]
    assert kept(model).score(people) == pytest.approx(np.mean(exact), rel=1e-12)
    assert kept(model, inference="cfb").score(people[:1]) == pytest.approx(exact[0], rel=1e-12)


def test_score_of_what_cannot_happen_is_minus_infinity():
    model = [0.5, 0.5, 0.0], [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]], np.eye(3)
    assert kept(model).score([[0, 1], [1, 2]]) == -np.inf
    assert np.isfinite(kept(model).score([[0, 1], [1, 1]]))


def test_score_of_a_symbol_that_no_state_emits_is_minus_infinity():
    model = [0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5, 0], [0.1, 0.9, 0]]
    assert kept(model).score([[0, 1], [1, 2]]) == -np.inf


def test_score_of_an_unknown_symbol_is_refused():
    model = oracles.random_model(np.random.default_rng(3), 2, 2)
    with pytest.raises(InputError, match=r"Symbols must lie in 0\.\.1; found 0\.\.2"):
        kept(model).score([[0, 2]])


@pytest.mark.parametrize("size", [1, 3])
def test_expected_counts_are_those_of_all_paths(size):
    rng = np.random.default_rng(size)
    model, truth = oracles.random_model(rng, 2, 3), oracles.random_model(rng, 2, 3)
    groups = [oracles.random_histograms(rng, truth, size, 3) for _ in range(3)]
    counts = [oracles.collective_counts(model, group) for group in groups]
    total = sum(counts[1:], counts[0])
    found = kept(model).expected_counts(Aggregates.from_dense(groups))
    np.testing.assert_allclose(found.start, total.start, atol=1e-8)
    np.testing.assert_allclose(found.transitions, total.transitions, atol=1e-8)
    assert found.log_likelihood == pytest.approx(-total.free_energy, abs=1e-8)


def test_samples_have_the_shape_and_the_shares():
    model = random_hmm(3, 4, 5)
    symbols, states = kept(model).sample(30_000, 3, 0)
    assert symbols.shape == states.shape == (30_000, 3)
    last = model[0] @ model[1] @ model[1]
    for shares, expected in (
        (np.bincount(states[:, 2], minlength=3) / 30_000, last),
        (np.bincount(symbols[:, 2], minlength=4) / 30_000, last @ model[2]),
    ):
        sigma = np.sqrt(expected * (1 - expected) / 30_000)
        assert (np.abs(shares - expected) <= 5 * sigma).all()


def test_a_good_start_learns_the_truth_from_many_people():
    model = random_hmm(3, 4, 6)
    people = kept(model).sample(20_000, 5, 6)[0]
    found = AggregateHMM(
        3, init=values(model), fixed=("emission",), n_iter=200, tol=1e-4
    ).fit(aggregate(people, 1, 4))  # fmt: skip
    assert np.abs(found.transmat_ - model[1]).max() < 0.03
    assert np.abs(found.startprob_ - model[0]).max() < 0.03


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"n_states": 0}, "n_states must be 1 or more; it was 0"),
        ({"n_iter": -1}, "n_iter must be 0 or more; it was -1"),
        ({"n_init": 0}, "n_init must be 1 or more; it was 0"),
        ({"emission": "poisson"}, "emission must be .*'poisson'"),
        ({"inference": "magic"}, "no learner called 'magic'"),
        ({"fixed": ("transitions",)}, "fixed holds 'transitions'"),
        (
            {"fixed": ("emission",)},
            r"emission is fixed but has no value; give init\['emissionprob'\]",
        ),
        ({"init": {"transition": np.eye(2)}}, r"init holds \['transition'\]"),
        ({"init": {"transmat": np.eye(3)}}, r"init\['transmat'\] must have shape \(2, 2\)"),
        ({"init": {"emissionprob": np.eye(2)}}, r"init\['emissionprob'\] must have shape \(2, 3\)"),
        ({"init": {"startprob": [0.5, 0.6]}}, "startprob must sum to 1"),
        ({"init": {"startprob": [[0.5, 0.5]]}}, "startprob must have 1 dimension"),
        ({"init": {"startprob": [np.nan, 1]}}, "startprob must hold finite"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(choices, message):
    estimator = AggregateHMM(**{"n_states": 2, "random_state": 0, **choices})
    with pytest.raises(InputError, match=message) as raised:
        estimator.fit(aggregate([[0, 1], [2, 0]], 1, 3))
    assert str(raised.value).endswith(".")
    assert ". " not in str(raised.value)


@pytest.mark.parametrize("name", ["startprob_", "transmat_", "emissionprob_"])
def test_before_fit_there_is_nothing_to_read(name):
    with pytest.raises(InputError, match="call fit first"):
        getattr(AggregateHMM(2), name)


@pytest.mark.parametrize(
    "use",
    [
        lambda e: e.score([[0]]),
        lambda e: e.sample(1, 1),
        lambda e: e.expected_counts(aggregate([[0]], 1, 1)),
    ],
)
def test_before_fit_there_is_nothing_to_use(use):
    with pytest.raises(InputError, match="call fit first"):
        use(AggregateHMM(2))


def test_data_that_cannot_happen_under_the_start_is_refused():
    init = {"startprob": [1.0, 0.0], "transmat": np.eye(2), "emissionprob": np.eye(2)}
    with pytest.raises(InputError, match="symbol 1 in sequence 0 at step 1 cannot happen"):
        AggregateHMM(2, init=init).fit(aggregate([[0, 1]], 1, 2))
