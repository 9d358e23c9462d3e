"""A row of a sweep is what the study at its value finds alone, also when the work was stopped."""

import json
import math
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from agg_core.base import checkpoints as kept_by
from agg_core.base.checkpoints import checkpoints, use_checkpoints
from agg_core.base.engine import use_engine
from agg_core.base.errors import EngineError, InputError
from agg_core.made.counts import simulate_city
from agg_core.space.settings import HexSettings, MeshSettings
from agg_core.study import sweeps
from agg_core.study.counts import count_study_steps
from agg_core.study.lasting import Lasting
from agg_core.study.people import check_people, likelihoods_of_people
from agg_core.study.settings import CountLearnSettings, StudySettings
from agg_core.study.sweeps import (
    FIGURES,
    MOST_VALUES,
    Sweep,
    SweepProgress,
    SweepResult,
    SweepRow,
    check_sweep,
    lasting_of_sweep,
    megabytes_of_sweep,
    read_values,
    suggested_values,
    sweep_steps,
    to_be_used,
    variable,
)
from tests.agg_core import tiny
from tests.agg_core.counts import made
from tests.faults import refused
from tests.threads import in_two_threads

QUICK = CountLearnSettings(
    time="one", strength="given", count_error=0.0, expansion=1.0, replicates=0
)


def table_of_counts():
    return made.city_table(simulate_city(2, 3, days=3, people=60, random_state=0))


def run(data, sweep):
    *steps, result = sweep_steps(data, sweep)
    assert all(isinstance(step, SweepProgress) for step in steps)
    assert isinstance(result, SweepResult)
    return steps, result


def figures_of(result):
    """All that does not hang on the clock."""
    return [{**row.to_dict(), "cpu_s": None} for row in result.rows]


def figures_by_two(sweep):
    """The same, learned by two threads at once."""
    with use_engine("local") as engine:
        assert engine.n_workers == 2
        return figures_of(run(tiny.people(), sweep)[1])


def movers_by_hand(matrices):
    return sum(float(flows[~np.eye(len(flows), dtype=bool)].sum()) for flows in matrices)


