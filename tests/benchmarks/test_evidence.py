"""Measurements of a release, right where the answer is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks.evidence import changes, command, coverage
from benchmarks.evidence.attack import ATTACKS, AttackSettings, measure_people
from benchmarks.evidence.changes import ChangeSettings
from benchmarks.evidence.coverage import CoverageSettings
from tests.agg_core import counted, tiny

SETTINGS = AttackSettings(
    n_seeds=1, sides=(3, 1), least=(0, 5), bounds=(139.0, 35.0, 139.3, 35.3), step_minutes=60,
    length=4, start="10:00", iterations=2,
)  # fmt: skip


def test_a_row_for_each_size_limit_attack_and_seed():
    rows = pd.DataFrame(list(measure_people(tiny.people(), SETTINGS)))
    assert len(rows) == 2 * 2 * len(ATTACKS)
    assert set(rows["n_people"]) == {tiny.N_PEOPLE}
    in_one = rows.loc[rows["cells"] == 1]
    assert (in_one[["steps", "whole", "chance_steps"]] == 1).all(axis=None)
    nine = rows.loc[rows["cells"] == 9]
    assert nine["stay_steps"].nunique() == 1
    assert (nine.loc[nine["least_people"] == 0, "withheld"] == 0).all()


def test_who_goes_outside_is_left_out():
    # Ten people are outside from five to ten.
    settings = replace(SETTINGS, start="08:00")
    rows = pd.DataFrame(list(measure_people(tiny.people(outside=True), settings)))
    assert set(rows.loc[rows["cells"] == 9, "n_people"]) == {50}


def test_means_are_taken_over_seeds(monkeypatch, capsys, tmp_path):
    def measured(settings):
        assert settings.sides == (4,)
        assert settings.n_seeds == 2
        for seed in range(settings.n_seeds):
            case = {"cells": 16, "least_people": 0, "attack": "distance", "seed": seed}
            yield case | dict.fromkeys(command.TABLES["attack"].figures, float(seed))

    table = replace(command.TABLES["attack"], measure=measured)
    monkeypatch.setattr(command, "TABLES", {"attack": table})
    path = tmp_path / "rows.csv"
    asked = ["attack", "--seeds", "2", "--sides", "4", "--rows", str(path)]
    assert command.main(asked) == 0
    assert len(pd.read_csv(path)) == 2
    assert table.summary(pd.read_csv(path))["steps"].tolist() == [0.5]
    assert "distance" in capsys.readouterr().out


def test_a_page_without_a_place_for_the_table_is_told_at_once(tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("nothing")
    assert command.main(["attack", "--into", str(page)]) == 2
    assert "attack" in capsys.readouterr().err


@pytest.mark.real_data
def test_people_of_tokyo_are_followed_better_than_by_chance():
    settings = AttackSettings(attacks=("distance",), n_seeds=1, sides=(20,), least=(0, 10))
    shown, limited = list(command.attack.measure(settings))
    assert shown["n_people"] == 546
    assert shown["steps"] > 10 * shown["chance_steps"]
    assert shown["steps"] > shown["stay_steps"] > limited["steps"] - 0.02


def test_changes_of_ordinary_mornings_and_of_a_closed_bridge():
    settings = ChangeSettings(pairs=1, planted=1, people=1_500, iterations=3, replicates=2)
    rows = list(changes.measure(settings))
    assert [row["kind"] for row in rows] == ["ordinary", "bridge closed"]
    assert all(0.3 < row["ratio"] < 3 and row["asked"] > 0 for row in rows)
    table = command.TABLES["changes"].summary(pd.DataFrame(rows))
    assert set(command.TABLES["changes"].figures) < set(table)


def test_a_closed_bridge_keeps_people_where_they_are():
    rng = np.random.default_rng(0)
    settings = ChangeSettings(people=20_000)
    crossed = []
    for closed in (0.0, 0.2):
        cells = changes._morning(settings, rng, closed)
        west = cells % changes.SIDE < changes.SIDE // 2
        crossed.append((west[:, 1:] != west[:, :-1]).sum())
    assert crossed[1] / crossed[0] == pytest.approx(0.8, abs=0.03)


def test_intervals_and_verdicts_are_counted_where_the_truth_is_known(monkeypatch):
    result = counted.drawn()
    tables = {time: np.asarray(result.matrix(time)) for time in result.times}
    monkeypatch.setitem(coverage.CASES, "known", lambda _: (result, tables))
    settings = CoverageSettings(cases=("known",), n_seeds=1, lines=40, sectors=3, off=(0.0, 5.0))
    (row,) = coverage.measure(settings)
    assert row["n_screenlines"] > 0
    assert row["agree"] + row["wrong"] + row["cannot_tell"] == 2 * 8
    assert 0 <= row["screenlines"] <= 1
    assert row["right_or_open"] == 1 - row["wrong"] / 16
