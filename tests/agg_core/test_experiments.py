from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hmmlearn.hmm import CategoricalHMM, GaussianHMM
from numba import get_num_threads

from agg_core import experiments
from agg_core.aggregates import aggregate
from agg_core.emissions import CategoricalEmission
from agg_core.errors import InputError, UnreachableError
from agg_core.experiments import (
    EXPERIMENTS,
    LEARNER_LABELS,
    LabProgress,
    LabResult,
    LabSettings,
    estimate_seconds,
    evaluated_iterations,
    final_rows,
    lab_steps,
    trends_of,
)
from agg_core.inference import INFERENCE
from agg_core.learning import MOMENTS, learner_steps
from agg_core.settings import options_of
from agg_core.synthetic import random_gaussian_hmm, random_hmm

COLUMNS = [
    "n_states",
    "group_size",
    "n_individuals",
    "length",
    "learner",
    "seed",
    "iteration",
    "wall_s",
    "delta_nll",
    "free_energy",
]
TINY = LabSettings(
    experiment="fig3", n_states=(2, 3), group_sizes=(1, 4), n_individuals=(60,), lengths=(3,),
    n_seeds=2, iterations=6, seed=5,
)  # fmt: skip
TINY_FIG4 = replace(TINY, experiment="fig4", n_states=(3,))
TINY_FIG7 = replace(
    TINY, experiment="fig7", n_states=(3,), group_sizes=(4,), learners=tuple(LEARNER_LABELS),
    n_seeds=1, iterations=3,
)  # fmt: skip


def run(settings):
    *progress, result = lab_steps(settings)
    assert all(isinstance(step, LabProgress) for step in progress)
    assert isinstance(result, LabResult)
    return progress, result


@pytest.fixture(scope="module")
def tiny():
    return run(TINY)


@pytest.fixture(scope="module")
def fig7():
    return run(TINY_FIG7)[1]


def case(name, seed=1, d=3, n=40, length=4):
    return experiments._Case.drawn(EXPERIMENTS[name], seed, d, n, length)


# ------------------------------------------------------------------------------------- settings


def test_settings_survive_json():
    assert LabSettings.from_dict(TINY_FIG7.to_dict()) == TINY_FIG7
    assert TINY.to_dict()["group_sizes"] == [1, 4]