class TestRows:
    def test_a_row_is_what_the_study_alone_finds(self):
        sweep = Sweep(tiny.settings(replicates=2), "group_size", (1, 4, 20))
        steps, result = run(tiny.people(), sweep)
        assert [step.done for step in steps] == [0, 1, 2, 3]
        assert [step.share for step in steps][-1] == 1
        assert [row.value for row in result.rows] == [1, 4, 20]
        for row, settings in zip(result.rows, sweep.each, strict=True):
            assert settings == replace(
                sweep.settings, learn=replace(sweep.settings.learn, group_size=row.value)
            )
            _, alone = tiny.run(tiny.people(), settings)
            told = alone.summary()
            assert row.movers == told["movers"]
            assert row.movers == pytest.approx(
                movers_by_hand([alone.matrix(time) for time in alone.times_of_day])
            )
            assert (row.movers_low, row.movers_high) == (told["movers_low"], told["movers_high"])
            assert row.share_moving == row.movers / alone.n_sequences
            assert (row.cpc, row.total_ratio) == (
                alone.vs_single.cpc,
                alone.vs_single.total_ratio,
            )
            assert (row.cpc_counted, row.ratio_counted) == (
                alone.vs_counted.cpc,
                alone.vs_counted.total_ratio,
            )
            assert (row.learner, row.n_states) == (alone.learner, alone.n_states)
            assert row.cpu_s > 0
            assert not row.fault

    def test_how_far_chances_are_apart_and_how_likely_people_are(self):
        sweep = Sweep(tiny.settings(misclassify=0.0), "group_size", (1, 6))
        _, result = run(tiny.people(), sweep)
        same, row = result.rows
        assert (same.cpc, same.total_ratio, same.chances_apart, same.delta_nll) == (1, 1, 0, 0)
        _, alone = tiny.run(tiny.people(), sweep.each[1])
        (at,) = alone.by_time
        flows = alone.matrix(at.time, "single")
        apart = np.abs(at.estimate.transmat - at.single.transmat).sum(axis=1) / 2
        by_hand = np.average(apart, weights=flows.sum(axis=1))
        assert row.chances_apart == pytest.approx(by_hand)
        # Without noise the states are seen: the chance of a walk is a product of entries.
        windows = np.array(tiny.whole_day_windows(tiny.day_states()))
        nats = {}
        for source in ("estimate", "single"):
            fit = at.fit(source)
            with np.errstate(divide="ignore"):
                logs = np.log(fit.startprob)[windows[:, 0]]
                for step in (0, 1):
                    logs = logs + np.log(fit.transmat)[windows[:, step], windows[:, step + 1]]
            nats[source] = logs.mean()
        told = likelihoods_of_people(tiny.people(), alone)
        assert told == pytest.approx(nats)
        assert row.delta_nll == told["single"] - told["estimate"]
        assert row.delta_nll > 0

    def test_of_counts(self):
        table = table_of_counts()
        sweep = Sweep(QUICK, "prior", (1.0, 50.0))
        _, result = run(table, sweep)
        for row, settings in zip(result.rows, sweep.each, strict=True):
            assert settings == replace(QUICK, prior=row.value)
            *_, alone = count_study_steps(table, settings)
            told = alone.summary()
            held = alone.held_out.set_index("method")
            assert row.movers == told["movers"]
            assert row.held_out_mae == held.loc["learned", "mae"]
            assert row.held_out_gain == held["mae"]["learned"] / held["mae"]["persistence"]
            assert row.held_out_score == held.loc["learned", "score"]
            rows = alone.rows("whole day")
            moves = rows["origin"] != rows["dest"]
            assert row.share_moving == pytest.approx(
                rows.loc[moves, "count"].sum() / rows["count"].sum()
            )
            assert math.isnan(row.cpc)
        assert result.columns == (
            "n_states", "movers", "share_moving", "held_out_mae", "held_out_gain",
            "held_out_score", "cpu_s",
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("name", "values", "states"),
        [("grid", ("2x2", "3x3", "4X5"), [4, 9, 20]), ("inference", ("cfb", "auto"), [9, 9]),
         ("reach_m", (12_000, 30_000), [9, 9]), ("sigma_m", (0, 2000), [9, 9])],
    )  # fmt: skip
    def test_other_settings(self, name, values, states):
        learn = {"observed": "positions"} if name == "sigma_m" else {}
        learn |= {"inference": "cfb"} if name == "reach_m" else {}
        sweep = Sweep(tiny.settings(**learn), name, values)
        _, result = run(tiny.people(), sweep)
        assert [row.n_states for row in result.rows] == states
        for row, settings in zip(result.rows, sweep.each, strict=True):
            assert row.movers == tiny.run(tiny.people(), settings)[1].summary()["movers"]

    def test_side_by_side_and_one_after_the_other_are_the_same(self):
        sweep = Sweep(tiny.settings(), "seed", (0, 1, 2))
        _, result = run(tiny.people(), sweep)
        assert in_two_threads(figures_by_two, sweep) == figures_of(result)
        assert len({row.movers for row in result.rows}) == 3

    def test_a_value_that_fails_says_why_and_the_others_stay(self, monkeypatch):
        whole = sweeps.study_steps

        def failing(people, settings):
            if settings.learn.group_size == 4:
                raise InputError("This one failed.", code="learning-failed")
            return whole(people, settings)

        monkeypatch.setattr(sweeps, "study_steps", failing)
        _, result = run(tiny.people(), Sweep(tiny.settings(), "group_size", (2, 4)))
        good, bad = result.rows
        assert (good.fault, bad.fault, bad.code) == ("", "This one failed.", "learning-failed")
        assert all(math.isnan(figure) for figure in bad.figures.values())
        assert good.movers > 0
        assert result.table["fault"].tolist() == ["", "This one failed."]
        told = result.summary()["rows"][1]
        assert (told["movers"], told["code"]) == (None, "learning-failed")

    def test_where_all_fail_or_the_engine_does_there_is_no_result(self, monkeypatch):
        def failing(fault):
            def steps(*_):
                raise fault

            monkeypatch.setattr(sweeps, "study_steps", steps)

        sweep = Sweep(tiny.settings(), "group_size", (2, 4))
        failing(InputError("All fail.", code="learning-failed"))
        with refused("learning-failed"):
            run(tiny.people(), sweep)
        failing(EngineError("It is gone.", code="cluster-lost"))
        with refused("cluster-lost"):
            run(tiny.people(), sweep)

    def test_the_table_is_json_and_says_each_value_as_people_do(self):
        sweep = Sweep(tiny.settings(inference="cfb"), "reach_m", (12_500.0, 30_000.0))
        row = SweepRow(12_500.0, delta_nll=math.inf, movers=2.5)
        result = SweepResult(sweep, (row, SweepRow(30_000.0, movers=1.0)), 0.5)
        told = json.loads(json.dumps(result.summary(), allow_nan=False))
        assert [each["value"] for each in told["rows"]] == [12_500.0, 30_000.0]
        assert told["rows"][0]["delta_nll"] is None
        assert result.table["label"].tolist() == ["12.5", "30"]
        assert set(result.columns) <= set(FIGURES)


