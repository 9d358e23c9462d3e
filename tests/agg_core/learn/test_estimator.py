import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from agg_core.base.errors import UnreachableError
from agg_core.learn.estimator import AggregateHMM, held_out_nll
from agg_core.made.people import random_hmm
from agg_core.model.aggregates import Aggregates, aggregate
from tests.agg_core import oracles
from tests.faults import refused

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
def test_without_held_out_sequences_the_start_of_lowest_energy_is_kept(size):
    aggregates, _ = data(size)
    rng = np.random.default_rng(8)
    cfb = AggregateHMM(3, n_iter=15, inference="cfb")
    single = [clone(cfb).set_params(random_state=rng).fit(aggregates) for _ in range(6)]
    energies = [one.monitor_.history[-1] for one in single]
    assert np.argmin(energies) > 0, "the first is best: the case shows nothing"
    best = single[int(np.argmin(energies))]
    found = cfb.set_params(n_init=6, random_state=8, validation_fraction=0).fit(aggregates)
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
    with refused("symbol-out-of-range", "found 0..2"):
        kept(model).score([[0, 2]])


@pytest.mark.parametrize("size", [1, 3])
def test_expected_counts_are_those_of_all_paths(size):
    rng = np.random.default_rng(size)
    model, truth = oracles.random_model(rng, 2, 3), oracles.random_model(rng, 2, 3)
    groups = [oracles.random_histograms(rng, truth, size, 3) for _ in range(3)]
    counts = [oracles.collective_counts(model, group) for group in groups]
    total = sum(counts[1:], counts[0])
    fitted = kept(model).set_params(inference="cfb")
    found = fitted.expected_counts(Aggregates.from_dense(groups))
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
    ("choices", "code", "told"),
    [
        ({"n_states": 0}, "value-out-of-range", "n_states"),
        ({"n_iter": -1}, "value-out-of-range", "n_iter"),
        ({"n_init": 0}, "value-out-of-range", "n_init"),
        ({"emission": "poisson"}, "not-a-choice", "'poisson'"),
        ({"inference": "magic"}, "unknown-learner", "'magic'"),
        ({"fixed": ("transitions",)}, "unknown-part", "'transitions'"),
        (
            {"fixed": ("emission",)},
            "fixed-without-value",
            "init['emissionprob']",
        ),
        ({"init": {"transition": np.eye(2)}}, "unknown-init-value", "['transition']"),
        (
            {"init": {"transmat": np.eye(3)}},
            "wrong-shape",
            "init['transmat'] must have shape (2, 2)",
        ),
        (
            {"init": {"emissionprob": np.eye(2)}},
            "wrong-shape",
            "init['emissionprob'] must have shape (2, 3)",
        ),
        ({"init": {"startprob": [0.5, 0.6]}}, "sum-not-one", "startprob"),
        ({"init": {"startprob": [[0.5, 0.5]]}}, "wrong-shape", "startprob"),
        ({"init": {"startprob": [np.nan, 1]}}, "not-probabilities", "startprob"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(choices, code, told):
    estimator = AggregateHMM(**{"n_states": 2, "random_state": 0, **choices})
    with refused(code, told) as raised:
        estimator.fit(aggregate([[0, 1], [2, 0]], 1, 3))
    assert str(raised.value).endswith(".")
    assert ". " not in str(raised.value)


@pytest.mark.parametrize("name", ["startprob_", "transmat_", "emissionprob_"])
def test_before_fit_there_is_nothing_to_read(name):
    with pytest.raises(NotFittedError, match="call fit first"):
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
    with pytest.raises(NotFittedError, match="call fit first"):
        use(AggregateHMM(2))


def test_data_that_cannot_happen_under_the_start_is_refused():
    init = {"startprob": [1.0, 0.0], "transmat": np.eye(2), "emissionprob": np.eye(2)}
    with refused("observation-impossible", "symbol 1 in sequence 0 at step 1"):
        AggregateHMM(2, init=init).fit(aggregate([[0, 1]], 1, 2))


def test_held_out_sequences_choose_the_start_and_all_are_learned_from():
    aggregates, _ = data(1, n=20, length=4)
    rng = np.random.default_rng(3)
    order = np.random.default_rng(rng.bit_generator.seed_seq.spawn(1)[0]).permutation(20)
    held, train = np.sort(order[:4]), np.sort(order[4:])
    single = [
        AggregateHMM(3, n_iter=10, random_state=rng).fit(aggregates.take(train)) for _ in range(4)
    ]
    scores = [one.score(aggregates.take(held)) for one in single]
    best = int(np.argmax(scores))
    energies = [one.monitor_.history[-1] for one in single]
    assert best != np.argmin(energies), "free energy chooses the same: the case shows nothing"
    found = AggregateHMM(3, n_iter=10, n_init=4, random_state=3).fit(aggregates)
    again = AggregateHMM(3, n_iter=10, init=values(learned(single[best]))).fit(aggregates)
    np.testing.assert_allclose(found.transmat_, again.transmat_, atol=1e-12)
    assert found.monitor_.history == pytest.approx(again.monitor_.history)


def test_held_out_likelihood_chooses_among_settings():
    model = [0.5, 0.3, 0.2], np.eye(3) * 0.85 + 0.05, np.eye(3) * 0.91 + 0.03
    people = kept(model).sample(600, 8, 0)[0]
    search = GridSearchCV(
        AggregateHMM(n_iter=40, tol=1e-3, random_state=0), {"n_states": [1, 2, 3]}, cv=2
    ).fit(people)
    assert search.best_params_ == {"n_states": 3}
    exact = [search.best_estimator_.score(people[i : i + 1]) for i in range(5)]
    assert np.mean(exact) == pytest.approx(search.best_estimator_.score(people[:5]))


@pytest.mark.parametrize("shape", ["aggregates", "dense"])
def test_grid_search_takes_groups(shape):
    aggregates, _ = data(10, n=900)
    X = aggregates if shape == "aggregates" else aggregates.to_dense()
    search = GridSearchCV(AggregateHMM(3, random_state=0), {"n_iter": [1, 20]}, cv=3).fit(X)
    assert search.best_params_ == {"n_iter": 20}


def test_a_clone_has_the_parameters_and_nothing_learned():
    aggregates, _ = data(1)
    one = AggregateHMM(3, n_iter=3, fixed=("startprob",), init={"startprob": [0.2, 0.3, 0.5]})
    copy = clone(one.fit(aggregates))
    assert copy.get_params() == one.get_params()
    assert not hasattr(copy, "transmat_")
    assert copy.set_params(n_states=4).n_states == 4


def test_scikit_learns_own_checks_of_an_estimator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks warn of what they skip
        results = check_estimator(
            AggregateHMM(n_states=2, emission="gaussian", n_iter=5, random_state=0), on_fail=None
        )
    outcome = {r["check_name"]: r["status"] for r in results}
    skipped = {name for name, status in outcome.items() if status == "skipped"}
    assert skipped <= {"check_array_api_input"}, "needs an environment variable of scipy"
    assert {name for name, status in outcome.items() if status == "failed"} == set()
    assert len(outcome) > 30


REAL_NUMBERS = "feeds real numbers; the data of a categorical emission are whole-numbered symbols"


def test_scikit_learns_own_checks_where_they_can_apply_to_symbols():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(AggregateHMM(n_iter=5, random_state=0), on_fail=None)
    failed = [r for r in results if r["status"] == "failed"]
    told = [r["check_name"] for r in failed if "whole numbers" not in str(r["exception"])]
    # It wraps the sentence about whole numbers in its own.
    assert set(told) <= {"check_positive_only_tag_during_fit"}, REAL_NUMBERS
    assert sum(r["status"] == "passed" for r in results) >= 17


def test_a_start_by_least_squares_is_near_the_truth_and_off_zero():
    aggregates, model = data(10, n=4_000)
    choices = {"init": {"emissionprob": model[2]}, "fixed": ("emission",), "random_state": 0}
    random = AggregateHMM(3, n_iter=0, **choices).fit(aggregates)
    fitted = AggregateHMM(3, n_iter=0, init_params="least_squares", **choices).fit(aggregates)
    error = [np.abs(one.transmat_ - model[1]).sum(axis=1).mean() for one in (random, fitted)]
    assert error[1] < 0.3 < error[0]
    assert fitted.transmat_.min() > 0
    np.testing.assert_allclose(fitted.transmat_.sum(axis=1), 1)
    given = AggregateHMM(
        3, n_iter=0, init_params="least_squares", fixed=("emission",),
        init={"emissionprob": model[2], "transmat": np.eye(3)},
    ).fit(aggregates)  # fmt: skip
    np.testing.assert_array_equal(given.transmat_, np.eye(3))


def test_gaussian_data_come_in_every_shape():
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.normal(0, 1, (40, 3, 1)), rng.normal(9, 1, (40, 3, 1))])
    choices = {"emission": "gaussian", "n_iter": 5, "random_state": 0}
    flat = AggregateHMM(2, **choices).fit(places[:, :, 0])
    people = AggregateHMM(2, **choices).fit(places)
    groups = AggregateHMM(2, **choices).fit(places[:, :, None, :])
    for one in (people, groups):
        np.testing.assert_array_equal(one.means_, flat.means_)
    assert sorted(np.round(flat.means_[:, 0])) == [0, 9]
    assert flat.n_features_in_ == 3
    assert flat.score(places) == pytest.approx(flat.score(places[:, :, 0]))
    assert flat.score(np.full((1, 3), 1e9)) < -1e6
    assert flat.sample(4, 2, 0)[0].shape == (4, 2, 1)
    assert not hasattr(flat, "emissionprob_")


