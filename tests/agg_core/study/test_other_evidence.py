"""A panel and an old matrix beside counts: read, laid on cells, learned with, told and kept."""

import json
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from shapely.geometry import box

from agg_core.io.counts import read_counts
from agg_core.space.areas import AreaGrid
from agg_core.space.settings import GridSettings
from agg_core.space.shares import shares_in_cells
from agg_core.store.codec import load_result, save_result
from agg_core.store.result_files import SEALS
from agg_core.study.counts import CountStudy, count_study_steps
from agg_core.study.front import learn_flows
from agg_core.study.other_evidence import (
    OtherEvidence,
    beside_sentences,
    evidence_from,
    on_cells,
)
from agg_core.study.settings import CountLearnSettings
from agg_core.tables.count_report import CountReport
from agg_core.tables.counts import PUBLISHED, CountTable
from tests.agg_core.counts.test_panel import followed
from tests.faults import refused

QUICK = CountLearnSettings(
    strength="given", prior=5.0, time="one", replicates=0, count_error=0.0, expansion=1.0
)
BOX = GridSettings(139.0, 35.0, 139.4, 35.1, 1, 4)
CHAIN = 0.7 * np.eye(4) + 0.3 * np.array(
    [[0, 0.8, 0.1, 0.1], [0.3, 0, 0.4, 0.3], [0.1, 0.1, 0, 0.8], [0.5, 0.2, 0.3, 0]]
)
N_PEOPLE, N_PANEL, N_MOMENTS = 240, 60, 48
TIMES = pd.date_range("2024-05-01", periods=N_MOMENTS, freq="h", tz="UTC")


@pytest.fixture(scope="module")
def city():
    """A table of counts of four cells in a row, and the states (T, K) of all people."""
    states, _ = followed(np.random.default_rng(0), CHAIN, N_PEOPLE, N_MOMENTS)
    counts = np.stack([np.bincount(row, minlength=4) for row in states])
    slots = tuple(f"{hour:02d}:00" for hour in range(24))
    table = CountTable(
        times=pd.DatetimeIndex(TIMES), sequence=np.zeros(N_MOMENTS, dtype=np.int64),
        slot=np.arange(N_MOMENTS) % 24, slots=slots, cells=tuple("abcd"),
        counts=counts.astype(float), status=np.full(counts.shape, PUBLISHED, dtype=np.uint8),
        suppressed_below=0.0, timezone="UTC", grid=BOX, report=CountReport(1, 1),
    )  # fmt: skip
    return table, states


def fixes(states, minutes=20):
    """Fixes of people in the middle of their cells, some minutes after each moment."""
    moment, person = np.nonzero(states >= 0)
    places = BOX.make().centroids
    cell = states[moment, person]
    inside = cell < 4
    return pd.DataFrame({
        "user_id": [f"u{number:03d}" for number in person],
        "time": TIMES[moment] + pd.Timedelta(minutes=minutes),
        "lon": np.where(inside, places[np.minimum(cell, 3), 0], 150.0),
        "lat": np.where(inside, places[np.minimum(cell, 3), 1], 35.0),
    })  # fmt: skip


def learned(table, beside=None, settings=QUICK):
    *_, study = count_study_steps(table, settings, beside=beside)
    assert isinstance(study, CountStudy)
    return study


def areas(*boxes):
    frame = {"name": [f"z{number}" for number in range(len(boxes))]}
    return AreaGrid.of(gpd.GeoDataFrame(frame, geometry=list(boxes), crs="EPSG:4326"))


def test_states_of_a_panel_are_those_of_the_last_fix_of_a_step(city) -> None:
    table, states = city
    mine = states[:, :5].copy()
    mine[3, 2], mine[7, 1] = -1, 4
    rows = pd.concat([fixes(mine), fixes(np.where(mine == 0, 1, mine), minutes=5)])
    found = evidence_from(table, rows.sort_values(["user_id", "time"]))
    assert found is not None
    np.testing.assert_array_equal(found.panel, mine)


def test_nothing_known_is_no_evidence(city) -> None:
    assert evidence_from(city[0]) is None