def test_a_value_given_twice_is_one_run():
    assert replace(TINY, group_sizes=(4, 1, 4)).group_sizes == (4, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group_sizes": (1, 61)}, r"M = 61 cannot be formed from N = 60 .*choose"),
        ({"n_individuals": (3, 60)}, "M = 4 cannot be formed from N = 3"),
        ({"n_states": (1, 3)}, "States, d must lie between 2 and 100"),
        ({"lengths": (1,)}, "Steps, T must lie between 2"),
        ({"n_seeds": 0}, "Seeds must lie between 1"),
        ({"group_sizes": ()}, "group_sizes is empty"),
        ({"learners": ("best",)}, "Learners must be one of cfb"),
        ({"experiment": "fig8"}, "Experiment must be one of fig3"),
        ({"learners": ("cfb", "moments")}, "Least squares needs a known emission"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        replace(TINY, **change)


def test_every_setting_says_what_it_is():
    assert list(options_of(LabSettings)) == list(TINY.to_dict())
    assert all(option.label and option.help for option in options_of(LabSettings).values())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_presets_belong_to_their_experiment(name):
    experiment = EXPERIMENTS[name]
    assert experiment.name == experiment.quick.experiment == experiment.full.experiment == name
    assert {experiment.panel, experiment.curve, experiment.x} <= set(COLUMNS)
    assert experiment.known_emission == (name == "fig7")
    assert experiment.full.n_seeds == (5 if name == "fig7" else 10)
    for text in (experiment.see, experiment.doubt):
        assert text.count(". ") == 1
        assert text.endswith(".")


def test_full_presets_are_those_of_the_paper():
    full = {name: experiment.full for name, experiment in EXPERIMENTS.items()}
    for name in ("fig3", "fig4", "fig7"):
        assert full[name].n_individuals == (5000,)
        assert full[name].lengths == (5,)
    assert full["fig3"].n_states == full["fig7"].n_states == (3, 5, 10)
    assert full["fig4"].n_states == (10, 20, 25)
    assert (full["fig5"].n_states, full["fig5"].n_individuals) == ((5,), (500,))
    assert full["fig5"].group_sizes == (1, 100, 250)
    assert (full["fig6"].n_states, full["fig6"].lengths) == ((10,), (10,))
    assert full["fig6"].group_sizes == (1, 10, 100)
    assert full["fig7"].group_sizes == (10,)


def test_every_learner_is_there():
    for name in LEARNER_LABELS:
        assert name.removesuffix("_states") in (*INFERENCE, MOMENTS)


# ------------------------------------------------------------------------------- data and start


def test_models_are_those_of_the_generator_and_people_follow_them():
    discrete = case("fig3", n=20_000, length=2)
    rng = np.random.default_rng([1, 3, 1])
    np.testing.assert_array_equal(discrete.truth.transmat, random_hmm(3, random_state=rng)[1])
    moves = np.zeros((3, 3))
    np.add.at(moves, tuple(discrete.states.T), 1)
    pairs = discrete.truth.startprob[:, None] * discrete.truth.transmat
    np.testing.assert_allclose(moves / 20_000, pairs, atol=0.015)

    gaussian = case("fig4", n=20_000, length=2)
    means, variances = random_gaussian_hmm(3, np.random.default_rng([1, 3, 1]))[2:]
    for x in range(3):
        places = gaussian.observations[gaussian.states == x]
        assert places.mean() == pytest.approx(means[x, 0], abs=0.15)
        assert places.var() == pytest.approx(variances[x, 0], rel=0.1)


def test_start_and_model_do_not_depend_on_how_many_people_there_are():
    few, many = case("fig3", n=30, length=3), case("fig3", n=90, length=5)
    for name in ("truth", "start"):
        one, other = getattr(few, name), getattr(many, name)
        np.testing.assert_array_equal(one.transmat, other.transmat)
        np.testing.assert_array_equal(one.emission.emissionprob, other.emission.emissionprob)
    assert not np.allclose(few.start.transmat, case("fig3", seed=2).start.transmat)


def test_what_is_known_at_the_start():
    discrete, gaussian, clock = case("fig3"), case("fig4"), case("fig7")
    assert not np.allclose(
        discrete.start.emission.emissionprob, discrete.truth.emission.emissionprob
    )
    assert clock.start.emission == clock.truth.emission
    np.testing.assert_array_equal(gaussian.start.emission.covars, gaussian.truth.emission.covars)
    assert gaussian.start.emission.covariance_type == "fixed"
    # k-means: each centre is the mean of the places that are nearest to it.
    places, centres = gaussian.observations.ravel(), gaussian.start.emission.means.ravel()
    nearest = np.abs(places[:, None] - centres).argmin(axis=1)
    np.testing.assert_allclose(centres, [places[nearest == x].mean() for x in range(3)])


def test_means_need_observations_to_start_from():
    with pytest.raises(
        InputError, match="3 states need as many observations at least; there are 2"
    ):
        case("fig4", n=1, length=2)


def test_readings_are_poisson_counts_of_the_states_of_the_same_groups():
    here = case("fig7", n=400)
    here = replace(here, observations=here.states)
    truth = here.groups(4).to_dense()
    readings, n_empty = here.state_readings(4)
    assert n_empty == 0
    counts = readings.to_dense()
    assert counts.shape == truth.shape
    assert (counts[truth == 0] == 0).all()
    for n in (1, 2, 3):
        drawn = counts[truth == n]
        assert drawn.mean() == pytest.approx(n, abs=5 * np.sqrt(n / len(drawn)))
        assert drawn.var() == pytest.approx(n, rel=0.5)
    np.testing.assert_array_equal(readings.sizes, np.full(100, 4.0))


def test_groups_of_whom_nobody_was_read_are_left_out_and_counted():
    result = run(replace(TINY_FIG7, group_sizes=(1,), lengths=(2,), learners=("prox_states",)))[1]
    # One person at two steps shows no count with probability exp(-2): about 8 of 60.
    (note,) = result.notes
    assert "groups of which nobody was read are left out" in note
    n_empty = int(note.split(": ")[1].split()[0])
    assert 1 <= n_empty <= 20
    here = case("fig7", seed=5, n=60, length=2)
    assert here.state_readings(1)[1] == n_empty
    assert here.state_readings(1)[0].n_sequences == 60 - n_empty


# ---------------------------------------------------------------------------------- the measure


def peer(hmm):
    """The same model in hmmlearn."""
    if isinstance(hmm.emission, CategoricalEmission):
        model = CategoricalHMM(hmm.n_states)
        model.emissionprob_ = hmm.emission.emissionprob
    else:
        model = GaussianHMM(hmm.n_states, "full")
        model.means_, model.covars_ = hmm.emission.means, hmm.emission.covars
    model.startprob_, model.transmat_ = hmm.startprob, hmm.transmat
    return model


@pytest.mark.parametrize("name", ["fig3", "fig4"])
def test_delta_nll_is_that_of_hmmlearn(name):
    here = case(name, n=30)
    rng = np.random.default_rng([1, 3, 30, 4, 2])
    here.truth.sample(30, 4, rng)
    people = here.truth.sample(30, 4, rng)[0]
    assert not np.array_equal(people, here.observations)
    stacked = people.reshape(120, 1)
    score = [peer(hmm).score(stacked, [4] * 30) for hmm in (here.truth, here.start)]
    assert here.delta_nll(here.start) == pytest.approx((score[0] - score[1]) / 30, abs=1e-9)
    assert here.delta_nll(here.truth) == 0


def test_a_model_that_rules_a_test_person_out_is_infinitely_bad():
    here = case("fig3")
    never = here.truth.emission.emissionprob.copy()
    never[:, 0] = 0
    never /= never.sum(axis=1, keepdims=True)
    assert here.delta_nll(replace(here.truth, emission=CategoricalEmission(never))) == np.inf


# ----------------------------------------------------------------------------------------- runs


def test_one_row_for_each_evaluated_iteration_of_each_run(tiny):
    table = tiny[1].table
    assert list(table.columns) == COLUMNS
    assert len(table) == 2 * 2 * 2 * 7
    for _, curve in table.groupby(COLUMNS[:6]):
        assert curve["iteration"].tolist() == [0, 1, 2, 3, 4, 5, 6]
        assert curve["wall_s"].iloc[0] == 0
        assert curve["wall_s"].is_monotonic_increasing
        assert np.isnan(curve["free_energy"].iloc[0])
        assert (curve["free_energy"].iloc[1:].diff().dropna() < 1e-6).all()
    assert sorted(table["seed"].unique()) == [5, 6]


def test_the_table_holds_what_the_learner_does(tiny):
    here = experiments._Case.drawn(EXPERIMENTS["fig3"], 6, 3, 60, 3)
    groups = aggregate(here.observations, 4, 3, np.random.default_rng([6, 3, 60, 3, 4, 4]))
    steps = learner_steps("cfb", groups, here.start)
    states = [next(steps) for _ in range(6)]
    rows = tiny[1].table.query("n_states == 3 and group_size == 4 and seed == 6")
    np.testing.assert_allclose(
        rows["delta_nll"], [here.delta_nll(h) for h in (here.start, *(s.hmm for s in states))]
    )
    np.testing.assert_allclose(rows["free_energy"].iloc[1:], [s.free_energy for s in states])


def test_all_group_sizes_of_a_seed_leave_from_one_start(tiny):
    starts = tiny[1].table.query("iteration == 0")
    spread = starts.groupby(["n_states", "seed"])["delta_nll"].agg(["nunique", "size"])
    assert (spread["nunique"] == 1).all()
    assert (spread["size"] == 2).all()
    assert starts["delta_nll"].nunique() == 4


def test_same_seed_same_table_other_seed_another(tiny):
    again = run(TINY)[1]
    without = [name for name in COLUMNS if name != "wall_s"]
    pd.testing.assert_frame_equal(again.table[without], tiny[1].table[without])
    other = run(replace(TINY, seed=7))[1]
    assert not np.allclose(other.table["delta_nll"], tiny[1].table["delta_nll"])


def test_a_seed_gives_the_same_curve_in_any_company(tiny):
    alone = run(replace(TINY, n_states=(3,), group_sizes=(4,), n_seeds=1, seed=6))[1].table
    rows = tiny[1].table.query("n_states == 3 and group_size == 4 and seed == 6")
    np.testing.assert_array_equal(alone["delta_nll"], rows["delta_nll"])


def test_progress_names_each_run(tiny):
    progress, result = tiny
    assert [step.done for step in progress] == [0, *range(8)]
    assert {step.n_runs for step in progress} == {8}
    assert progress[1].label == "d = 2, M = 1, seed 5"
    assert progress[-1].label == "d = 3, M = 4, seed 6"
    assert progress[-1].share == pytest.approx(7 / 8)
    assert result.wall_s > 0
    assert result.settings == TINY
    assert result.notes == ()


def test_kernels_have_one_thread_while_they_learn_and_all_again_between(monkeypatch):
    seen, before = [], get_num_threads()

    def watched(*arguments, **options):
        seen.append(get_num_threads())
        yield from learner_steps(*arguments, **options)

    monkeypatch.setattr(experiments, "learner_steps", watched)
    for _ in lab_steps(replace(TINY, n_states=(2,), n_seeds=1)):
        assert get_num_threads() == before
    assert set(seen) == {1}


def test_labels_name_what_else_is_varied():
    settings = replace(
        TINY_FIG7, n_individuals=(60, 50), lengths=(2, 3), learners=("cfb", "moments"), iterations=1
    )
    label = run(settings)[0][-1].label
    assert label == "d = 3, M = 4, N = 50, T = 3, Least squares, seed 5"


def test_gaussian_runs_learn_the_means():
    table = run(TINY_FIG4)[1].table
    curves = table.query("group_size == 1").groupby("seed")["delta_nll"]
    assert (curves.last() < curves.first()).all()


def test_all_learners_of_a_seed_share_start_and_test_set(fig7):
    starts = fig7.table.query("iteration == 0")
    assert len(starts) == len(LEARNER_LABELS)
    assert starts["delta_nll"].nunique() == 1
    ends = final_rows(fig7.table).set_index("learner")["delta_nll"]
    assert (ends < starts["delta_nll"].iloc[0]).all()
    # With other data another curve.
    assert ends["prox"] != pytest.approx(ends["prox_states"], abs=1e-6)


def test_a_curve_that_cannot_go_on_ends_early_and_says_so(monkeypatch):
    def two_then_fault(*arguments, **options):
        steps = learner_steps(*arguments, **options)
        yield next(steps)
        yield next(steps)
        raise UnreachableError("It cannot happen.")

    monkeypatch.setattr(experiments, "learner_steps", two_then_fault)
    result = run(replace(TINY, n_states=(2,), group_sizes=(4,), n_seeds=1))[1]
    assert result.table["iteration"].tolist() == [0, 1, 2]
    assert result.notes == ("d = 2, M = 4, seed 5: the curve ends early. It cannot happen.",)


@pytest.mark.parametrize("iterations", [1, 2, 10, 300])
def test_iterations_are_evaluated_evenly_on_a_logarithmic_axis(iterations):
    found = evaluated_iterations(iterations)
    assert found[:2] == (0, 1)
    assert found[-1] == iterations
    assert list(found) == sorted(set(found))
    assert len(found) <= 26
    if iterations == 300:
        late = np.array(found[10:])
        np.testing.assert_allclose(np.diff(np.log(late)), np.log(300) / 23, rtol=0.25)


def test_more_work_is_foreseen_to_take_longer():
    seconds = estimate_seconds(TINY)
    for change in ({"n_seeds": 4}, {"iterations": 60}, {"n_states": (2, 3, 9)}):
        assert estimate_seconds(replace(TINY, **change)) > seconds
    assert estimate_seconds(replace(TINY, experiment="fig4")) > seconds
    slow = replace(TINY_FIG7, learners=("bethe_rda",))
    assert estimate_seconds(slow) > estimate_seconds(replace(slow, learners=("cfb",)))


# --------------------------------------------------------------------------------------- trends


def table_of(*curves):
    """Curves as (changes to the columns, ΔNLL by iteration, seconds by iteration or None)."""
    rows = []
    for change, values, *seconds in curves:
        run_ = {
            "n_states": 3, "group_size": 1, "n_individuals": 1000, "length": 5, "learner": "cfb",
            "seed": 0,
        } | change  # fmt: skip
        clock = seconds[0] if seconds else range(len(values))
        for i, (value, wall_s) in enumerate(zip(values, clock, strict=True)):
            rows.append(run_ | {"iteration": i, "wall_s": float(wall_s), "delta_nll": value})
    return pd.DataFrame(rows).assign(free_energy=0.0)[COLUMNS]


def ends(column, by_seed):
    """Curves that end at given values: seed by seed a dict from the value of a column."""
    return [
        ({column: value, "seed": seed}, [9.0, end])
        for seed, of_value in enumerate(by_seed)
        for value, end in of_value.items()
    ]


def test_larger_groups_end_higher():
    best, rising = trends_of(
        "fig3",
        table_of(
            *ends("group_size", [{1: 0.1, 10: 0.2, 100: 0.4}, {1: 0.3, 10: 0.2, 100: 0.4}]),
        ),
    )
    # Means: 0.2, 0.2, 0.4.
    assert best.claim == "d = 3: M = 1 ends lowest."
    assert not best.holds
    assert (best.n_holding, best.n_seeds) == (1, 2)
    assert not rising.holds
    assert best.sentence == (
        "Does not hold on average; it does in 1 of 2 seeds: curves end at 0.2 at M = 1, 0.2 at "
        "M = 10 and 0.4 at M = 100 nats per person."
    )
    best, rising = trends_of(
        "fig4", table_of(*ends("group_size", [{1: 0.1, 10: 0.5, 100: 0.4}, {1: 0, 10: 0, 100: 1}]))
    )
    # Means: 0.05, 0.25, 0.7; neither seed rises throughout.
    assert best.holds
    assert best.n_holding == 1
    assert rising.holds
    assert rising.n_holding == 0
    assert rising.sentence.startswith("Holds on average and in 0 of 2 seeds: curves end at 0.05 ")


def test_each_number_of_states_is_judged_apart():
    curves = [
        ({"n_states": d, "group_size": m}, [1.0, end])
        for d, m, end in ((3, 1, 0.1), (3, 10, 0.2), (5, 1, 0.2), (5, 10, 0.1))
    ]
    trends = trends_of("fig3", table_of(*curves))
    assert [(t.claim[:5], t.holds) for t in trends] == [
        ("d = 3", True), ("d = 3", True), ("d = 5", False), ("d = 5", False)
    ]  # fmt: skip


def test_what_varies_besides_is_named():
    curves = [
        ({"n_individuals": n, "group_size": m}, [1.0, m / n]) for n in (500, 1000) for m in (1, 10)
    ]
    assert [t.claim for t in trends_of("fig3", table_of(*curves))[::2]] == [
        "N = 500: M = 1 ends lowest.", "N = 1,000: M = 1 ends lowest."
    ]  # fmt: skip


def test_nothing_to_compare_no_trend():
    alone = table_of(({}, [1.0, 0.5]))
    for name in EXPERIMENTS:
        assert trends_of(name, alone) == ()


def test_longer_sequences_end_lower():
    curves = [
        ({"length": t, "group_size": m}, [1.0, end])
        for t, m, end in ((5, 1, 0.4), (10, 1, 0.3), (5, 100, 0.5), (10, 100, 0.6))
    ]
    trends = {t.claim: t for t in trends_of("fig5", table_of(*curves))}
    assert trends["M = 1: the longer the sequences, the lower the end."].holds
    assert not trends["M = 100: the longer the sequences, the lower the end."].holds
    # Per step 0.1 and 0.06.
    per_step = trends["M = 100: the longer the sequences, the lower the end per step."]
    assert per_step.holds
    assert "0.1 at T = 5 and 0.06 at T = 10 nats per person and step" in per_step.sentence
    assert trends["T = 5: the larger the groups, the higher the end."].holds
    assert len(trends) == 6


def test_few_people_are_learned_by_heart():
    curves = [
        ({"n_individuals": n, "seed": s}, [9.0, low, last])
        for n, s, low, last in (
            (100, 0, 0.5, 0.9), (100, 1, 0.5, 0.505), (400, 0, 0.4, 0.4), (400, 1, 0.4, 0.4),
            (5000, 0, 0.1, 0.1), (5000, 1, 0.1, 0.2),
        )
    ]  # fmt: skip
    falling, few, middling = trends_of("fig6", table_of(*curves))
    assert falling.holds
    assert falling.n_holding == 2
    assert "N = 100 the curve turns up" in few.claim
    # The rises are 0.4 and 0.005, on average 0.2; the second is below the margin.
    assert few.holds
    assert (few.n_holding, few.n_seeds) == (1, 2)
    assert "by 0.203 at N = 100, 0 at N = 400 and 0.05 at N = 5,000" in few.sentence
    assert "N = 400" in middling.claim
    assert not middling.holds


def test_an_infinite_end_is_a_turn_for_the_worse_and_never_a_fault():
    curves = [
        ({"n_individuals": 100}, [np.inf, np.inf]),
        ({"n_individuals": 400}, [1.0, np.inf]),
        ({"n_individuals": 900}, [1.0, 0.5]),
    ]
    falling, nowhere, up = trends_of("fig6", table_of(*curves))
    assert not falling.holds
    assert not nowhere.holds
    assert up.holds


def test_cfb_against_the_others_and_the_clock():
    curves = [
        ({"learner": "cfb"}, [1.0, 0.4, 0.2], [0, 1, 2]),
        ({"learner": "nlbp"}, [1.0, 0.4, 0.3], [0, 3, 6]),
        ({"learner": "prox"}, [1.0, 0.8, 0.3], [0, 0.5, 1.5]),
        ({"learner": "nlbp_states"}, [1.0, 0.4, 0.1], [0, 3, 6]),
        ({"learner": "moments"}, [1.0, 0.0, 0.0], [0, 0, 0]),
    ]
    low, soon, low_states, soon_states = trends_of("fig7", table_of(*curves))
    assert low.claim == "d = 3: CFB ends below NLBP and Prox (counts of symbols)."
    assert low.holds
    assert "0.2 (CFB), 0.3 (NLBP) and 0.3 (Prox)" in low.sentence
    # Both come down to 0.3: CFB after 2 s, NLBP after 6 s, but Prox after 1.5 s.
    assert not soon.holds
    assert "2 s against 6 s (NLBP) and 2 s against 1.5 s (Prox)" in soon.sentence
    assert "Poisson counts of states" in low_states.claim
    assert not low_states.holds
    # Both come down to 0.2: CFB after 2 s, NLBP after 6 s.
    assert soon_states.holds


def test_without_cfb_or_rivals_there_is_no_race():
    curves = [({"learner": name}, [1.0, 0.5]) for name in ("nlbp", "prox")]
    assert trends_of("fig7", table_of(*curves)) == ()
    curves = [({"learner": name}, [1.0, 0.5]) for name in ("cfb", "moments")]
    assert trends_of("fig7", table_of(*curves)) == ()


def test_results_carry_their_trends(tiny, fig7):
    assert len(tiny[1].trends) == 4
    assert tiny[1].trends == trends_of("fig3", tiny[1].table)
    assert len(fig7.trends) == 4