def test_a_categorical_model_has_no_means():
    model = kept(oracles.random_model(np.random.default_rng(0), 2, 2))
    with pytest.raises(AttributeError, match="categorical emission has no such parameter"):
        model.covars_.sum()


def test_all_starts_fail_as_one():
    init = {"startprob": [1.0, 0.0], "transmat": np.eye(2), "emissionprob": np.eye(2)}
    with refused("observation-impossible", kind=UnreachableError):
        AggregateHMM(2, init=init, n_init=3).fit(aggregate([[0, 1]], 1, 2))


@pytest.mark.parametrize(
    ("choices", "code", "told"),
    [
        ({"n_states": 2.5}, "value-out-of-range", "n_states"),
        ({"n_states": "two"}, "value-out-of-range", "n_states"),
        ({"tol": -1}, "value-out-of-range", "tol"),
        ({"tol": np.nan}, "value-out-of-range", "tol"),
        ({"validation_fraction": 1.0}, "value-out-of-range", "validation_fraction"),
        ({"init_params": "magic"}, "not-a-choice", "init_params"),
        ({"init_params": "least_squares"}, "known-emission-needed", ""),
        ({"covariance_type": "tied"}, "not-a-choice", "covariance_type"),
        ({"noise_map": "none"}, "not-a-choice", "noise_map"),
        ({"fixed": "emission"}, "not-a-collection", ""),
        ({"init": {"means": [[0.0]]}}, "unknown-init-value", "['means']"),
        ({"inference": "least_squares"}, "emission-not-fixed", "least_squares"),
    ],
)
def test_bad_choices_are_refused_in_one_sentence(choices, code, told):
    estimator = AggregateHMM(**{"n_states": 2, "random_state": 0, **choices})
    with refused(code, told):
        estimator.fit(aggregate([[0, 1], [2, 0]], 1, 3))


