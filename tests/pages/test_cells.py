"""The page Grid with every kind of cells, from the choice to learned flows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shapely.geometry import box, mapping

from tests.agg_core import tiny
from tests.pages.visit import Visit
from ui.state import AppState

WEST, EAST = box(139.0, 35.0, 139.15, 35.3), box(139.15, 35.0, 139.3, 35.3)
FAR = box(150.0, 50.0, 151.0, 51.0)


@pytest.fixture(scope="module")
def csv() -> bytes:
    return tiny.frame(tiny.day_states()).to_csv(index=False).encode()


@pytest.fixture
def visit(csv: bytes) -> Visit:
    return Visit("Data").upload("sixty.csv", csv).go("Grid").set("window.step_minutes", 60)


def areas(*shapes: Any, **columns: list[str]) -> bytes:
    features = [
        {
            "type": "Feature",
            "properties": {name: values[i] for name, values in columns.items()},
            "geometry": mapping(shape),
        }
        for i, shape in enumerate(shapes)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def give(visit: Visit, content: bytes, name: str = "wards.geojson") -> Visit:
    visit.at.file_uploader(key="areas.file").upload(name, content, "application/geo+json")
    return visit._run()


def now(visit: Visit) -> AppState:
    found: AppState = visit.at.session_state["app"]
    return found


def labels(visit: Visit) -> set[str]:
    return {cell["where"] for cell in visit.decks()[0]["cells"]}


def learned(visit: Visit) -> Visit:
    visit.go("Learn").choose_nothing().set("learn.group_size", 5).set("learn.iterations", 2)
    visit.learn().go("Flows")
    assert not visit.errors
    return visit


def test_mesh_cells_carry_their_codes(visit: Visit) -> None:
    visit.set("grid.kind", "mesh").set("grid.level", 2)
    assert not visit.errors
    shown = labels(visit)
    assert {"523940", "523950"} <= shown
    assert all(len(code) == 6 for code in shown)
    assert f"{len(shown)} cells of 11.39 km x 9.25 km" in visit.captions
    assert set(learned(visit).maps[0].header["cells"]) == shown


def test_hexagons_carry_their_index(visit: Visit) -> None:
    visit.set("grid.kind", "h3").set("grid.resolution", 5)
    assert all(label.startswith("85") for label in labels(visit))
    assert "km²" in visit.captions
    visit.set("grid.resolution", 9)
    assert "at most 10,000" in visit.errors[0]
    assert all(label.startswith("85") for label in labels(visit)), "the grid stays as it was"
    visit.set("grid.resolution", 4)
    assert learned(visit).maps


def test_a_suggested_size_comes_first(visit: Visit) -> None:
    visit.set("grid.kind", "h3")
    assert 50 < len(visit.decks()[0]["cells"]) < 1200
    visit.set("grid.kind", "mesh")
    assert 50 < len(visit.decks()[0]["cells"]) < 1200
    visit.set("grid.kind", "rectangle")
    assert len(visit.decks()[0]["cells"]) == 14 * 16


def test_own_areas_are_the_cells(visit: Visit) -> None:
    visit.set("grid.kind", "areas")
    assert "the grid stays as it was" in visit.captions
    assert len(visit.decks()[0]["cells"]) == 14 * 16
    give(visit, areas(WEST, EAST, FAR, ward=["西区", "東区", "遠区"], code=["1", "2", "3"]))
    assert not visit.errors
    assert labels(visit) == {"西区", "東区"}
    assert r"named by ward \(or\: code, each row by itself\)" in visit.captions
    visit.set("areas.near", False)
    assert labels(visit) == {"西区", "東区", "遠区"}
    visit.set("areas.near", True).set("areas.column", "code")
    assert labels(visit) == {"1", "2"}
    visit.set("areas.column", "ward")
    assert learned(visit).maps[0].header["cells"] == ["西区", "東区"]
    visit.tell(cells=[1])
    table = visit.at.dataframe[-1].value
    assert ((table["From"] == "東区") | (table["To"] == "東区")).all()
    visit.go("Grid")
    assert visit.value("grid.kind") == "areas"
    assert labels(visit) == {"西区", "東区"}


def test_what_is_no_area_is_told_and_changes_nothing(visit: Visit) -> None:
    give(visit.set("grid.kind", "areas"), areas(WEST, EAST, ward=["西区", "東区"]))
    give(visit, b"{", "broken.geojson")
    assert "JSON" in visit.errors[0]
    assert labels(visit) == {"西区", "東区"}
    give(visit, areas(FAR, ward=["遠区"]), "far.geojson")
    assert "None of the areas lies where the data are" in visit.errors[0]
    assert labels(visit) == {"西区", "東区"}


def test_overlaps_are_told(visit: Visit) -> None:
    wide = box(139.0, 35.0, 139.3, 35.15)
    give(visit.set("grid.kind", "areas"), areas(WEST, wide, ward=["*西*区", "wide"]))
    assert r"\*西\*区 and wide overlap by 50\.0% of the smaller" in visit.captions


def test_the_system_of_a_file_can_be_stated(visit: Visit) -> None:
    square = box(-60_000, -100_000, -40_000, -80_000)
    visit.set("grid.kind", "areas")
    give(visit, areas(square, ward=["西区"]))
    assert "no longitude and latitude" in visit.errors[0]
    visit.set("areas.crs", "EPSG:6677")
    assert not visit.errors
    assert labels(visit) == {"西区"}


def test_mesh_is_offered_in_japan_only() -> None:
    paris = tiny.frame(tiny.day_states()).assign(
        lon=lambda t: t["lon"] - 137, lat=lambda t: t["lat"] + 13
    )
    visit = Visit("Data").upload("paris.csv", paris.to_csv(index=False)).go("Grid")
    kinds = next(group for group in visit.at.get("button_group") if group.key == "grid.kind")
    assert [option.content for option in kinds.proto.options] == [
        "Rectangles", "H3", "Own areas",
    ]  # fmt: skip


def test_real_wards_and_rail_lines(shared_data: Path, visit: Visit) -> None:
    folder = shared_data / "tokyo_polygons"
    rails = "derived_rail_lines_greater_tokyo.geojson"
    give(visit.set("grid.kind", "areas"), (folder / rails).read_bytes(), rails)
    assert "no area to make a cell of" in visit.errors[0]
    wards = "N03-21_14_210101_s0010.geojson"
    give(visit, (folder / wards).read_bytes(), wards)
    assert not visit.errors
    assert "足柄下郡 箱根町" in labels(visit) or "箱根町" in labels(visit)
    assert now(visit).grid.make().n_cells < 58, "only those near the data"
