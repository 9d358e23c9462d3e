"""Vector files in a process of their own: the same result, and limits that hold."""

from __future__ import annotations

import json

import geopandas as gpd
import pytest
from shapely.geometry import Point, box

from agg_core.base.errors import InputError
from agg_core.base.processes import Limits
from agg_core.io.formats.vector import read_vector, read_vector_apart


def test_the_result_is_that_of_reading_here(tmp_path) -> None:
    frame = gpd.GeoDataFrame(
        {"name": ["西区", None]}, geometry=[box(0, 0, 1000, 1000), None], crs="EPSG:6677"
    )
    frame.to_file(tmp_path / "a.gpkg", layer="one")
    frame.to_file(tmp_path / "a.gpkg", layer="two")
    content = (tmp_path / "a.gpkg").read_bytes()
    here, there = read_vector(content, "a.gpkg"), read_vector_apart(content, "a.gpkg")
    assert there.frame.geom_equals_exact(here.frame, 0).tolist() == [True, False]
    assert there.frame["name"].tolist()[0] == "西区"
    for name in ("name", "format", "crs", "without_shape", "guesses"):
        assert getattr(there, name) == getattr(here, name)


def test_values_of_several_types_become_text() -> None:
    features = [
        {
            "type": "Feature",
            "properties": {"v": v},
            "geometry": {"type": "Point", "coordinates": [1, 2]},
        }
        for v in (1, "one", None, 2.5)
    ]
    document = {"type": "FeatureCollection", "features": features}
    found = read_vector_apart(json.dumps(document).encode(), "x")
    assert found.frame["v"].tolist()[:2] == ["1", "one"]
    assert found.frame.geometry[0] == Point(1, 2)


def test_a_fault_is_the_same_sentence_and_code() -> None:
    content = b'{"type": "Point", "coordinates": [35.5, 139.5]}'
    with pytest.raises(InputError) as here:
        read_vector(content, "x")
    with pytest.raises(InputError) as there:
        read_vector_apart(content, "x")
    assert str(there.value) == str(here.value)
    assert there.value.code == here.value.code == "coordinates-swapped"
    with pytest.raises(InputError) as asked:
        read_vector_apart(content, "x", "nonsense")
    assert (asked.value.code, asked.value.option) == ("unknown-crs", "--crs EPSG:CODE")


@pytest.mark.parametrize(
    ("limits", "what"), [(Limits(1 << 20, 30.0), "memory"), (Limits(1 << 40, 0.05), "time")]
)
def test_more_than_a_file_may_take_is_refused(limits: Limits, what: str) -> None:
    with pytest.raises(InputError) as told:
        read_vector_apart(b'{"type": "Point", "coordinates": [1, 2]}', "x", limits=limits)
    assert told.value.code == "reading-limit-met"
    assert f"more {what}" in str(told.value)