class TestGoingOn:
    @pytest.fixture(autouse=True)
    def every_iteration(self, monkeypatch):
        monkeypatch.setattr(kept_by, "SHARE", 0.0)

    @pytest.mark.parametrize("kind", ["people", "counts"])
    def test_what_was_stopped_comes_to_the_same(self, tmp_path, monkeypatch, kind):
        if kind == "people":
            data = tiny.people()
            sweep = Sweep(tiny.settings(strength="auto", replicates=2), "group_size", (2, 5, 20))
            name = "study_steps"
        else:
            data = table_of_counts()
            sweep = Sweep(replace(QUICK, replicates=2), "prior", (1.0, 20.0))
            name = "count_study_steps"
        _, whole = run(data, sweep)
        work, made_steps = getattr(sweeps, name), []
        dies_after = [2, 4, 9, 40]

        def dying(data, settings):
            for step in work(data, settings):
                made_steps.append(settings)
                if dies_after and len(made_steps) >= dies_after[0]:
                    raise KeyboardInterrupt
                yield step

        monkeypatch.setattr(sweeps, name, dying)
        folder = tmp_path / "checkpoint"
        while dies_after:
            made_steps.clear()
            with use_checkpoints(folder):
                try:
                    run(data, sweep)
                except KeyboardInterrupt:
                    dies_after.pop(0)
                else:
                    break
        dies_after.clear()
        made_steps.clear()
        with use_checkpoints(folder):
            _, found = run(data, sweep)
        assert figures_of(found) == figures_of(whole)
        with use_checkpoints(folder):
            made_steps.clear()
            _, found = run(data, sweep)
        assert made_steps == [], "all rows were kept"
        assert figures_of(found) == figures_of(whole)

    def test_what_is_kept_of_a_value_is_not_that_of_another(self, tmp_path):
        with use_checkpoints(tmp_path / "kept") as kept:
            folders = [kept.below(name) for name in ("value/0", "value/1")]
            for number, folder in enumerate(folders):
                with use_checkpoints(folder) as inner:
                    assert checkpoints().get("fit") is None
                    inner.put("fit", number)
            assert kept.get("fit") is None
            for number, folder in enumerate(folders):
                with use_checkpoints(folder) as inner:
                    assert inner.get("fit") == number
        assert checkpoints().below("value/0") is None

    def test_it_can_be_left_in_the_middle(self):
        steps = sweep_steps(tiny.people(), Sweep(tiny.settings(), "group_size", (2, 4)))
        assert [step.done for step in islice(steps, 2)] == [0, 1]
        steps.close()


PEOPLE = tiny.settings()


