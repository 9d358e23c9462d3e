import io
import re
import subprocess
import sys
import zipfile
from dataclasses import replace

import geopandas as gpd
import pandas as pd
import pytest

from agg_core.exports import EXPORTS, ExportInput, export_file_name
from agg_core.study.people import ALL_DAY
from agg_core.study.result import WHOLE_DAY
from tests.agg_core import counted, tiny
from tests.agg_core.exports import by_hand
from tests.agg_core.exports.by_hand import MORNING, NIGHT
from tests.faults import refused

WITH_TIME_OF_WRITING = {"omx", "omx-times", "omx-draws", "geopackage", "simwrapper"}
OF_SEVERAL_TIMES = {"flowmap-blue-times", "flows-csv-times", "omx-times"}
OF_PLACES = {
    "html", "flowmap-blue", "flowmap-blue-times", "geojson-flows", "geojson-cells", "geopackage",
    "geoparquet-flows", "geoparquet-cells", "simwrapper", "sumo",
}  # fmt: skip
OF_DRAWS = {"ensemble", "draws-netcdf", "omx-draws"}
"""What only results with draws of their flows have; `counted.drawn` is one."""
OF_CLOCK = {"sumo"}
"""What needs times of a clock and the length of a step, which `counted.study` does not tell."""


def test_the_formats_that_are_promised():
    assert set(EXPORTS) == {
        "html", "flowmap-blue", "flowmap-blue-times", "flows-csv", "flows-csv-times",
        "flows-parquet", "od-csv", "omx", "omx-times", "geojson-flows", "geojson-cells",
        "geopackage", "geoparquet-flows", "geoparquet-cells", "parameters-npz",
        "parameters-csv", "observed-csv", "ensemble", "draws-netcdf", "omx-draws", "sumo",
        "simwrapper",
    }  # fmt: skip
    assert all(key == export.key for key, export in EXPORTS.items())


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_each_format_says_in_a_sentence_what_opens_it(export):
    assert tiny.is_one_sentence(export.about)
    assert re.fullmatch(r"\.[a-z]+", export.suffix)
    assert re.fullmatch(r"[a-z]+/[a-z0-9.+-]+", export.mime)


@pytest.mark.parametrize("key", sorted(set(EXPORTS) - WITH_TIME_OF_WRITING - OF_DRAWS))
def test_the_same_result_gives_the_same_bytes(key):
    asked = ExportInput(by_hand.result(), MORNING, "People")
    assert EXPORTS[key].make(asked) == EXPORTS[key].make(asked)


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_a_result_without_times_can_be_exported_too(export):
    result = by_hand.whole_day()
    if export.key in OF_SEVERAL_TIMES | OF_DRAWS | OF_CLOCK:
        assert not export.available(result)
        return
    assert export.available(result)
    assert len(export.make(ExportInput(result, ALL_DAY))) > 100


def test_what_a_result_has_not_is_not_offered():
    assert EXPORTS["observed-csv"].available(by_hand.result())
    assert not EXPORTS["observed-csv"].available(by_hand.of_positions())
    assert EXPORTS["flowmap-blue-times"].available(by_hand.result())
    assert EXPORTS["omx"].available(by_hand.of_positions())


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_flows_from_counts_are_exported_as_far_as_they_have_what_it_takes(export):
    study = counted.study()
    without = {"observed-csv", *OF_DRAWS, *OF_CLOCK}
    assert export.available(study) is (export.key not in without)
    assert export.available(counted.drawn()) is (export.key not in {"observed-csv", *OF_CLOCK})
    assert export.available(counted.placeless()) is (export.key not in OF_PLACES | without)
    for moment in (WHOLE_DAY, counted.MORNING, counted.NIGHT):
        for result in (study, counted.unsure(), counted.placeless()):
            if export.available(result):
                assert len(export.make(ExportInput(result, moment))) > 100


@pytest.mark.parametrize(
    "key", sorted(set(EXPORTS) - WITH_TIME_OF_WRITING - OF_CLOCK - {"observed-csv"})
)
def test_the_same_flows_from_counts_give_the_same_bytes(key):
    asked = ExportInput(counted.drawn(), WHOLE_DAY, "Counts")
    assert EXPORTS[key].make(asked) == EXPORTS[key].make(asked)