@pytest.mark.parametrize(
    ("choices", "X", "code", "told"),
    [
        ({"fixed": ("emission",)}, np.zeros((3, 2)), "fixed-without-value", "init['means']"),
        (
            {"fixed": ("emission",), "init": {"means": [[0.0], [1.0]]}},
            np.zeros((3, 2)),
            "fixed-without-value",
            "init['covars']",
        ),
        (
            {"init": {"means": [[0.0]]}},
            np.zeros((3, 2)),
            "wrong-shape",
            "init['means'] must have shape (2, 1)",
        ),
        (
            {},
            np.zeros((1, 1)),
            "too-few-observations",
            "2 states need as many observations at least; there are 1",
        ),
        ({}, aggregate([[0, 1], [2, 0]], 1, 3), "places-needed", ""),
        (
            {"init": {"emissionprob": np.eye(2)}},
            np.zeros((3, 2)),
            "unknown-init-value",
            "startprob, transmat, means",
        ),
    ],
)
def test_bad_gaussian_choices_are_refused(choices, X, code, told):
    with refused(code, told):
        AggregateHMM(2, emission="gaussian", random_state=0, **choices).fit(X)


def test_learners_are_ranked_by_what_they_say_of_people_held_out():
    model = random_hmm(3, 3, 2)
    groups = aggregate(kept(model).sample(2_000, 4, 0)[0], 10, 3, 0)
    people = kept(model).sample(2_000, 4, 1)[0]
    known = {"fixed": ("emission",), "init": {"emissionprob": model[2]}, "random_state": 0}
    models = {name: AggregateHMM(3, inference=name, **known) for name in ("cfb", "least_squares")}
    models["none"] = AggregateHMM(3, n_iter=0, **known)
    for one in models.values():
        one.fit(groups)
    models["truth"] = kept(model)
    found = held_out_nll(models, people)
    assert list(found)[-1] == "none"
    assert list(found.values()) == sorted(found.values())
    assert found["truth"] == pytest.approx(-kept(model).score(people))
    assert next(iter(found)) == "truth"
