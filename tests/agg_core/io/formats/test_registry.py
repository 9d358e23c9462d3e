"""All formats through one door: the same table out of each, and damage of every sort."""

import io
import zipfile

import geopandas as gpd
import numpy as np
import openpyxl
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agg_core.io import read_trajectories
from tests.agg_core.io import fuzz
from tests.warm import fork_from_now_on


@pytest.fixture(scope="module", autouse=True)
def forked():
    """Workbooks are read by processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        fork_from_now_on(patch)
        yield


LOST = {"FIT", "PLT", "GPX", "Google"}
"""Formats of one person."""


@pytest.mark.parametrize(
    "kind", [kind for kind in fuzz.SEEDS if kind not in LOST and kind != "zip"]
)
def test_the_same_table_comes_out_of_every_format(kind):
    expected = fuzz.table()
    found = read_trajectories(fuzz.SEEDS[kind](), filename="file").table
    # Where people come in another order (FlatGeobuf sorts by place), that is theirs.
    found = found.sort_values(["user_id", "time"], ignore_index=True)
    assert found["user_id"].tolist() == expected["user_id"].tolist()
    assert (found["time"].dt.tz_localize(None) == expected["time"]).all()
    np.testing.assert_allclose(found[["lon", "lat"]], expected[["lon", "lat"]], atol=1e-9)


@pytest.mark.parametrize("kind", sorted(LOST))
def test_the_same_fixes_come_out_of_formats_of_one_person(kind):
    expected = fuzz.table()
    found = read_trajectories(fuzz.SEEDS[kind](), filename="file", duplicates="last")
    report = found.report
    assert report.individuals == 1
    assert report.rows_read == len(expected)
    assert (report.first_utc, report.last_utc) == (
        expected["time"].min().tz_localize("UTC"),
        expected["time"].max().tz_localize("UTC"),
    )


def test_the_archive_of_two_files_of_the_same_people():
    found = read_trajectories(fuzz.SEEDS["zip"]())
    assert found.report.set_aside["duplicate time"].count == len(fuzz.table())


IDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
TABLES = st.lists(
    st.tuples(
        IDS.filter(lambda text: text.lower() not in {"nan", "null", "none", "<na>", "\\n"}),
        st.datetimes(pd.Timestamp("2020-01-01"), pd.Timestamp("2024-12-31")),
        st.floats(-180, 180).filter(bool),
        st.floats(-90, 90),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda row: (row[0].strip(), row[1]),
)


def _frame(rows):
    # A first row that leaves no doubt of what is what, as a real file has many.
    rows = [("first", pd.Timestamp("2022-02-22 22:22:22"), 139.5, 35.5), *rows]
    frame = pd.DataFrame(rows, columns=["user_id", "time", "lon", "lat"])
    return frame.drop_duplicates(["user_id", "time"]).reset_index(drop=True)


def _same(found, frame, atol=0.0):
    order = pd.factorize(frame["user_id"])[0]
    expected = frame.iloc[np.lexsort((frame["time"], order))].reset_index(drop=True)
    assert found.table["user_id"].tolist() == expected["user_id"].tolist()
    assert (found.table["time"].dt.tz_localize(None) == expected["time"]).all()
    np.testing.assert_allclose(found.table[["lon", "lat"]], expected[["lon", "lat"]], atol=atol)


def _far(frame):
    return frame[(frame["lon"].abs() + frame["lat"].abs() > 0)]


@settings(max_examples=60, deadline=None)
@given(
    TABLES,
    st.sampled_from([",", "\t", ";", "|"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_text_round_trip(rows, separator, encoding):
    frame = _frame(rows)
    text = frame.to_csv(index=False, sep=separator, lineterminator="\n")
    found = read_trajectories(text.encode(encoding), separator=separator)
    _same(found, frame)


@settings(max_examples=60, deadline=None)
@given(TABLES)
def test_parquet_round_trip(rows):
    frame = _frame(rows)
    out = io.BytesIO()
    frame.to_parquet(out)
    _same(read_trajectories(out.getvalue()), frame)


@settings(max_examples=30, deadline=None)
@given(TABLES)
def test_json_round_trip(rows):
    frame = _frame(rows)
    text = frame.assign(time=frame["time"].astype(str)).to_json(
        orient="records", double_precision=15
    )
    _same(read_trajectories(text.encode()), frame, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(TABLES)
def test_workbook_round_trip(rows):
    frame = _frame(rows)
    frame["time"] = frame["time"].dt.round("s")
    frame = frame.drop_duplicates(["user_id", "time"]).reset_index(drop=True)
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.append(list(frame.columns))
    for row in frame.itertuples(index=False):
        book.active.append([row.user_id, row.time.to_pydatetime(), row.lon, row.lat])
        book.active.cell(book.active.max_row, 1).data_type = "s"
    out = io.BytesIO()
    book.save(out)
    _same(read_trajectories(out.getvalue()), frame, atol=1e-9)


def test_damaged_files_are_read_or_refused():
    kinds = {(kind, outcome) for kind, outcome, _ in fuzz.outcomes(20 * len(fuzz.SEEDS))}
    assert {kind for kind, outcome in kinds if outcome == "refused"} == set(fuzz.SEEDS)
    assert ("CSV", "read") in kinds


@pytest.mark.parametrize("kind", ["GeoPackage", "FlatGeobuf", "GeoParquet", "GeoJSON", "zip"])
def test_places_are_brought_to_degrees_once(kind):
    table = fuzz.table()
    points = gpd.GeoDataFrame(
        {"user_id": table["user_id"], "time": table["time"].astype(str)},
        geometry=gpd.points_from_xy(table["lon"], table["lat"]),
        crs="EPSG:4326",
    ).to_crs("EPSG:6677")
    out = io.BytesIO()
    if kind == "GeoParquet":
        points.to_parquet(out)
    else:
        points.to_file(out, driver={"GeoPackage": "GPKG", "zip": "GPKG"}.get(kind, kind))
    content = out.getvalue()
    if kind == "zip":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("1.gpkg", content)
            archive.writestr("2.gpkg", content)
        content = packed.getvalue()
    for crs in (None, "EPSG:6677"):
        found = read_trajectories(content, filename="file", crs=crs).table
        found = found.sort_values(["user_id", "time"], ignore_index=True)
        np.testing.assert_allclose(found[["lon", "lat"]], table[["lon", "lat"]], atol=1e-6)
