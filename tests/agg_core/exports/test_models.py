import csv
import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agg_core.exports import models
from agg_core.study.result import WHOLE_DAY
from agg_core.study.settings import CountLearnSettings, StudySettings
from tests.agg_core import counted, tiny
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT
from tests.faults import refused


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


def test_flows_side_by_side():
    rows = rows_of(models.flows_csv(by_hand.result(), MORNING))
    assert len(rows) == 7
    found = {(row["origin"], row["dest"]): row for row in rows}
    there = found["0", "1"]
    assert (there["estimate"], there["single"], there["counted"]) == ("2.5", "2", "2")
    assert (there["difference"], there["dest_lon"]) == ("0.5", "139.15")
    out = found["0", "9"]
    assert (out["dest_name"], out["dest_lon"], out["estimate"]) == ("outside", "", "1.5")


@pytest.fixture
def arrays():
    with np.load(io.BytesIO(models.parameters_npz(by_hand.result())), allow_pickle=False) as file:
        return dict(file)


def test_arrays_of_all_times(arrays):
    result = by_hand.result()
    assert arrays.keys() == {
        "times", "cell_centroids", "settings", "observed_counts", "estimate_startprob",
        "estimate_transmat", "single_startprob", "single_transmat",
    }  # fmt: skip
    assert arrays["times"].tolist() == [MORNING, NIGHT]
    assert arrays["cell_centroids"].shape == (9, 2)
    np.testing.assert_allclose(arrays["cell_centroids"][5], [139.25, 35.15])
    for i, found in enumerate(result.by_time):
        np.testing.assert_array_equal(arrays["estimate_transmat"][i], found.estimate.transmat)
        np.testing.assert_array_equal(arrays["single_startprob"][i], found.single.startprob)
    np.testing.assert_allclose(arrays["single_transmat"].sum(axis=2), 1.0)
    np.testing.assert_array_equal(arrays["observed_counts"][1], by_hand.OBSERVED[NIGHT])


def test_the_settings_come_back_from_the_arrays(arrays):
    found = StudySettings.from_dict(json.loads(str(arrays["settings"])))
    assert found == by_hand.result().settings


def test_positions_leave_no_counts():
    content = models.parameters_npz(by_hand.of_positions())
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        assert "observed_counts" not in file
    assert not models.has_observed(by_hand.of_positions())
    with refused("nothing-to-export") as fault:
        models.observed_csv(by_hand.of_positions(), MORNING)
    assert tiny.is_one_sentence(str(fault.value))


def test_the_arrays_hold_no_time_of_writing():
    with zipfile.ZipFile(io.BytesIO(models.parameters_npz(by_hand.result()))) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_parameters_as_tables():
    with zipfile.ZipFile(io.BytesIO(models.parameters_csv(by_hand.result()))) as archive:
        moves, start = (rows_of(archive.read(f"{name}.csv")) for name in ("transitions", "start"))
    assert list(moves[0]) == ["time", "source", "origin", "dest", "prob"]
    assert list(start[0]) == ["time", "source", "cell", "prob"]
    assert (len(moves), len(start)) == (2 * 2 * 100, 2 * 2 * 10)
    fit = by_hand.result().by_time[1].single
    asked = [row for row in moves if (row["time"], row["source"]) == (NIGHT, "single")]
    found = {(int(row["origin"]), int(row["dest"])): float(row["prob"]) for row in asked}
    assert len(found) == 100
    for pair, prob in found.items():
        assert prob == pytest.approx(fit.transmat[pair], rel=1e-9)
    begins = [float(row["prob"]) for row in start if row["time"] == NIGHT]
    assert begins[10:] == pytest.approx(fit.startprob.tolist(), rel=1e-9)


def test_observed_counts_with_local_times():
    rows = rows_of(models.observed_csv(by_hand.result(), NIGHT))
    assert list(rows[0]) == ["time", "step", "local_time", "cell", "name", "count"]
    assert len(rows) == 30
    # Row 13 of 10 cells a step: step 1, cell 3.
    assert list(rows[13].values()) == ["23:30", "1", "00:30", "3", "row 1, column 0", "113"]
    assert rows[29]["name"] == "outside"


def test_a_study_observes_all_of_its_people_at_every_step():
    rows = rows_of(models.observed_csv(by_hand.whole_day(), "all day"))
    counts = [float(row["count"]) for row in rows]
    assert {row["local_time"] for row in rows} == {""}
    assert np.reshape(counts, (3, 9)).sum(axis=1).tolist() == [480.0] * 3  # 60 people, 8 windows


