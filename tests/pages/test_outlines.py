"""The outline under the maps: shipped, none, a person's own, and files that cannot be read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pages.visit import Visit

FIXES = "user,time,lon,lat\n" + "\n".join(
    f"u{i},2024-05-06 08:{10 * j:02d}:00,{139.3 + 0.3 * i},{35.4 + 0.1 * j}"
    for i in range(4)
    for j in range(6)
)
BAY = [[139.6, 35.4], [140.0, 35.4], [140.0, 35.7], [139.6, 35.7], [139.6, 35.4]]
HOSTILE_NAME = "<img src=x onerror=alert(1)>*b*.geojson"


def geojson(*rings: list[list[float]]) -> bytes:
    shapes = [{"type": "Polygon", "coordinates": [ring]} for ring in rings]
    return json.dumps({"type": "GeometryCollection", "geometries": shapes}).encode()


@pytest.fixture
def visit() -> Visit:
    return Visit("Data").upload("fixes.csv", FIXES)


def choose(visit: Visit, kind: str) -> None:
    visit.at.radio(key="outline.kind").set_value(kind)
    visit.at.run()
    assert not visit.at.exception


def upload(visit: Visit, content: bytes, name: str = "bay.geojson") -> None:
    visit.at.file_uploader(key="outline.file").upload(name, content, "application/geo+json")
    visit.at.run()
    assert not visit.at.exception


def drawn(visit: Visit) -> list[Any] | None:
    """Features of the outline layer of the first map, None where there is no such layer."""
    layer = visit.decks()[0].get("outline")
    return None if layer is None else layer["features"]


def has_ground(visit: Visit) -> bool:
    """Whether the land of the world is on the first map."""
    return "ground" in visit.decks()[0]


def test_a_city_elsewhere_has_its_coast() -> None:
    rows = [f"u{i},2024-05-06 08:{j}0:00,{-74.09 + 0.01 * i},{40.69 + 0.01 * j}"
            for i in range(7) for j in range(6)]  # fmt: skip
    visit = Visit("Data").upload("jersey.csv", "user,time,lon,lat\n" + "\n".join(rows))
    assert has_ground(visit)
    assert not drawn(visit)


def test_the_shipped_outline_is_there_first(visit: Visit) -> None:
    found = drawn(visit)
    assert found is not None
    assert len(found) > 100
    assert has_ground(visit)


def test_none_leaves_the_map_bare_on_other_pages_too(visit: Visit) -> None:
    choose(visit, "none")
    assert drawn(visit) is None
    assert not has_ground(visit)
    assert drawn(visit.go("Grid")) is None
    assert not has_ground(visit)
    visit.go("Data")
    assert visit.at.radio(key="outline.kind").value == "none"
    choose(visit, "shipped")
    assert len(drawn(visit) or []) > 100


def test_an_own_file_is_drawn_and_told(visit: Visit) -> None:
    choose(visit, "own")
    assert len(drawn(visit) or []) > 100, "until a file is read, nothing changes"
    upload(visit, geojson(BAY))
    assert not visit.errors
    assert [f["geometry"] for f in drawn(visit) or []] == [
        {"type": "Polygon", "coordinates": [BAY]}
    ]
    told = visit.captions.replace("\\", "")
    assert "bay.geojson: 1 shape, read as EPSG:4326" in told
    assert "west 139.6000°, south 35.4000°, east 140.0000°, north 35.7000°" in told
    assert drawn(visit.go("Grid")) is not None
    assert len(drawn(visit) or []) == 1
    assert has_ground(visit)


def test_an_own_file_comes_back_after_another_choice(visit: Visit) -> None:
    choose(visit, "own")
    upload(visit, geojson(BAY))
    choose(visit, "none")
    assert drawn(visit) is None
    visit.go("Grid").go("Data")
    choose(visit, "own")
    assert len(drawn(visit) or []) == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[" * 5000, b"PK\x03\x04" + bytes(50), b'{"type": "Topology"}',
     geojson([[1.0, 2.0]]), geojson([[5e6, 4e6], [6e6, 4e6], [6e6, 5e6]])],
    ids=["empty", "cut", "deep", "zip", "TopoJSON", "a ring of one point", "metres"],
)  # fmt: skip
def test_a_fault_is_one_sentence_and_the_map_stays(visit: Visit, content: bytes) -> None:
    choose(visit, "own")
    upload(visit, geojson(BAY))
    upload(visit, content, HOSTILE_NAME)
    assert len(visit.errors) == 1
    assert visit.errors[0].endswith(".")
    assert "\n" not in visit.errors[0]
    assert "<img" not in visit.errors[0].replace("\\<", ""), "a name must not act as markup"
    assert len(drawn(visit) or []) == 1
    upload(visit, geojson(BAY, [[x - 0.5, y] for x, y in BAY]), "two.json")
    assert not visit.errors
    assert len(drawn(visit) or []) == 2


def test_an_outline_elsewhere_is_warned_of(visit: Visit) -> None:
    choose(visit, "own")
    upload(visit, geojson([[x - 100, y] for x, y in BAY]))
    assert not visit.errors
    assert ["near the open data" in warning.value for warning in visit.at.warning] == [True]
    assert not drawn(visit)
