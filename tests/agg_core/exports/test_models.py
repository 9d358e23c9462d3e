import csv
import io
import json
import zipfile

import numpy as np
import pytest

from agg_core.errors import InputError
from agg_core.exports import models
from agg_core.settings import StudySettings
from tests.agg_core import tiny
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


def test_flows_side_by_side():
    rows = rows_of(models.flows_csv(by_hand.result(), MORNING))
    assert len(rows) == 8
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
        "anchors", "cell_centroids", "settings", "observed_counts", "estimate_startprob",
        "estimate_transmat", "single_startprob", "single_transmat",
    }  # fmt: skip
    assert arrays["anchors"].tolist() == [MORNING, NIGHT]
    assert arrays["cell_centroids"].shape == (9, 2)
    np.testing.assert_allclose(arrays["cell_centroids"][5], [139.25, 35.15])
    for i, anchor in enumerate(result.anchors):
        np.testing.assert_array_equal(arrays["estimate_transmat"][i], anchor.estimate.transmat)
        np.testing.assert_array_equal(arrays["single_startprob"][i], anchor.single.startprob)
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
    with pytest.raises(InputError, match="kept no counts per block") as fault:
        models.observed_csv(by_hand.of_positions(), MORNING)
    assert tiny.is_one_sentence(str(fault.value))


def test_the_arrays_hold_no_time_of_writing():
    with zipfile.ZipFile(io.BytesIO(models.parameters_npz(by_hand.result()))) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_parameters_as_tables():
    with zipfile.ZipFile(io.BytesIO(models.parameters_csv(by_hand.result()))) as archive:
        moves, start = (rows_of(archive.read(f"{name}.csv")) for name in ("transitions", "start"))
    assert list(moves[0]) == ["anchor", "source", "origin", "dest", "prob"]
    assert list(start[0]) == ["anchor", "source", "cell", "prob"]
    assert (len(moves), len(start)) == (2 * 2 * 100, 2 * 2 * 10)
    fit = by_hand.result().anchors[1].single
    asked = [row for row in moves if (row["anchor"], row["source"]) == (NIGHT, "single")]
    found = {(int(row["origin"]), int(row["dest"])): float(row["prob"]) for row in asked}
    assert len(found) == 100
    for pair, prob in found.items():
        assert prob == pytest.approx(fit.transmat[pair], rel=1e-9)
    begins = [float(row["prob"]) for row in start if row["anchor"] == NIGHT]
    assert begins[10:] == pytest.approx(fit.startprob.tolist(), rel=1e-9)


def test_observed_counts_with_local_times():
    rows = rows_of(models.observed_csv(by_hand.result(), NIGHT))
    assert list(rows[0]) == ["anchor", "step", "time", "cell", "name", "count"]
    assert len(rows) == 30
    # Row 13 of 10 cells a step: step 1, cell 3.
    assert list(rows[13].values()) == ["23:30", "1", "00:30", "3", "row 1, column 0", "113"]
    assert rows[29]["name"] == "outside"


def test_a_study_observes_all_of_its_people_at_every_step():
    rows = rows_of(models.observed_csv(by_hand.whole_day(), "all day"))
    counts = [float(row["count"]) for row in rows]
    assert {row["time"] for row in rows} == {""}
    assert np.reshape(counts, (3, 9)).sum(axis=1).tolist() == [480.0] * 3  # 60 people, 8 windows