def test_flows_of_all_times_in_one_table():
    rows = rows_of(models.flows_csv(by_hand.result(), MORNING, NIGHT))
    assert [row["time"] for row in rows] == [MORNING] * 7 + [NIGHT] * 2
    assert rows[-1]["estimate"] == "7"
    table = pd.read_parquet(io.BytesIO(models.flows_parquet(by_hand.result())))
    assert table["time"].tolist() == [row["time"] for row in rows]
    assert table["counted"].tolist() == [float(row["counted"]) for row in rows]


# ---------------------------------------------------------------- flows from counts


def test_flows_from_counts_with_their_intervals_and_times():
    rows = rows_of(models.flows_csv(counted.study(), WHOLE_DAY))
    assert len(rows) == len(counted.DAY)
    assert {row["time"] for row in rows} == {WHOLE_DAY}
    there = next(row for row in rows if (row["origin"], row["dest"]) == ("4", "0"))
    assert [there[name] for name in ("count", "low", "high", "resolved")] == [
        "4.5", "4", "5", "True",
    ]  # fmt: skip
    table = pd.read_parquet(io.BytesIO(models.flows_parquet(counted.study())))
    assert table.groupby("time")["count"].sum().to_dict() == {"08:00": 28.75, "23:00": 39.0}
    assert table["resolved"].dtype == bool


def test_hostile_names_of_cells_are_guarded_in_tables():
    named = replace(counted.placeless(), cells=("=1+1", *counted.study().cells[1:]))
    assert b"'=1+1" in models.flows_csv(named, WHOLE_DAY)
    with zipfile.ZipFile(io.BytesIO(models.parameters_csv(named))) as archive:
        assert rows_of(archive.read("people.csv"))[0]["name"] == "'=1+1"


@pytest.mark.parametrize("study", [counted.study(), counted.placeless()], ids=["places", "names"])
def test_what_was_learned_from_counts_as_arrays(study):
    content = models.parameters_npz(study)
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = dict(file)
    places = {"cell_centroids"} if study.grid is not None else set()
    assert arrays.keys() == {"times", "states", "people", "transmat", "settings"} | places
    assert arrays["times"].tolist() == ["08:00", "12:00", "23:00"]
    assert arrays["states"].tolist() == [*study.cells, "outside"]
    np.testing.assert_array_equal(arrays["transmat"], study.transmats)
    np.testing.assert_array_equal(arrays["people"], study.people)
    settings = CountLearnSettings.from_dict(json.loads(str(arrays["settings"])))
    assert settings == study.settings


@pytest.mark.parametrize("n_matrices", [3, 1])
def test_what_was_learned_from_counts_as_tables(n_matrices):
    transmats = counted.study().transmats[:n_matrices].copy()
    transmats[0, 0] = np.eye(10)[3]
    study = replace(counted.study(), transmats=transmats)
    with zipfile.ZipFile(io.BytesIO(models.parameters_csv(study))) as archive:
        moves, people = (rows_of(archive.read(f"{name}.csv")) for name in ("transitions", "people"))
    first = study.slots[0] if n_matrices == 3 else WHOLE_DAY
    assert list(moves[0].values()) == [first, "0", "3", "1"]
    assert len(moves) == n_matrices * 100 - 9, "chances of 0 are left out"
    assert float(moves[-1]["prob"]) == pytest.approx(transmats[-1, 9, 9], rel=1e-9)
    assert len(people) == 30
    assert list(people[19].values())[:3] == ["12:00", "9", "outside"]
    assert float(people[19]["people"]) == pytest.approx(study.people[1, 9], rel=1e-9)


def test_counts_have_no_observed_people_per_cell():
    assert not models.has_observed(counted.study())
    with refused("nothing-to-export"):
        models.observed_csv(counted.study(), WHOLE_DAY)


def test_draws_of_sparse_flows_are_rows_of_each_draw():
    window = tiny.WindowSettings(60, 3, ("06:00", "12:00"), 90)
    settings = tiny.settings(window, iterations=2, reach_m=21_000.0, replicates=2)
    _, result = tiny.run(tiny.people(), settings)
    rows = pd.read_parquet(io.BytesIO(models.ensemble_parquet(result, "estimate")))
    assert list(rows.columns) == ["draw", "time", "origin", "dest", "count"]
    for time in result.times:
        for number, table in enumerate(result.draws(time)):
            mine = rows.loc[(rows["draw"] == number) & (rows["time"] == time)]
            found = np.zeros((9, 9))
            found[mine["origin"], mine["dest"]] = mine["count"]
            np.testing.assert_allclose(found, table.toarray())
    with np.load(io.BytesIO(models.parameters_npz(result))) as arrays:
        n = len(arrays["indices"])
        assert arrays["indptr"][-1] == n == result.matrix("06:00").nnz
        assert arrays["estimate_transmat"].shape == (2, n)