def test_periods_that_are_no_clock_times_have_no_timeline():
    study = replace(counted.study(), slots=("weekday, day", "noon", "holiday, day"))
    assert not EXPORTS["flowmap-blue-times"].available(study)
    assert EXPORTS["flowmap-blue"].available(study)
    assert EXPORTS["omx-times"].available(study)


def test_counts_of_one_time_of_day_have_no_exports_of_all():
    study = counted.study()
    morning = replace(study, flows=study.flows.loc[study.flows["slot"] == 0])
    assert {key for key in OF_SEVERAL_TIMES if EXPORTS[key].available(morning)} == set()
    nobody = replace(study, flows=study.flows.iloc[:0])
    assert not EXPORTS["flows-parquet"].available(nobody)
    assert EXPORTS["flows-csv"].available(nobody)


def test_moments_and_sources_that_counts_do_not_have_are_refused():
    with refused("unknown-time", "12:00; choose one of whole day, 08:00") as no:
        ExportInput(counted.study(), "12:00")
    assert tiny.is_one_sentence(str(no.value))
    with refused("unknown-source", "not from single"):
        ExportInput(counted.study(), WHOLE_DAY, source="single")


def test_the_source_is_that_which_was_asked_for():
    asked = ExportInput(by_hand.result(), MORNING, source="counted")
    matrix = pd.read_csv(io.BytesIO(EXPORTS["od-csv"].make(asked)), index_col="origin")
    assert matrix.loc["row 2, column 2", "row 2, column 1"] == 3.0
    assert matrix.to_numpy().sum() == 5.0
    with zipfile.ZipFile(io.BytesIO(EXPORTS["flowmap-blue"].make(asked))) as archive:
        assert archive.read("flows.csv") == b"origin,dest,count\n8,7,3\n0,1,2\n"


def test_the_time_is_that_which_was_asked_for():
    asked = ExportInput(by_hand.result(), NIGHT)
    lines = gpd.read_parquet(io.BytesIO(EXPORTS["geoparquet-flows"].make(asked)))
    assert lines[["origin", "dest", "estimate"]].to_numpy().tolist() == [[4, 0, 7]]


@pytest.mark.parametrize(
    ("key", "time", "name"),
    [
        ("od-csv", "08:00", "od-csv-08-00.csv"),
        ("omx", ALL_DAY, "omx-all-day.omx"),
        ("flowmap-blue-times", "08:00", "flowmap-blue-times.zip"),
        ("parameters-npz", ALL_DAY, "parameters-npz.npz"),
        ("html", "../../x é", "flow-map-x.html"),
    ],
)
def test_names_of_files(key, time, name):
    assert export_file_name(EXPORTS[key], time) == name


@pytest.mark.parametrize(
    ("key", "days", "name"),
    [
        ("od-csv", ["2024-05-02"], "od-csv-2024-05-02-08-00.csv"),
        ("omx-times", ["2024-05-04", "2024-05-01"], "omx-times-2-days-from-2024-05-01.omx"),
        ("parameters-csv", ["2024-05-02"], "parameters-csv.zip"),
    ],
)
def test_names_of_files_of_chosen_days(key, days, name):
    assert export_file_name(EXPORTS[key], "08:00", days) == name


def test_unknown_moments_and_sources_are_refused():
    with refused("unknown-time", "09:00; choose one of 08:00, 23:30") as no:
        ExportInput(by_hand.result(), "09:00")
    assert tiny.is_one_sentence(str(no.value))
    with refused("unknown-source", "not from guess") as no:
        ExportInput(by_hand.result(), MORNING, source="guess")
    assert tiny.is_one_sentence(str(no.value))


def test_a_result_without_people_who_move_can_be_exported():
    still = by_hand.nobody_moves()
    asked = ExportInput(still, NIGHT)
    for export in EXPORTS.values():
        assert export.key in OF_DRAWS or export.make(asked), export.key


def test_the_registry_loads_nothing_slow(repository):
    program = (
        "import sys, agg_core.exports\n"
        "slow = {'plotly', 'pydeck', 'geopandas', 'shapely', 'openmatrix', 'tables', 'streamlit'}\n"
        "print(*sorted(slow & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=repository, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert run.stdout.split() == []