class TestRefused:
    @pytest.mark.parametrize(
        ("settings", "name", "values", "code"),
        [
            (PEOPLE, "threshold", (1, 2), "unknown-option"),
            (PEOPLE, "mesh", (1, 2), "unknown-option"),
            (PEOPLE, "__class__", (1, 2), "unknown-option"),
            (QUICK, "group_size", (1, 2), "unknown-option"),
            (PEOPLE, "group_size", (), "wrong-number-of-values"),
            (PEOPLE, "group_size", (2,), "wrong-number-of-values"),
            (PEOPLE, "group_size", tuple(range(1, MOST_VALUES + 2)), "wrong-number-of-values"),
            (PEOPLE, "group_size", (2, 3, 2), "value-given-twice"),
            (PEOPLE, "misclassify", (0, 0.0), "value-given-twice"),
            (PEOPLE, "grid", ("2x2", "2 X 2"), "value-given-twice"),
            (PEOPLE, "group_size", (2, 2.5), "not-whole-numbers"),
            (PEOPLE, "group_size", (2, True), "not-whole-numbers"),
            (PEOPLE, "group_size", (2, "3"), "not-whole-numbers"),
            (PEOPLE, "misclassify", (0.1, "a"), "not-a-number"),
            (PEOPLE, "misclassify", (0.1, None), "not-a-number"),
            (PEOPLE, "inference", ("cfb", 1), "not-a-choice"),
            (PEOPLE, "inference", ("cfb", "none"), "not-a-choice"),
            (PEOPLE, "grid", ("2x2", "2"), "malformed-grid-size"),
            (PEOPLE, "group_size", (1, 0), "value-out-of-range"),
            (PEOPLE, "misclassify", (0.1, math.nan), "value-out-of-range"),
            (PEOPLE, "grid", ("2x2", "2x101"), "value-out-of-range"),
            (tiny.settings(calibrate=1, inference="cfb"), "inference", ("cfb", "sampling"),
             "learner-not-calibrated"),
            (tiny.settings(observed="positions"), "inference", ("auto", "least_squares"),
             "learner-unsuited"),
            (tiny.settings(strength="auto"), "prior", (1, 2), "option-unused"),
            (tiny.settings(noise="auto"), "assumed", (0.1, 0.2), "option-unused"),
            (tiny.settings(observed="positions"), "misclassify", (0.1, 0.2), "option-unused"),
            (CountLearnSettings(), "prior", (1, 2), "option-unused"),
            (replace(QUICK, count_error=0.1), "reach_m", (1000, 2000), "reach-unsuited"),
        ],
    )  # fmt: skip
    def test_by_the_settings_alone(self, settings, name, values, code):
        with refused(code) as fault:
            Sweep(settings, name, values)
        assert tiny.is_one_sentence(str(fault.value))

    def test_groups_larger_than_the_people_before_anything_is_learned(self, monkeypatch):
        monkeypatch.setattr(sweeps, "study_steps", None)
        sweep = Sweep(PEOPLE, "group_size", (2, 61))
        for ask in (lambda: check_sweep(tiny.people(), sweep), lambda: run(tiny.people(), sweep)):
            with refused("group-too-large", "M = 61"):
                ask()
        check_sweep(tiny.people(), Sweep(PEOPLE, "group_size", (2, 60)))

    def test_cells_that_nobody_is_in(self):
        far = replace(PEOPLE, grid=HexSettings(10.0, 50.0, 10.2, 50.2, 6))
        with refused(code_of(lambda: check_people(tiny.people(), far))):
            check_sweep(tiny.people(), Sweep(far, "h3", (5, 6)))

    def test_counts_that_tell_nothing_without_a_prior(self, monkeypatch):
        monkeypatch.setattr(sweeps, "count_study_steps", None)
        told = table_of_counts()
        known = sweeps.check_identifiable(told)
        assert known.identified
        sweep = Sweep(QUICK, "prior", (0.0, 5.0))
        check_sweep(told, sweep)
        unknown = replace(known, rank=1)
        assert not unknown.identified
        monkeypatch.setattr(sweeps, "check_identifiable", lambda *_: unknown)
        with refused("flows-not-identified"):
            run(told, sweep)
        check_sweep(told, Sweep(QUICK, "prior", (1.0, 5.0)))


def code_of(ask):
    with pytest.raises(InputError) as fault:
        ask()
    return fault.value.code