def test_a_panel_is_told_and_makes_flows_better(city) -> None:
    table, states = city
    alone, both = learned(table), learned(table, OtherEvidence(states[:, :N_PANEL]))
    told = both.summary()["panel"]
    moved = states[:-1, :N_PANEL] != states[1:, :N_PANEL]
    assert (told["people"], told["moves"], told["steps"]) == (N_PANEL, moved.sum(), moved.size)
    assert told["share"] == pytest.approx(N_PANEL / N_PEOPLE)
    assert (told["weight"], told["beyond_counts"]) == (1, 0)
    assert sum(area["people"] for area in told["areas"]) == N_PANEL
    assert alone.summary()["panel"] is None
    truth = np.zeros((4, 4))
    np.add.at(truth, (states[:-1].ravel(), states[1:].ravel()), 1 / (N_MOMENTS - 1))
    errors = []
    for study in (alone, both):
        flows = study.matrix("whole day") * (1 - np.eye(4))
        errors.append(np.abs(flows - truth * (1 - np.eye(4))).sum())
    assert errors[1] < errors[0]


def test_a_panel_of_everybody_is_what_happened(city) -> None:
    table, states = city
    study = learned(table, OtherEvidence(states))
    truth = np.zeros((4, 4))
    np.add.at(truth, (states[:-1].ravel(), states[1:].ravel()), 1 / (N_MOMENTS - 1))
    np.testing.assert_allclose(study.matrix("whole day"), truth, atol=0.01)


def test_more_of_a_panel_than_were_counted_are_told(city) -> None:
    table, states = city
    doubled = np.concatenate([states, states], axis=1)
    told = learned(table, OtherEvidence(doubled)).summary()["panel"]
    assert told["beyond_counts"] >= N_PEOPLE * (N_MOMENTS - 1)


def test_scaled_counts_do_not_hold_their_panel(city) -> None:
    table, states = city
    tens = replace(table, counts=10 * table.counts)
    study = learned(tens, OtherEvidence(states[:, :9]), replace(QUICK, expansion=10.0))
    told = study.known_beside["panel"]
    assert not told["among_counted"]
    assert told["share"] == pytest.approx(9 / (10 * N_PEOPLE))


def test_counts_that_err_are_learned_with_a_panel(city) -> None:
    table, states = city
    study = learned(table, OtherEvidence(states[:, :20]), replace(QUICK, count_error=0.05))
    assert study.known_beside["panel"]["weight"] > 0
    assert not study.known_beside["panel"]["among_counted"]


def matrix_of(chain, level=1000.0):
    origin, dest = np.nonzero(~np.eye(4, dtype=bool))
    names = np.array(list("abcd"))
    counts = level * chain[origin, dest]
    return pd.DataFrame({"origin": names[origin], "dest": names[dest], "count": counts})


def test_a_matrix_is_told_and_its_level_is_of_no_use(city) -> None:
    table, _ = city
    studies = [
        learned(table, evidence_from(table, matrix=matrix_of(CHAIN, level)))
        for level in (100.0, 1e6)
    ]
    told = [study.summary()["matrix"] for study in studies]
    assert told[1]["trips"] == pytest.approx(1e4 * told[0]["trips"])
    assert told[0]["weight"] == told[1]["weight"]
    assert told[0]["share_outside"] is None
    flows = [study.matrix("whole day") for study in studies]
    np.testing.assert_allclose(flows[0], flows[1], atol=0.05)


def test_zones_are_split_between_cells_by_area(city) -> None:
    table, _ = city
    # The first zone is half of a and all of b, the second c and as much beyond the cells.
    zones = areas(box(139.05, 35, 139.2, 35.1), box(139.2, 35.0, 139.3, 35.2))
    shares = shares_in_cells(zones, BOX.make()).toarray()
    np.testing.assert_allclose(shares, [[1 / 3, 2 / 3, 0, 0], [0, 0, 0.5, 0]], atol=2e-3)
    trips = pd.DataFrame(
        {"origin": ["z0", "z0", "z1"], "dest": ["z1", "z0", "z0"], "count": [60, 9, 12]}
    )
    found = evidence_from(table, matrix=trips, zones=zones)
    assert found is not None
    assert found.matrix is not None
    counts = np.zeros((4, 4))
    rows = found.matrix.flows
    np.add.at(counts, (rows["origin"], rows["dest"]), rows["count"])
    right = np.zeros((4, 4))
    right[0, 2], right[1, 2], right[2, 0], right[2, 1] = 10, 20, 2, 4
    right[:2, :2] = [[1, 2], [2, 4]]
    np.testing.assert_allclose(counts, right, atol=0.1)
    assert found.matrix_zones == pytest.approx(36 / 81, abs=2e-3)
    told = learned(table, found).summary()["matrix"]
    assert told["share_outside"] == found.matrix_zones


