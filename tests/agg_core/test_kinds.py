"""Every kind of grid through all that is done with a grid: learn, keep, draw, export, focus."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from shapely.geometry import MultiPolygon, box

from agg_core.exports import EXPORTS, ExportInput
from agg_core.io.formats.vector import read_vector
from agg_core.plotting.flow_map import flows_of, pack
from agg_core.plotting.maps import grid_deck, heat_deck
from agg_core.plotting.paper import PaperRow, paper_figure
from agg_core.space import AreaGrid
from agg_core.space.build import Grid
from agg_core.space.settings import (
    AnyGridSettings,
    AreaSettings,
    GridSettings,
    HexSettings,
    MeshSettings,
    grid_kind,
    grid_words,
)
from agg_core.store.codec import load_result, save_result
from agg_core.store.jobs import STUDY, start_job
from agg_core.study.people import SOURCES, StudyResult, estimate_megabytes
from agg_core.study.settings import StudySettings
from agg_core.study.suggest import suggest_level, suggest_resolution
from tests.agg_core import tiny
from tests.agg_core.plotting.unpacked import Unpacked
from tests.agg_core.sealing import unseal
from tests.faults import refused
from tests.warm import fork_from_now_on

EXTENT = (139.0, 35.0, 139.3, 35.3)
HOLED = box(139.0, 35.0, 139.2, 35.2).difference(box(139.05, 35.05, 139.1, 35.1))
SPLIT = MultiPolygon([box(139.2, 35.0, 139.3, 35.1), box(139.0, 35.25, 139.1, 35.3)])
AREAS = gpd.GeoDataFrame(
    {"name": ["<b>穴区</b>", "=分区", "北区"]},
    geometry=[HOLED, SPLIT, box(139.1, 35.2, 139.3, 35.3)],
    crs="EPSG:4326",
)


@cache
def settings_of(kind: str) -> AnyGridSettings:
    return {
        "rectangle": lambda: tiny.GRID,
        "mesh": lambda: MeshSettings(*EXTENT, 2),
        "codes": lambda: MeshSettings(codes=("523970", "523971", "533900", "533901")),
        "h3": lambda: HexSettings(*EXTENT, 5),
        "areas": lambda: AreaSettings.of(Grid.from_polygons(AREAS), "mine.gpkg"),
    }[kind]()


KINDS = ("rectangle", "mesh", "codes", "h3", "areas")


@cache
def study(kind: str) -> StudyResult:
    chosen = tiny.settings(grid=settings_of(kind), iterations=2, sigma_m=800.0, threshold=0.5)
    return tiny.run(tiny.people(), chosen)[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_counts_the_flows_that_the_places_say(kind: str) -> None:
    result = study(kind)
    grid = result.settings.grid.make()
    table = tiny.frame(tiny.day_states())
    cells = grid.assign(table["lon"], table["lat"]).reshape(tiny.N_PEOPLE, 24)
    assert result.has_outside == bool((cells < 0).any())
    windows = tiny.whole_day_windows(np.where(cells < 0, grid.n_cells, cells))
    by_hand = tiny.counted_by_hand(w for w in windows if (w < grid.n_cells).any())
    counted = result.table(result.busiest, "counted")
    found = {(a, b): n for a, b, n in counted[["origin", "dest", "count"]].itertuples(index=False)}
    assert found == pytest.approx(by_hand)
    assert result.n_states == grid.n_cells + result.has_outside


@pytest.mark.parametrize("kind", KINDS)
def test_settings_come_back_from_json(kind: str) -> None:
    chosen = StudySettings(grid=settings_of(kind))
    back = StudySettings.from_dict(json.loads(json.dumps(chosen.to_dict())))
    assert back == chosen
    assert back.grid.make() == chosen.grid.make()
    assert hash(back.grid) == hash(chosen.grid)
    assert grid_kind(back.grid) == {"codes": "mesh"}.get(kind, kind)


def test_settings_of_older_runs_name_no_kind() -> None:
    assert "kind" not in StudySettings().to_dict()["grid"]
    newer = StudySettings().to_dict()
    newer["grid"] = {"kind": "voronoi", "n": 3}
    with refused("unknown-grid-kind"):
        StudySettings.from_dict(newer)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_comes_back_to_the_bit(kind: str, tmp_path: Path) -> None:
    result = study(kind)
    save_result(result, tmp_path / "run")
    back = load_result(tmp_path / "run")
    assert back.settings == result.settings
    one, other = back.settings.grid.make(), result.settings.grid.make()
    assert one.labels == other.labels
    assert shapely.equals_identical(one.polygons, other.polygons).all()
    for at in result.times:
        for source in SOURCES:
            mine, theirs = (found.table(at, source) for found in (back, result))
            pd.testing.assert_frame_equal(mine, theirs, check_exact=True)


def test_altered_areas_of_a_run_are_one_sentence(tmp_path: Path) -> None:
    save_result(study("areas"), tmp_path / "run")
    unseal(tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    about = json.loads(path.read_text(encoding="utf-8"))
    about["settings"]["grid"]["packed"] = about["settings"]["grid"]["packed"][:-12]
    path.write_text(json.dumps(about), encoding="utf-8")
    with refused("saved-areas-damaged") as fault:
        load_result(tmp_path / "run")
    assert tiny.is_one_sentence(str(fault.value).replace("; ", ", "))


def test_a_job_gets_the_areas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fork_from_now_on(monkeypatch)
    chosen = study("areas").settings
    job = start_job(STUDY, chosen, tmp_path / "job", tiny.people())
    try:
        job.wait()
        assert job.status().state == "done", job.status().message
        here, there = study("areas"), load_result(job.result_folder)
        for source in SOURCES:
            mine, theirs = (found.table(here.busiest, source) for found in (here, there))
            pd.testing.assert_frame_equal(mine, theirs)
    finally:
        job.remove()


@pytest.mark.parametrize("kind", KINDS)
def test_maps_show_every_part_of_every_cell(kind: str) -> None:
    result = study(kind)
    grid = result.settings.grid.make()
    people = np.arange(grid.n_cells, dtype=float)
    decks = {
        "grid": grid_deck(grid),
        "heat": heat_deck(grid, people, vmax=people.max(), selected=1),
        "columns": heat_deck(grid, people, vmax=people.max(), columns=True),
    }
    for name, deck in decks.items():
        layers = {layer["id"]: layer["data"] for layer in json.loads(deck.to_json())["layers"]}
        cells = layers["cells"]
        shown = set(range(1 if name == "columns" else 0, grid.n_cells))
        assert {cell["cell"] for cell in cells} == shown
        assert all(cell["where"] == grid.labels[cell["cell"]] for cell in cells)
        if name == "heat":
            said = {cell["cell"]: cell["people"] for cell in cells}
            assert said == dict(enumerate(people.tolist()))
            assert len(layers["selected"]) == (2 if kind == "areas" else 1)
        assert ("labels" in layers) == (name == "grid" and kind == "rectangle")
        if kind == "areas" and name == "heat":
            assert len(cells) == 4, "the split area has two parts"
            assert len(cells[0]["ring"]) == 2, "and the first one a hole"


@pytest.mark.parametrize("kind", KINDS)
def test_the_figure_for_slides_is_drawn(kind: str) -> None:
    result = study(kind)
    grid = result.settings.grid.make()
    table = result.table(result.busiest, "estimate")
    row = PaperRow("08:00", table, result.table(result.busiest, "counted"), 0.9, 1.0)
    figure = paper_figure([row], grid, vmax=5.0, threshold=0.1)
    assert {"cells", "people", "arrows"} <= {trace.name for trace in figure.data}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("export", EXPORTS)
def test_every_export_takes_every_kind(kind: str, export: str) -> None:
    result = study(kind)
    if EXPORTS[export].available(result):
        asked = ExportInput(result, result.busiest, "Title", "estimate")
        assert len(EXPORTS[export].make(asked)) > 100


@pytest.mark.parametrize("kind", KINDS)
def test_exported_cells_are_the_cells(kind: str) -> None:
    from agg_core.exports.geo import geojson_cells

    result = study(kind)
    grid = result.settings.grid.make()
    frame = read_vector(geojson_cells(result, result.busiest), "cells.geojson").frame
    assert frame["name"].tolist() == grid.labels
    assert shapely.equals_exact(frame.geometry.to_numpy(), grid.polygons, 1e-6).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_flow_map_gets_every_part_of_every_cell(kind: str) -> None:
    result = study(kind)
    grid = result.settings.grid.make()
    got = Unpacked(pack(flows_of(result)).showing({}))
    assert got.header["cells"] == grid.labels
    rings = {name: got.column(about) for name, about in got.header["rings"].items()}
    places = rings["places"].reshape(-1, 2)
    shapes: dict[int, list[shapely.Polygon]] = {}
    for i, (cell, ring) in enumerate(zip(rings["cell"], rings["ring"], strict=True)):
        drawn = shapely.Polygon(places[rings["start"][i] : rings["start"][i + 1]])
        parts = shapes.setdefault(int(cell), [])
        if ring == 0:
            parts.append(drawn)
        else:
            parts[-1] = parts[-1].difference(drawn)
    whole = [shapely.union_all(shapes[cell]) for cell in range(grid.n_cells)]
    assert shapely.area(whole) == pytest.approx(shapely.area(grid.drawn_polygons), rel=1e-3)
    moves = result.rows(result.busiest, "counted")
    moves = moves.loc[(moves["origin"] != moves["dest"]) & (moves["count"] > 0.1)]
    there = {pair: n for pair, n in got.flows("counted", result.busiest).items() if n > 0.1}
    assert there == pytest.approx(
        {(a, b): n for a, b, n in moves[["origin", "dest", "count"]].itertuples(index=False)}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_is_estimated(kind: str) -> None:
    chosen = settings_of(kind)
    megabytes = estimate_megabytes(1000, 50_000, chosen.make(), StudySettings(grid=chosen))
    assert 250 < megabytes < 1000


def test_words_on_cells() -> None:
    said = {kind: grid_words(settings_of(kind)) for kind in KINDS}
    assert said["rectangle"] == "3 x 3 cells"
    assert said["mesh"] == "JIS mesh of 10 km"
    assert said["codes"] == "JIS mesh of 10 km, 4 chosen"
    assert said["h3"] == "H3 of resolution 5"
    assert said["areas"].startswith("3 areas of mine.gpkg, named by name (")


def test_suggested_sizes_have_a_few_hundred_cells() -> None:
    tokyo = GridSettings().bounds
    assert suggest_level(tokyo) == 2
    assert suggest_resolution(tokyo) == 6
    for bounds in (tokyo, EXTENT, (139.7, 35.6, 139.8, 35.7), (130.0, 31.0, 145.0, 45.0)):
        resolution = suggest_resolution(bounds)
        n = Grid.from_h3(resolution, bounds).n_cells
        assert 50 < n < 1200, (bounds, resolution, n)
    assert suggest_level((139.7, 35.6, 139.8, 35.7)) == 4


def test_areas_are_made_once_for_the_same_settings() -> None:
    chosen = settings_of("areas")
    assert isinstance(chosen.make(), AreaGrid)
    assert replace(chosen).make() is chosen.make()
    with refused("no-areas"):
        AreaSettings((), "")
