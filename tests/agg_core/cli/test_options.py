"""Every option with every command: it changes what is seen, or it is refused."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import geopandas as gpd
import pandas as pd
import pytest
from shapely.geometry import LineString, box

from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.cli import main as command_line
from agg_core.cli.options import spelt
from agg_core.exports import EXPORTS, ExportInput
from agg_core.io import Choices, count_trips
from agg_core.io.trips import TRIP_CHOICES
from agg_core.lab.experiments import EXPERIMENTS
from agg_core.learn.table import LEARNERS
from agg_core.store.codec import load_result, save_result
from agg_core.study.settings import LearnSettings, StudySettings
from tests.agg_core import counted as by_hand
from tests.agg_core import tiny
from tests.faults import refused

ROWS = (
    "who,when,lon,lat,kind,accuracy\n"
    "a,01/02/2024 08:00,139.05,35.05,1,5\n"
    "a,01/02/2024 08:40,139.15,35.05,1,5\n"
    "a,01/02/2024 08:40,139.25,35.05,1,5\n"
    "a,01/02/2024 09:20,139.25,35.25,2,5\n"
    "b,01/02/2024 08:10,139.05,35.15,1,900\n"
    "b,01/02/2024 09:10,139.15,35.15,2,5\n"
    "b,01/02/2040 09:10,139.15,35.15,2,5\n"
)
TRIPS = (
    "started_at,ended_at,start_station_id,end_station_id,kind\n"
    "01/02/2024 08:10,01/02/2024 08:20,A,B,1\n"
    "01/02/2024 09:50,01/02/2024 10:20,B,A,2\n"
)
HERE = ["--bbox", "139.0,35.0,139.3,35.3"]
LEARN = [
    *HERE, "--grid", "3x3", "--step", "1h", "--group-size", "5", "--iterations", "2",
    "--noise", "given", "--replicates", "0",
]  # fmt: skip

FILE_OPTIONS: dict[str, tuple[str, list[str]]] = {
    "column": ("rows", ["user_id=kind"]),
    "where": ("rows", ["kind=1"]),
    "date_order": ("rows", ["month"]),
    "tz": ("rows", ["Asia/Tokyo"]),
    "time_format": ("rows", ["month/day/year"]),
    "crs": ("metres", ["EPSG:6677"]),
    "swap_axes": ("swapped", []),
    "place_unit": ("minutes", ["degrees and minutes"]),
    "places": ("keyed", ["TOWERS"]),
    "slots": ("numbered-slots", ["SLOTS"]),
    "places_key": ("fixes-both", ["tower=name"]),
    "max_speed": ("rows", ["20"]),
    "max_accuracy": ("rows", ["100"]),
    "duplicates": ("rows", ["first"]),
    "time_outliers": ("many", ["keep"]),
    "ids": ("folder", ["per file"]),
    "layout": ("tdrive", ["none"]),
    "flip_y": ("numbered", []),
    "first_day": ("folder", ["2024-02-02"]),
    "last_day": ("folder", ["2024-02-01"]),
    "within": ("rows", ["139.0,35.0,139.2,35.3"]),
    "header": ("rows", []),
    "separator": ("tildes", ["~"]),
    "encoding": ("wide", ["utf-16-le"]),
    "sheet": ("book", ["second"]),
    "json": ("rows", []),
}
"""A file on which each option matters, and what is given."""

CASES: dict[str, dict[str, tuple[str, list[str]]]] = {
    "inspect": {**FILE_OPTIONS, "rows": ("rows", ["2"])},
    "counts": {
        **FILE_OPTIONS,
        "bbox": ("rows", ["139.1,35.0,139.3,35.3"]),
        "grid": ("rows", ["4x4"]),
        "mesh": ("rows", ["2"]),
        "h3": ("rows", ["5"]),
        "polygons": ("rows", ["AREAS"]),
        "name": ("rows", ["no"]),
        "polygons_crs": ("rows", ["EPSG:6677"]),
        "step": ("rows", ["1h"]),
        "max_gap": ("people", ["5h"]),
    },
    "trips": {
        **FILE_OPTIONS,
        "step": ("rows", ["1D"]),
        "column": ("rows", ["dest=kind"]),
        "places_key": ("trips-both", ["start_station_id=old"]),
    },
    "learn": {
        **FILE_OPTIONS,
        "json": ("people", []),
        "bbox": ("people", ["139.1,35.0,139.3,35.3"]),
        "grid": ("people", ["2x2"]),
        "mesh": ("people", ["2"]),
        "h3": ("people", ["6"]),
        "polygons": ("people", ["AREAS"]),
        "name": ("people", ["no"]),
        "polygons_crs": ("people", ["EPSG:6677"]),
        "step": ("people", ["2h"]),
        "length": ("people", ["4"]),
        "times": ("people", ["08:00"]),
        "max_gap": ("people", ["5h"]),
        "group_size": ("people", ["4"]),
        "observed": ("people", ["positions"]),
        "misclassify": ("people", ["0.3"]),
        "noise": ("people", ["given"]),
        "assumed": ("people", ["0.3"]),
        "assumed_m": ("people", ["3000"]),
        "reach_m": ("people", ["12"]),
        "sigma_m": ("people", ["4000"]),
        "inference": ("people", ["prox"]),
        "calibrate": ("people", ["2"]),
        "strength": ("people", ["given"]),
        "prior": ("people", ["9"]),
        "start": ("people", ["least_squares"]),
        "iterations": ("people", ["3"]),
        "replicates": ("people", ["2"]),
        "threshold": ("people", ["1"]),
        "seed": ("people", ["3"]),
        "save": ("people", ["OUT"]),
        "reference": ("people", ["FLOWS"]),
        "like": ("people", ["SAVED"]),
        "engine": ("people", ["local"]),
        "sweep": ("people", ["seed=1,2"]),
        "csv": ("people", ["OUT"]),
    },
    "flows": {
        "format": ("saved", ["omx"]),
        "list": ("saved", []),
        "time": ("saved", ["08:00"]),
        "source": ("saved", ["counted"]),
        "day": ("by_day", ["2024-05-02"]),
        "least_people": ("saved", ["3"]),
        "round_to": ("saved", ["5"]),
        "title": ("saved", ["Some title"]),
        "out": ("saved", ["OUT"]),
    },
    "evidence": {
        "reference": ("saved", ["counted"]),
        "screenlines": ("saved", ["LINES"]),
        "sectors": ("saved", ["AREAS"]),
        "counters": ("saved", ["COUNTERS"]),
        "slot_minutes": ("saved", ["15"]),
        "within_m": ("saved", ["30000"]),
        "distances": ("saved", ["KM"]),
        "preset": ("saved", ["atap"]),
        "source": ("saved", ["counted"]),
        "day": ("by_day", ["2024-05-02"]),
        "tz": ("saved", ["Asia/Tokyo"]),
        "json": ("saved", []),
        "html": ("saved", ["OUT"]),
        "profile": ("saved", ["CELL"]),
        "csv": ("saved", ["OUT"]),
    },
    "changes": {
        "before": ("by_day", ["2024-05-02"]),
        "after": ("by_day", ["2024-05-02"]),
        "from_time": ("saved", ["08:00"]),
        "to_time": ("saved", ["08:00"]),
        "time": ("by_day", ["08:00"]),
        "screenlines": ("saved", ["LINES"]),
        "sectors": ("saved", ["AREAS"]),
        "source": ("saved", ["counted"]),
        "level": ("saved", ["0.9"]),
        "json": ("saved", []),
    },
    "pull": {
        "without": ("saved", ["panel=SAVED"]),
        "time": ("saved", ["08:00"]),
        "csv": ("saved", ["OUT"]),
        "json": ("saved", []),
    },
    "accuracy": {"quick": ("", []), "experiment": ("", ["fig4"]), "json": ("", [])},
}
LEARN_FROM_COUNTS: dict[str, tuple[str, list[str]]] = {
    "column": ("long", ["count=other"]),
    "where": ("kinds", ["kind=1"]),
    "date_order": ("long", ["month"]),
    "tz": ("long", ["Asia/Tokyo"]),
    "time_format": ("long", ["month/day/year"]),
    "layout": ("long", ["wide"]),
    "duplicates": ("kinds", ["sum"]),
    "step": ("long", ["2h"]),
    "bbox": ("mesh", ["139.62,35.66,139.65,35.69"]),
    "header": ("long", []),
    "separator": ("tildes", ["~"]),
    "encoding": ("wide", ["utf-16-le"]),
    "sheet": ("book", ["second"]),
    "json": ("long", []),
    "save": ("long", ["OUT"]),
    "reference": ("long", ["FLOWS"]),
    "like": ("long", ["SAVED"]),
    "engine": ("long", ["local"]),
    "sweep": ("long", ["seed=1,2"]),
    "csv": ("long", ["OUT"]),
    "absent": ("gap", ["missing"]),
    "dash": ("long", ["zero"]),
    "suppressed_below": ("gap", ["4"]),
    "placeless": ("placed", ["keep"]),
    "first_slot": ("slots", ["09:00"]),
    "slot_minutes": ("slots", ["20"]),
    "coarser": ("mesh", ["1 level coarser"]),
    "grid_box": ("numbered", ["-139.5,35,-139,35.3"]),
    "grid_rows": ("numbered", ["4"]),
    "grid_cols": ("numbered", ["6"]),
    "grid_corner": ("numbered", ["from the north-west"]),
    "grid_first": ("numbered", ["1"]),
    "first_day": ("long", ["2024-02-02"]),
    "last_day": ("long", ["2024-02-01"]),
    "time": ("long", ["one"]),
    "strength": ("long", ["given"]),
    "prior": ("long", ["9"]),
    "count_error": ("long", ["0.1"]),
    "expansion": ("long", ["2"]),
    "reach_m": ("mesh", ["2"]),
    "replicates": ("long", ["2"]),
    "threshold": ("long", ["1"]),
    "seed": ("long", ["3"]),
    "holidays": ("long", ["JP"]),
    "day_labels": ("long", ["DAYS"]),
    "gates": ("long", ["GATES"]),
    "screenlines": ("long", ["LINES"]),
    "gate_error": ("long", ["0.05"]),
    "panel": ("mesh", ["PANEL"]),
    "matrix": ("mesh", ["MATRIX"]),
    "matrix_zones": ("mesh", ["ZONES"]),
    "matrix_key": ("mesh", ["other"]),
    "pull": ("mesh", []),
}
"""A file of counts on which each option for counts matters, and what is given."""

LEARN_FROM_GATES = ("distances", "draws", "exits", "hour_of", "minutes_per_km", "spread")
"""Options for entries and exits alone, which test_learn_gates.py has cases of."""

COMMANDS = [(command, option) for command, options in CASES.items() for option in options]


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, those of benchmarks too."""
    found: dict[str, argparse.ArgumentParser] = {}

    def look(parser: argparse.ArgumentParser) -> None:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, child in action.choices.items():
                    found[name] = child
                    look(child)

    for name, command in command_line.COMMANDS.items():
        found[name] = argparse.ArgumentParser()
        command.load().add_options(found[name])
        look(found[name])
    del found["bench"], found["app"], found["serve"], found["warm"]
    return found