def test_what_was_known_is_kept_with_a_run_and_told(city, tmp_path) -> None:
    table, states = city
    matrix = evidence_from(table, matrix=matrix_of(CHAIN))
    assert matrix is not None
    study = learned(table, replace(matrix, panel=states[:, :N_PANEL]))
    save_result(study, tmp_path / "run")
    again = load_result(tmp_path / "run")
    assert isinstance(again, CountStudy)
    assert again.known_beside == study.known_beside
    assert again.summary()["panel"] == study.summary()["panel"]
    for sentence in beside_sentences(study.known_beside):
        assert sentence in again.evidence
    assert len(beside_sentences(study.known_beside)) >= 3
    # A run of before does not have it.
    about = json.loads((tmp_path / "run" / "result.json").read_text())
    for name in ("known_beside", *SEALS):  # such runs have none
        del about[name]
    (tmp_path / "run" / "result.json").write_text(json.dumps(about))
    before = load_result(tmp_path / "run")
    assert before.known_beside == {}
    assert before.summary()["matrix"] is None


def test_in_one_call_a_panel_and_a_matrix_stand_beside_counts() -> None:
    hours = pd.date_range("2024-05-01", periods=48, freq="h", tz="UTC")
    cells = ["53394500", "53394501"]
    counts = pd.DataFrame(
        {"time": hours.repeat(2), "mesh": cells * 48, "count": [30, 20, 25, 25] * 24}
    )
    places = read_counts(counts).grid.make().centroids
    there = np.arange(48) % 2
    panel = pd.DataFrame(
        {"user_id": "u", "time": hours, "lon": places[there, 0], "lat": places[there, 1]}
    )
    matrix = pd.DataFrame({"origin": cells, "dest": cells[::-1], "count": [5, 3]})
    found = learn_flows(counts, panel=panel, matrix=matrix, replicates=0, time="one")
    assert found.known_beside["panel"]["moves"] == 47
    assert found.known_beside["matrix"]["trips"] == 8


def test_what_cannot_stand_beside_is_refused(city) -> None:
    table, states = city
    with refused("reach-unsuited"):
        within = replace(QUICK, reach_m=9e4)
        next(iter(count_study_steps(table, within, beside=OtherEvidence())))
    with refused("option-unused"):
        evidence_from(table, zones=areas(box(139, 35, 140, 36)))
    with refused("option-unused"):
        learn_flows(fixes(states[:, :3]), panel=fixes(states[:, :3]))
    bare = replace(table, grid=None)
    with refused("cells-without-place"):
        evidence_from(bare, panel=fixes(states[:, :3]))
    zoned = evidence_from(table, matrix=matrix_of(CHAIN))
    assert zoned is not None
    assert zoned.matrix is not None
    with refused("cells-without-place"):
        on_cells(zoned.matrix, areas(box(139, 35, 140, 36)), bare)
    with refused("areas-elsewhere"):
        shares_in_cells(areas(box(10, 50, 11, 51)), BOX.make())
    with refused("unknown-cells"):
        evidence_from(table, matrix=matrix_of(CHAIN).assign(origin="x", dest="y"))
    with refused("matrix-without-trips"):
        stays = pd.DataFrame({"origin": ["a"], "dest": ["a"], "count": [3]})
        learned(table, evidence_from(table, matrix=stays))
    with refused("panel-elsewhere"):
        learned(table, OtherEvidence(np.where(np.arange(N_MOMENTS)[:, None] == 3, 1, -1)))
