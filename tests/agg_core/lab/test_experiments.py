from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hmmlearn.hmm import CategoricalHMM, GaussianHMM

from agg_core.base.checkpoints import use_checkpoints
from agg_core.base.engine import in_turn
from agg_core.base.errors import UnreachableError
from agg_core.base.options import options_of
from agg_core.base.threads import number_of_threads
from agg_core.lab import experiments
from agg_core.lab.experiments import (
    EXPERIMENTS,
    LabProgress,
    LabResult,
    LabSettings,
    evaluated_iterations,
    lab_steps,
    learners_for,
)
from agg_core.lab.trends import LEARNER_LABELS, RUN_COLUMNS, final_rows, trends_of
from agg_core.learn.learners import Choice, learner_steps
from agg_core.learn.table import LEARNERS
from agg_core.made.people import random_gaussian_hmm, random_hmm
from agg_core.model.aggregates import aggregate
from agg_core.model.emissions import CategoricalEmission
from tests.faults import refused
from tests.threads import in_two_threads

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
TINY_GROUPS = replace(
    TINY, experiment="groups", n_states=(3,), learners=("auto", "cfb", "sampling"), n_seeds=1
)
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
    ("change", "code", "told"),
    [
        ({"group_sizes": (1, 61)}, "group-too-large", "M = 61 cannot be formed from N = 60"),
        ({"n_individuals": (3, 60)}, "group-too-large", "M = 4 cannot be formed from N = 3"),
        ({"n_states": (1, 3)}, "value-out-of-range", "States, d must lie between 2 and 100"),
        ({"lengths": (1,)}, "value-out-of-range", "Steps, T"),
        ({"n_seeds": 0}, "value-out-of-range", "Seeds"),
        ({"group_sizes": ()}, "no-value-given", "group_sizes"),
        ({"learners": ("best",)}, "not-a-choice", "Learners"),
        ({"experiment": "fig8"}, "not-a-choice", "Experiment"),
        ({"learners": ("cfb", "least_squares")}, "learner-unsuited", "Least squares"),
        ({"learners": ("gaussian_pairs",)}, "learner-unsuited", "fig7, groups"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(change, code, told):
    with refused(code, told):
        replace(TINY, **change)


def test_every_setting_says_what_it_is():
    assert list(options_of(LabSettings)) == list(TINY.to_dict())
    assert all(option.label and option.help for option in options_of(LabSettings).values())


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_presets_belong_to_their_experiment(name):
    experiment = EXPERIMENTS[name]
    assert experiment.name == experiment.quick.experiment == experiment.full.experiment == name
    assert {experiment.panel, experiment.curve, experiment.x} <= set(COLUMNS)
    assert experiment.known_emission == (name in ("fig7", "groups"))
    assert experiment.of_the_paper == (name != "groups")
    assert experiment.full.n_seeds == (5 if name in ("fig7", "groups") else 10)
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
    assert "cfb" in full["fig3"].learners
    for name in ("fig4", "fig5", "fig6"):
        assert full[name].learners == ("cfb",)


def test_ours_goes_over_group_sizes_with_the_paper_beside_the_others():
    full = EXPERIMENTS["groups"].full
    assert full.group_sizes == (1, 2, 5, 10, 20, 50, 100, 200)
    assert {"cfb", "cavity", "sampling", "gaussian_pairs", "auto"} <= set(full.learners)
    assert EXPERIMENTS["groups"].x == "group_size"


def test_every_learner_is_there():
    known = {name.removesuffix("_states").removesuffix("_calibrated") for name in LEARNER_LABELS}
    assert known == set(LEARNERS)


def test_learners_that_need_the_emission_are_offered_where_it_is_known():
    assert set(learners_for("fig7")) == set(learners_for("groups")) == set(LEARNER_LABELS)
    for name in ("fig3", "fig4", "fig5", "fig6"):
        assert learners_for(name)[0] == "cfb"
        assert not {"gaussian_pairs", "least_squares", "nlbp", "prox_states"} & set(
            learners_for(name)
        )


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
    with refused(
        "too-few-observations", "3 states need as many observations at least; there are 2"
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


def threads_while_and_between():
    """Threads that there may be while the Lab learns, and between its steps."""
    learning, between = [], []

    def watched(*arguments, **options):
        learning.append(number_of_threads())
        yield from learner_steps(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "learner_steps", watched)
        for _ in lab_steps(replace(TINY, n_states=(2,), n_seeds=1)):
            between.append(number_of_threads())
    return set(learning), set(between)


def test_there_is_one_thread_while_they_learn_and_all_again_between():
    assert in_two_threads(threads_while_and_between) == ({1}, {2})


def test_labels_name_what_else_is_varied():
    settings = replace(
        TINY_FIG7,
        n_individuals=(60, 50),
        lengths=(2, 3),
        learners=("cfb", "least_squares"),
        iterations=1,
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


@pytest.mark.parametrize("settings", [TINY, TINY_FIG4], ids=["fig3", "fig4"])
def test_every_learner_that_is_offered_learns_an_emission(settings):
    learners = learners_for(settings.experiment)
    table = run(replace(settings, n_states=(3,), group_sizes=(4,), learners=learners, n_seeds=1))[
        1
    ].table
    starts = table.query("iteration == 0")
    assert starts["learner"].tolist() == list(learners)
    ends = final_rows(table).set_index("learner")["delta_nll"]
    assert (ends < starts["delta_nll"].iloc[0]).all()


def test_calibration_is_one_replicate_drawn_from_the_seed(fig7):
    here = case("fig7", seed=5, n=60, length=3)
    steps = learner_steps(
        "cfb", here.groups(4), here.start, fixed=("emission",), calibrate=1,
        random_state=here.rng(4, 6),
    )  # fmt: skip
    states = [next(steps) for _ in range(3)]
    rows = fig7.table.query("learner == 'cfb_calibrated' and iteration > 0")
    np.testing.assert_allclose(rows["delta_nll"], [here.delta_nll(s.hmm) for s in states])


def test_the_best_for_the_data_is_the_curve_of_the_learner_taken(monkeypatch):
    def by_size(name, aggregates, hmm, *, fixed):
        assert (name, fixed) == ("auto", ("emission",))
        return Choice("cfb" if aggregates.sizes.max() == 1 else "sampling", "")

    monkeypatch.setattr(experiments, "choose_learner", by_size)
    result = run(TINY_GROUPS)[1]
    curves = {
        key: rows[["iteration", "wall_s", "delta_nll", "free_energy"]].reset_index(drop=True)
        for key, rows in result.table.groupby(["learner", "group_size"])
    }
    for size, taken in ((1, "cfb"), (4, "sampling")):
        # Even the clock agrees: it is learned once.
        pd.testing.assert_frame_equal(curves["auto", size], curves[taken, size])
    assert not np.allclose(curves["cfb", 4]["delta_nll"], curves["sampling", 4]["delta_nll"])
    assert result.notes == (
        "d = 3: the best for the data was CFB at M = 1; MCMC over individual assignments at M = 4.",
    )


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


def test_runs_are_every_combination_with_every_seed(tiny):
    settings = tiny[1].settings
    assert settings.n_runs == len(tiny[1].table.groupby([*RUN_COLUMNS]))
    wide = replace(TINY, n_states=(2, 3, 4), group_sizes=(1, 5), learners=("cfb",), n_seeds=4)
    assert wide.n_runs == 3 * 2 * 4


def test_results_carry_their_trends(tiny, fig7):
    assert len(tiny[1].trends) == 4
    assert tiny[1].trends == trends_of("fig3", tiny[1].table)
    # CFB against two kinds of rivals, lower and sooner; six learners beyond the paper against CFB.
    assert len(fig7.trends) == 4 + 6


@pytest.mark.parametrize("ended_after", [2, 4])
def test_work_that_was_ended_goes_on_from_its_last_case_to_the_bit(
    tiny, tmp_path, monkeypatch, ended_after
):
    done = []
    curves = experiments._curves

    def counted(settings, case_of):
        done.append(case_of)
        return curves(settings, case_of)

    monkeypatch.setattr(experiments, "_curves", counted)
    n_cases = TINY.n_runs // len(TINY.learners)
    with use_checkpoints(tmp_path / "kept"), in_turn():
        steps = lab_steps(TINY)
        for _ in range(1 + ended_after):
            next(steps)
        steps.close()
        before = len(done)
        assert 0 < before < n_cases
        *_, result = lab_steps(TINY)
    assert len(done) == n_cases, "no case is done twice"
    timed = ["wall_s"]
    pd.testing.assert_frame_equal(
        result.table.drop(columns=timed), tiny[1].table.drop(columns=timed), check_exact=True
    )
    assert result.notes == tiny[1].notes