class TestSettings:
    @pytest.mark.parametrize(
        "sweep",
        [
            Sweep(PEOPLE, "group_size", (1, 5)),
            Sweep(PEOPLE, "grid", ("2x2", "3x4")),
            Sweep(replace(PEOPLE, grid=MeshSettings(139, 35, 139.3, 35.3, 2)), "mesh", (1, 2)),
            Sweep(replace(PEOPLE, grid=HexSettings(139, 35, 139.3, 35.3, 6)), "h3", (5, 6)),
            Sweep(QUICK, "count_error", (0, 0.1)),
            Sweep(replace(QUICK, day_labels=(("2024-02-01", "strike"),), time="auto"), "time",
                  ("auto", "by_time")),
        ],
        ids=lambda sweep: sweep.name,
    )  # fmt: skip
    def test_they_come_back_from_json(self, sweep):
        again = Sweep.from_dict(json.loads(json.dumps(sweep.to_dict())))
        assert again == sweep
        assert again.each == sweep.each
        assert hash(again) == hash(sweep)

    def test_cells_of_each_kind_are_made_anew(self):
        mesh = replace(PEOPLE, grid=MeshSettings(139, 35, 139.3, 35.3, 2))
        each = Sweep(mesh, "mesh", (1, 2)).each
        assert [one.grid for one in each] == [
            MeshSettings(139, 35, 139.3, 35.3, level) for level in (1, 2)
        ]

    @pytest.mark.parametrize(
        "settings", [PEOPLE, CountLearnSettings(), StudySettings()], ids=["tiny", "counts", "first"]
    )
    def test_what_is_suggested_can_be_and_some_of_it_is_there(self, settings):
        found = {name: suggested_values(settings, name) for name in variable(settings)}
        for name, values in found.items():
            if values:
                assert Sweep(to_be_used(settings, name), name, values).values == values
        # What is of no use whatever stands beside it has none.
        none = {name for name, values in found.items() if not values}
        assert none <= {"assumed_m", "calibrate"}

    def test_groups_that_are_suggested_have_people(self):
        assert suggested_values(PEOPLE, "group_size", 30) == (1, 5, 20)
        assert suggested_values(PEOPLE, "group_size", 1) == (1,)
        assert suggested_values(PEOPLE, "group_size") == (1, 5, 20, 50)

    def test_what_is_typed_is_in_the_unit_that_people_see(self):
        assert read_values(StudySettings, "reach_m", ["2", " 5.5 "]) == (2000.0, 5500.0)
        assert read_values(StudySettings, "group_size", ["1", "20"]) == (1, 20)
        assert read_values(CountLearnSettings, "time", ["one"]) == ("one",)
        sweep = Sweep(tiny.settings(inference="cfb"), "reach_m", (2000, 5500))
        assert sweep.texts == ("2", "5.5")
        assert read_values(StudySettings, "reach_m", sweep.texts) == sweep.values
        for name, texts, code in (
            ("group_size", ["1.5"], "not-whole-numbers"),
            ("misclassify", ["x"], "not-a-number"),
            ("threshold", ["1"], "unknown-option"),
        ):
            with refused(code):
                read_values(StudySettings, name, texts)
        with refused("unknown-option"):
            read_values(CountLearnSettings, "grid", ["2x2"])

    def test_choices_have_their_labels(self):
        sweep = Sweep(PEOPLE, "start", ("distance", "least_squares"))
        assert sweep.labels[0] == "Distance decay"
        assert sweep.texts == ("distance", "least_squares")


def test_memory_is_that_of_the_largest_as_often_as_at_once():
    assert megabytes_of_sweep([300.0, 900.0, 500.0], 2) == 1800
    assert megabytes_of_sweep([300.0, 900.0], 16) == 1800
    assert megabytes_of_sweep([300.0, 900.0], 1) == 900


def test_time_is_between_all_at_once_and_one_after_the_other():
    each = [Lasting(1.0, 2.0), Lasting(4.0, 8.0), Lasting(1.0, 2.0)]
    assert lasting_of_sweep(each, 1) == Lasting(6.0, 12.0)
    assert lasting_of_sweep(each, 2) == Lasting(4.0, 12.0)