def offered(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return {a.dest: a for a in parser._actions if a.option_strings and a.dest != "help"}


def test_every_option_of_every_command_has_a_case() -> None:
    every = {command: offered(parser).keys() for command, parser in parsers().items()}
    assert every.keys() == CASES.keys()
    for command, options in every.items():
        known = {*CASES[command]}
        if command == "learn":
            known |= {*LEARN_FROM_COUNTS, *LEARN_FROM_GATES}
        assert options <= known, command


CELLS = ("A", "B", "C")
MOMENTS = tuple(f"0{day}/02/2024 {hour:02d}:00" for day in (1, 2) for hour in range(6))
LONG = "time,cell,count,other\n" + "".join(
    f"{moment},{cell},{'-' if (i, j) == (2, 1) else 20 + i * j},{30 + i}\n"
    for i, moment in enumerate(MOMENTS)
    for j, cell in enumerate(CELLS)
)


def counts_by_name() -> dict[str, str]:
    """Files of counts, on which some option matters."""
    iso = [f"2024-02-0{day} {hour:02d}:00" for day in (1, 2) for hour in range(6)]
    mesh = ("53394500", "53394511", "53394599")
    return {
        "long": LONG,
        "tildes": LONG.replace(",", "~"),
        "kinds": "time,cell,count,kind\n"
        + "".join(
            f"{moment},{cell},{20 + i * kind},{kind}\n"
            for i, moment in enumerate(iso) for cell in CELLS for kind in (1, 2)
        ),
        "gap": "time,cell,count\n"
        + "".join(
            f"{moment},{cell},{5 + i + j}\n"
            for i, moment in enumerate(iso)
            for j, cell in enumerate(CELLS)
            if (i, j) != (3, 1)
        ),
        "mesh": "time,mesh,count\n"
        + "".join(f"{m},{code},{20 + i}\n" for i, m in enumerate(iso) for code in mesh),
        "slots": "date,slot,cell,n\n"
        + "".join(
            f"2024-02-0{d},{slot},{cell},{20 + slot}\n"
            for d in (1, 2) for slot in range(6) for cell in CELLS
        ),
        "numbered": "time,cell,count\n"
        + "".join(f"{m},{cell},{20 + i}\n" for i, m in enumerate(iso) for cell in range(1, 15)),
    }  # fmt: skip


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A folder of files of counts by name."""
    folder = tmp_path_factory.mktemp("counted")
    texts = counts_by_name()
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "wide").write_bytes(LONG.encode("utf-16-le"))
    sheet = pd.read_csv(folder / "long", dtype=str)
    with pd.ExcelWriter(folder / "book.xlsx") as book:
        sheet.to_excel(book, sheet_name="first", index=False)
        sheet.iloc[:12].to_excel(book, sheet_name="second", index=False)
    (folder / "book.xlsx").rename(folder / "book")
    (folder / "known.csv").write_text("origin,dest,count\nA,B,9\n")
    (folder / "days.csv").write_text("date,label\n2024-02-01,strike\n")
    (folder / "gates.csv").write_text("time,origin,dest,count\n2024-02-01 01:00,A,B,9\n")
    (folder / "panel.csv").write_text(
        "user_id,time,lon,lat\n"
        + "".join(
            f"u,2024-02-01 {hour:02d}:10,{139.631 + 0.0125 * (hour % 2)},"
            f"{35.671 + 0.0083 * (hour % 2)}\n"
            for hour in range(6)
        )
    )
    # One of each pair is a cell, the other an area.
    pairs = "origin,dest,count\n53394500,53394511,9\nx,y,7\ny,x,8\n"
    (folder / "matrix.csv").write_text(pairs)
    zones = gpd.GeoDataFrame(
        {"name": ["x", "y"], "other": ["y", "x"]},
        geometry=[box(139.6, 35.6, 139.637, 35.7), box(139.637, 35.6, 139.7, 35.7)],
        crs="EPSG:4326",
    )  # fmt: skip
    zones.to_file(folder / "zones.geojson")
    (folder / "placed").mkdir()
    (folder / "placed" / "counts.csv").write_text(texts["gap"])
    places = "cell,lon,lat\nA,139.1,35.1\nB,139.2,35.1\n"
    (folder / "placed" / "places.csv").write_text(places)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files by name, a saved result of two times of day, and areas."""
    folder = tmp_path_factory.mktemp("made")
    for kind, text in (("fixes", ROWS), ("trips", TRIPS)):
        (folder / f"{kind}-rows").write_text(text)
        (folder / f"{kind}-tildes").write_text(text.replace(",", "~"))
        (folder / f"{kind}-wide").write_bytes(text.encode("utf-16-le"))
        sheet = pd.read_csv(folder / f"{kind}-rows", dtype=str)
        with pd.ExcelWriter(folder / f"{kind}-book.xlsx") as book:
            sheet.to_excel(book, sheet_name="first", index=False)
            sheet.iloc[:1].to_excel(book, sheet_name="second", index=False)
        (folder / f"{kind}-book.xlsx").rename(folder / f"{kind}-book")
    (folder / "fixes-metres").write_text(
        "user,time,x,y\na,2024-02-01 08:00,-60000,-95000\na,2024-02-01 08:40,-65000,-90000\n"
    )
    (folder / "fixes-swapped").write_text(
        "user,time,lon,lat\na,2024-02-01 08:00,35.1,139.1\na,2024-02-01 08:40,35.2,139.2\n"
    )
    (folder / "fixes-numbered").write_text(
        "uid,d,t,x,y\n"
        + "".join(f"{u},{d},{t},100,50\n" for u in (1, 2) for d in (0, 1) for t in (16, 20))
    )
    (folder / "fixes-minutes").write_text(
        "user,time,lon,lat\na,2024-02-01 08:00,13906.5,3506.5\na,2024-02-01 08:40,13907.5,3507.5\n"
    )
    (folder / "fixes-numbered-slots").write_text(
        "user,date,slot,lon,lat\na,2024-02-01,16,139.05,35.05\na,2024-02-01,17,139.15,35.15\n"
    )
    (folder / "slots.csv").write_text("slot,start\n16,08:00\n17,08:40\n")
    keyed = "user,time,tower,cell\na,2024-02-01 08:00,A,B\na,2024-02-01 08:40,B,A\n"
    towers = "name,old,lon,lat\nA,B,139.05,35.05\nB,A,139.15,35.15\n"
    (folder / "fixes-keyed").write_text(keyed.replace(",cell", ",kind").replace(",B,A", ",B,9")
                                        .replace(",A,B", ",A,9"))  # fmt: skip
    (folder / "towers.csv").write_text(towers.replace("old", "note").replace(",B,1", ",,1")
                                       .replace(",A,1", ",,1"))  # fmt: skip
    for kind, text in (("fixes", keyed), ("trips", TRIPS)):
        (folder / f"{kind}-both").mkdir()
        (folder / f"{kind}-both" / "rows.csv").write_text(text)
        (folder / f"{kind}-both" / "towers.csv").write_text(towers)
    (folder / "fixes-tdrive").write_text(
        "1,2008-02-02 15:36:08,116.51172,39.92123\n1,2008-02-02 15:46:08,116.51135,39.93883\n"
    )
    many = pd.DataFrame({
        "user": "a", "time": pd.date_range("2024-02-01", periods=300, freq="h"), "lon": 139.1,
        "lat": 35.1,
    })  # fmt: skip
    many.loc[299, "time"] = pd.Timestamp("2040-02-01")
    many.to_csv(folder / "fixes-many", index=False)
    (folder / "fixes-folder").mkdir()
    for i in (1, 2):
        (folder / "fixes-folder" / f"{i}.csv").write_text(
            f"user,time,lon,lat\na,2024-02-0{i} 08:00,139.05,35.05\n"
            f"a,2024-02-0{i} 08:40,139.15,35.15\n"
        )
    people = tiny.frame(tiny.day_states())
    is_hole = people["user_id"].lt("p20") & people["time"].dt.hour.isin([7, 8, 9])
    people[~is_hole].to_csv(folder / "people", index=False)
    areas = gpd.GeoDataFrame(
        {"no": ["1", "1"], "zone": ["x", "y"]},
        geometry=[box(139, 35, 139.1, 35.3), box(139.1, 35, 139.3, 35.3)], crs="EPSG:4326",
    )  # fmt: skip
    areas.to_file(folder / "areas.gpkg")
    unsaid = areas.to_crs("EPSG:6677").set_crs(None, allow_override=True)
    with pytest.warns(UserWarning, match="crs"):
        unsaid.to_file(folder / "unsaid.gpkg")
    known = 'origin,dest,count\n"row 0, column 0","row 0, column 1",9\n'
    (folder / "known.csv").write_text(known)
    saved = ["learn", folder / "people", *LEARN, "--strength", "given", "--times", "05:00", "08:00"]
    assert command_line.main([*map(str, saved), "--save", str(folder / "saved")]) == 0
    save_result(by_hand.by_day(), folder / "by_day")
    line = gpd.GeoDataFrame({"name": ["mid"]}, geometry=[LineString([(139.1, 34), (139.1, 36)])])
    line.set_crs("EPSG:4326").to_file(folder / "lines.geojson")
    # The second moment is 8:10 in Tokyo.
    (folder / "counters.csv").write_text(
        "line,direction,time,count\nmid,E,2024-05-01T05:30:00Z,7\nmid,E,2024-05-01T23:10:00Z,8\n"
    )
    (folder / "placed.csv").write_text(
        "lon,lat,time,count\n139.1001,35.15,08:00,7\n139.11,35.15,08:00,8\n"
    )
    cells = [f"row {row}, column {column}" for row in range(3) for column in range(3)]
    pd.DataFrame(7.0, cells, cells).to_csv(folder / "km.csv", index_label="cell")
    return folder


@pytest.fixture
def seen(capsys, tmp_path, monkeypatch):
    """Run a command; its code, what it printed but for times and memory, and files it wrote."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        try:
            code = command_line.main([str(a) for a in arguments])
        except SystemExit as ended:
            code = ended.code
        printed = capsys.readouterr()
        out = printed.out
        if code == 0 and arguments[0] == "learn" and "--json" in arguments:
            figures = json.loads(out)
            out = {k: v for k, v in figures.items() if k not in ("wall_s", "told_s", "peak_mb")}
            for row in out.get("rows", ()):
                del row["cpu_s"]
        files = {p.name: p.is_dir() or p.read_bytes() for p in tmp_path.iterdir()}
        for path in tmp_path.iterdir():
            if path.is_file():
                path.unlink()
        return code, out, files, printed.err

    return run


WIDE = {"metres": "138,34,141,37", "numbered": "0,0,1,1", "tdrive": "116,39,117,41"}
"""Extents of the files whose fixes lie elsewhere."""


def beside_of_evidence(command: str, option: str, what: str, made) -> list[object]:
    """What else is given where an option of evidence, changes or pull matters."""
    if command == "pull":
        return ["--without", f"gates={made / 'saved'}"]
    if command == "evidence":
        at_lines = ["--screenlines", made / "lines.geojson"]
        counts = [*at_lines, "--counters", made / "counters.csv"]
        followed = ["--profile", load_result(made / what).states.cells[0]]
        of = {
            "csv": followed, "counters": at_lines, "slot_minutes": counts, "tz": counts,
            "preset": counts,
            "within_m": [*at_lines, "--counters", made / "placed.csv"],
        }  # fmt: skip
        return of.get(option, [])
    first, second = ["--before", "2024-05-01"], ["--after", "2024-05-04"]
    if what == "saved":
        first = ["--from-time", "05:00"]
        second = ["--to-time", "05:00" if option == "from_time" else "08:00"]
    first = [] if option in ("from_time", "before") else first
    second = [] if option in ("to_time", "after") else second
    return [*first, *second, *(["--json"] if option == "level" else [])]


def base_of(command: str, option: str, made) -> list[object]:
    """The command without the option, where the option matters."""
    if command == "accuracy":
        return ["bench", "accuracy", *(["--experiment", "fig3"] if option != "experiment" else [])]
    what, _ = CASES[command][option]
    if command in ("evidence", "changes", "pull"):
        return [command, made / what, *beside_of_evidence(command, option, what, made)]
    if command == "flows":
        key = {"title": "flowmap-blue", "format": None, "list": None}.get(option, "od-csv")
        folder = [made / what] if option != "list" else []
        return ["flows", *folder, *(["--format", key] if key else [])]
    named = made / f"{'trips' if command == 'trips' else 'fixes'}-{what}"
    # Options that a command does not offer have no file of its kind.
    file = next(p for p in (made / what, named, made / "trips-rows") if p.is_file() or p.is_dir())
    if command in ("inspect", "trips"):
        as_json = option == "tz" if command == "trips" else option not in ("json", "rows")
        return [command, file, *(["--json"] if as_json else [])]
    areas = {"name": "areas.gpkg", "polygons_crs": "unsaid.gpkg"}.get(option)
    of_areas = ["--polygons", made / areas] if areas else []
    is_cells = option in ("grid", "mesh", "h3", "polygons")
    fine = "100x100" if option == "flip_y" else "3x3"
    cells = of_areas or ([] if is_cells else ["--grid", fine])
    bbox = [] if option == "bbox" else ["--bbox", WIDE.get(what, HERE[1])]
    if command == "counts":
        as_json = option in ("tz", "ids", "column", "layout", "header")
        return ["counts", file, *bbox, *cells, *(["--json"] if as_json else [])]
    # Nothing is chosen or simulated but what the option is about.
    options = {"step": "1h", "group_size": "5", "iterations": "4", "threshold": "2",
               "noise": "given", "strength": "given", "replicates": "0"}  # fmt: skip
    if option == "calibrate":
        options["inference"] = "cavity"
    if option == "assumed_m":
        options["observed"] = "positions"
    if option == "inference":
        del options["strength"]
    if option == "reach_m":
        options["inference"] = "cfb"
        del options["strength"]
    if option == "csv":
        options["sweep"] = "seed=1,2"
    options.pop(option, None)
    words = [w for name, value in options.items() for w in ("--" + name.replace("_", "-"), value)]
    return ["learn", file, *bbox, *cells, *words, *([] if option == "json" else ["--json"])]


def tell_the_people(trajectories, *_):
    """In place of a study: what is made of the file."""
    told = trajectories.table.to_csv(index=False).replace("\n", " ")
    raise InputError(f"{told} {trajectories.timezone}")


@pytest.fixture(autouse=True)
def tiny_presets(monkeypatch):
    for name, experiment in EXPERIMENTS.items():
        quick = replace(
            experiment.quick, n_states=(3,), group_sizes=(1, 4), n_individuals=(40,), lengths=(3,),
            n_seeds=1, iterations=2,
        )  # fmt: skip
        full = replace(quick, n_seeds=2)
        monkeypatch.setitem(EXPERIMENTS, name, replace(experiment, quick=quick, full=full))
    monkeypatch.setattr("agg_core.cli.bench.error_by_groups", lambda: [])


@pytest.mark.parametrize(("command", "option"), COMMANDS)
def test_an_option_changes_what_is_seen_or_is_refused(
    seen, made, tmp_path, monkeypatch, command, option
):
    base = base_of(command, option, made)
    _, values = CASES[command][option]
    named = {
        "AREAS": made / "areas.gpkg", "OUT": tmp_path / "out", "FLOWS": made / "known.csv",
        "SAVED": made / "saved", "TOWERS": made / "towers.csv",
        "SLOTS": made / "slots.csv",
        "LINES": made / "lines.geojson", "KM": made / "km.csv",
        "COUNTERS": made / "counters.csv", "CELL": load_result(made / "saved").states.cells[0],
    }  # fmt: skip
    named["panel=SAVED"] = f"panel={made / 'saved'}"
    words = [spelt(option), *(named.get(value, value) for value in values)]
    if option == "header":
        words = ["--no-header"]
    if command == "learn" and option in FILE_OPTIONS.keys() - {"json"}:
        monkeypatch.setattr("agg_core.cli.learn.study_steps", tell_the_people)
    without, given = seen(*base), seen(*base, *words)
    if option not in offered(parsers()[command]):
        assert given[0] == 2
        assert "unrecognized arguments" in given[3]
    else:
        assert given != without
        if option != "header" and (
            command != "learn" or option not in FILE_OPTIONS.keys() - {"json"}
        ):
            assert given[0] == 0, given[3]


def tell_the_counts(table, settings, _, gates=None, beside=None):
    """In place of learning: what is made of the file, and what it would be learned by."""
    places = None if table.grid is None else table.grid.make().centroids.tolist()
    about = (
        table.times, table.slots, table.cells, places, table.counts.tolist(),
        table.status.tolist(), table.suppressed_below, table.timezone, settings,
        gates and (gates.gates, gates.error),
        *([] if beside is None else [
            None if beside.panel is None else beside.panel.tolist(),
            None if beside.matrix is None else beside.matrix.flows.to_numpy().round(6).tolist(),
        ]),
    )  # fmt: skip
    raise InputError(" ".join(map(str, about)).replace("\n", " "))


LEARN_OPTIONS = sorted({*CASES["learn"], *LEARN_FROM_COUNTS})
# What goes with an option in a command line in which it matters.
BESIDE = {
    "csv": ["--sweep", "seed=1,2"],
    "prior": ["--strength", "given"],
    "engine": ["--json"],
    "screenlines": ["--gates", "GATES"],
    "gate_error": ["--gates", "GATES"],
    "pull": ["--panel", "PANEL"],
    "assumed": ["--noise", "given"],
    "assumed_m": ["--observed", "positions", "--noise", "given"],
    "slot_minutes": ["--first-slot", "09:00"],
    "matrix_zones": ["--matrix", "MATRIX"],
    "matrix_key": ["--matrix", "MATRIX", "--matrix-zones", "ZONES"],
    "grid_rows": ["--grid-box", "139,35,139.5,35.3", "--grid-cols", "5"],
    "grid_cols": ["--grid-box", "139,35,139.5,35.3", "--grid-rows", "3"],
    "grid_corner": ["--grid-box", "139,35,139.5,35.3", "--grid-rows", "3", "--grid-cols", "5"],
    "grid_first": ["--grid-box", "139,35,139.5,35.3", "--grid-rows", "3", "--grid-cols", "5"],
}  # fmt: skip


def words_of(option, values):
    return ["--no-header"] if option == "header" else [spelt(option), *values]


@pytest.mark.parametrize("option", LEARN_OPTIONS)
def test_an_option_of_learning_from_counts_matters_or_is_refused(
    seen, counted, made, tmp_path, monkeypatch, option
):
    of_output = option in ("json", "save", "reference", "like", "engine", "sweep", "csv", "pull")
    if not of_output:
        monkeypatch.setattr("agg_core.cli.learn.count_study_steps", tell_the_counts)
    what, values = LEARN_FROM_COUNTS.get(option, ("long", CASES["learn"].get(option, ("", []))[1]))
    quick = ["--replicates", "0", "--time", "one", "--strength", "given"]
    quick = [*quick, "--count-error", "0", "--expansion", "1"] if of_output else []
    named = {
        "AREAS": made / "areas.gpkg", "OUT": tmp_path / "out", "FLOWS": counted / "known.csv",
        "SAVED": made / "saved", "TOWERS": made / "towers.csv", "DAYS": counted / "days.csv",
        "SLOTS": made / "slots.csv",
        "GATES": counted / "gates.csv", "LINES": made / "areas.gpkg",
        "PANEL": counted / "panel.csv", "MATRIX": counted / "matrix.csv",
        "ZONES": counted / "zones.geojson",
    }  # fmt: skip
    beside = [named.get(word, word) for word in BESIDE.get(option, [])]
    base = ["learn", counted / what, *quick, *beside]
    words = words_of(option, [named.get(value, value) for value in values])
    without, given = seen(*base), seen(*base, *words)
    assert given != without
    if option not in LEARN_FROM_COUNTS:
        code, out, files, err = given
        assert (code, out, files) == (2, "", {})
        assert err.startswith(f"agg-core: {words[0]} is for people, and ")
        assert tiny.is_one_sentence(err.removeprefix("agg-core: ").removesuffix("\n"))


@pytest.mark.parametrize("option", sorted(LEARN_FROM_COUNTS.keys() - CASES["learn"].keys()))
def test_an_option_for_counts_is_refused_where_people_are(seen, made, option):
    words = words_of(option, LEARN_FROM_COUNTS[option][1])
    code, out, files, err = seen("learn", made / "people", *words)
    assert (code, out, files) == (2, "", {})
    assert err.startswith(f"agg-core: {words[0]} is for counts, and people holds people")


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "FILE", "--rows", "2", "--json"],
        ["flows", "--list", "--format", "omx"],
        ["flows", "--list", "--title", "x"],
        ["flows", "--list", "--day", "2024-05-01"],
        ["flows", "SAVED", "--format", "omx", "--day", "2024-05-01"],
        ["flows", "--list", "--least-people", "3"],
        ["flows", "SAVED", "--format", "parameters-npz", "--least-people", "3"],
        ["flows", "SAVED", "--format", "omx", "--title", "x"],
        ["flows", "SAVED", "--format", "omx", "--source", "counted"],
        ["flows", "SAVED", "--format", "omx-times", "--time", "08:00"],
        ["counts", "FILE", "--name", "zone"],
        ["counts", "FILE", "--polygons-crs", "EPSG:4326"],
        ["learn", "FILE", "--calibrate", "2"],
        ["learn", "FILE", "--observed", "positions", "--misclassify", "0.1"],
        ["learn", "FILE", "--group-size", "1", "--strength", "given"],
        ["learn", "FILE", "--prior", "2"],
        ["learn", "FILE", "--assumed", "0.1"],
        ["learn", "FILE", "--assumed-m", "100"],
        ["learn", "FILE", "--noise", "given", "--assumed-m", "100"],
        ["learn", "FILE", "--observed", "positions", "--assumed-m", "100"],
        ["learn", "FILE", "--observed", "positions", "--noise", "given", "--assumed", "0.1"],
        ["learn", "FILE", "--observed", "positions", "--start", "least_squares"],
        ["learn", "FILE", "--duplicates", "sum"],
        ["learn", "FILE", "--csv", "out.csv"],
        ["learn", "FILE", "--sweep", "group_size"],
        ["learn", "FILE", "--sweep", "group_size="],
        ["learn", "FILE", "--sweep", "group_size=2"],
        ["learn", "FILE", "--sweep", "group_size=2,2"],
        ["learn", "FILE", "--sweep", "group_size=2,61"],
        ["learn", "FILE", "--sweep", "group_size=2,x"],
        ["learn", "FILE", "--sweep", "group_size=2,5", "--group-size", "5"],
        ["learn", "FILE", "--sweep", "group_size=2,5", "--prior", "2"],
        ["learn", "FILE", "--sweep", "group_size=2,5", "--save", "kept"],
        ["learn", "FILE", "--sweep", "group_size=2,5", "--like", "SAVED"],
        ["learn", "FILE", "--sweep", "group_size=2,5", "--reference", "FLOWS"],
        ["learn", "FILE", "--sweep", "group_size=2,5", "--absent", "missing"],
        ["learn", "FILE", "--sweep", "prior=2,5"],
        ["learn", "FILE", "--sweep", "grid=2x2,3x3", "--mesh", "2"],
        ["learn", "FILE", "--sweep", "mesh=1,2", "--grid", "3x3"],
        ["learn", "FILE", "--sweep", "step=30,60"],
        ["learn", "FILE", "--sweep", "inference=cfb,sampling", "--calibrate", "2"],
        ["learn", "COUNTS", "--sweep", "group_size=2,5"],
        ["learn", "COUNTS", "--sweep", "prior=2,5"],
        ["learn", "COUNTS", "--sweep", "seed=2,5", "--length", "3"],
        ["learn", "COUNTS", "--prior", "2"],
        ["learn", "COUNTS", "--strength", "auto", "--prior", "2"],
        ["learn", "COUNTS", "--time", "one", "--holidays", "JP"],
        ["learn", "COUNTS", "--time", "one", "--day-labels", "DAYS"],
        ["learn", "COUNTS", "--matrix-key", "name"],
        ["learn", "COUNTS", "--matrix-zones", "AREAS"],
        ["learn", "COUNTS", "--panel", "FILE", "--sweep", "seed=2,5"],
        ["learn", "COUNTS", "--panel", "FILE"],
    ],
    ids=" ".join,
)
def test_options_that_another_one_leaves_without_use_are_refused(seen, made, counted, arguments):
    names = {
        "FILE": made / "people", "SAVED": made / "saved", "COUNTS": counted / "long",
        "DAYS": counted / "days.csv", "FLOWS": made / "known.csv", "AREAS": made / "areas.gpkg",
    }  # fmt: skip
    code, out, files, err = seen(*(names.get(word, word) for word in arguments))
    assert (code, out, files) == (2, "", {})
    assert tiny.is_one_sentence(err.removeprefix("agg_core: ").removesuffix("\n"))


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_a_learner_does_not_use_is_refused_when_it_is_given(seen, made, learner):
    for option, value, has_use in (
        ("--strength", "given", LEARNERS[learner].pulled),
        ("--calibrate", "1", LEARNERS[learner].calibrated),
    ):
        words = [*LEARN, "--inference", learner, option, value]
        assert seen("learn", made / "people", *words)[0] == (0 if has_use else 2)


@pytest.mark.parametrize("group_size", [1, 5])
@pytest.mark.parametrize("learner", LEARNERS)
def test_settings_that_are_used_change_what_is_learned(learner, group_size):
    """And those that are not change nothing."""

    def learned(**values):
        chosen = tiny.settings(inference=learner, group_size=group_size, **values)
        fit = tiny.run(tiny.people(), chosen)[1].by_time[0].estimate
        return fit.transmat.tolist(), fit.history

    plain = learned()
    chosen = LearnSettings(inference=learner, group_size=group_size, strength="given")
    for name, value in {"prior": 9.0, "misclassify": 0.2, "start": "least_squares"}.items():
        assert (learned(**{name: value}) == plain) == (name in chosen.unused), name
    if "calibrate" not in chosen.unused:
        assert learned(calibrate=2) != plain


@pytest.mark.parametrize("learner", [row.name for row in LEARNERS.values() if not row.calibrated])
def test_calibration_of_other_learners_is_refused_by_the_settings(learner):
    with refused("learner-not-calibrated") as fault:
        LearnSettings(inference=learner, calibrate=5)
    assert fault.value.option == "--calibrate 0"
    assert LearnSettings(inference="cavity", calibrate=5).calibrate == 5


def test_a_study_kept_with_replicates_that_nobody_simulated_is_still_read():
    values = StudySettings().to_dict()
    values["learn"]["calibrate"] = 5
    assert StudySettings.from_dict(values) == StudySettings()


@pytest.mark.parametrize("name", sorted(set(options_of(Choices)) - set(TRIP_CHOICES)))
def test_trips_refuse_what_they_have_no_use_for(made, name):
    stated = {
        "place_unit": "semicircles", "crs": "EPSG:6677", "swap_axes": True, "max_speed": 9.0,
        "max_accuracy": 9.0, "duplicates": "first", "time_outliers": "keep", "ids": "shared",
        "layout": "none", "flip_y": True, "first_day": "2024-02-01", "last_day": "2024-02-01",
        "within": (139.0, 35.0, 140.0, 36.0),
    }  # fmt: skip
    with pytest.raises(InputError, match=name):
        count_trips(made / "trips-rows", Choices(**{name: stated[name]}))


def test_trips_that_are_not_selected_are_counted(made):
    counted = count_trips(made / "trips-rows", Choices.of(where={"kind": "2"}))
    assert counted.table[["origin", "dest", "count"]].to_numpy().tolist() == [["B", "A", 1]]
    assert (counted.trips, counted.left_out, counted.not_selected) == (1, 0, 1)


# What is made of a result once more differs in its time stamps alone.
STAMPED = {"geopackage", "omx", "omx-times", "omx-draws", "simwrapper"}


@pytest.mark.parametrize("key", sorted(EXPORTS.keys() - STAMPED - {"ensemble", "draws-netcdf"}))
def test_a_format_uses_what_it_says_that_it_uses(made, key):
    export, result = EXPORTS[key], load_result(made / "saved")

    def content(time="05:00", **asked):
        return export.make(ExportInput(result, time, **asked))

    plain = content()
    assert (content(title="Some title") != plain) == export.titled
    assert (content(source="counted") != plain) == export.one_source
    assert (content("08:00") != plain) == (not export.of_all_times)
