from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import shapely

from agg_core.base import shipped as files
from agg_core.made.samples import SAMPLES, load_outline, make_sample, sample_path
from agg_core.space.build import Grid
from tests.faults import refused


@pytest.fixture(scope="module")
def shipped():
    return pd.read_parquet(sample_path("tokyo_commuters"))


@pytest.fixture(scope="module")
def municipalities():
    features = load_outline()["features"]
    shapes = shapely.from_geojson([json.dumps(feature["geometry"]) for feature in features])
    return pd.DataFrame([feature["properties"] for feature in features]).assign(shape=shapes)


def holder(municipalities, lon, lat):
    """Names of the municipalities that hold a place."""
    return municipalities.loc[
        shapely.contains_xy(municipalities["shape"].to_numpy(), lon, lat), "name"
    ].tolist()


def test_shipped_file_is_the_generators_table(shipped):
    made = make_sample("tokyo_commuters")
    pd.testing.assert_frame_equal(shipped, made, check_exact=True)
    assert shipped["user_id"].nunique() == SAMPLES["tokyo_commuters"].n_people


def test_shipped_file_is_small_and_names_its_zone():
    path = sample_path("tokyo_commuters")
    assert path.stat().st_size < 5_000_000
    schema = pq.read_schema(path)
    assert schema.names == ["user_id", "time", "lon", "lat"]
    assert str(schema.field("time").type) == "timestamp[us, tz=UTC]"
    assert schema.metadata[b"timezone"] == b"Asia/Tokyo"


def test_other_sizes_are_made_on_demand():
    assert make_sample("tokyo_commuters", 30)["user_id"].nunique() == 30


def test_recommended_settings_fit_the_sample(shipped):
    sample = SAMPLES["tokyo_commuters"]
    grid = Grid.from_bbox(*sample.bounds, sample.rows, sample.cols)
    assert (grid.assign(shipped["lon"], shipped["lat"]) >= 0).mean() > 0.95
    local = shipped["time"].iloc[:48].dt.tz_convert(sample.timezone)
    assert set(local.dt.strftime("%Y-%m-%d")) == {sample.date}
    clock = list(local.dt.strftime("%H:%M"))
    assert all(clock.index(time) + sample.length <= 48 for time in sample.times)
    assert (np.diff(local.dt.hour * 60 + local.dt.minute) == sample.step_minutes).all()


def test_registry_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SAMPLES["tokyo_commuters"].rows = 3
    with pytest.raises(TypeError):
        SAMPLES["other"] = SAMPLES["tokyo_commuters"]
    assert all(key == sample.key for key, sample in SAMPLES.items())


@pytest.mark.parametrize("ask", [sample_path, make_sample])
def test_unknown_sample_names_the_known_ones(ask):
    with refused("unknown-sample", "tokyo_commuters"):
        ask("../pyproject")


def test_missing_files_say_how_to_make_them(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "import_root", lambda: tmp_path)
    with refused("shipped-file-missing", "data/README.md"):
        load_outline()
    with refused("shipped-file-missing", "data/README.md"):
        sample_path("tokyo_commuters")


def test_outline_is_small_valid_and_rounded(municipalities):
    assert files.shipped("data/tokyo_outline.geojson").stat().st_size < 400_000
    assert len(municipalities) == 262
    assert shapely.is_valid(municipalities["shape"].to_numpy()).all()
    assert municipalities["code"].is_unique
    assert set(municipalities.columns) == {"code", "name", "shape"}
    xy = shapely.get_coordinates(municipalities["shape"].to_numpy())
    np.testing.assert_array_equal(xy, np.round(xy, 5))
    assert xy.min(axis=0) == pytest.approx([138.94, 35.13], abs=0.02)
    assert xy.max(axis=0) == pytest.approx([140.54, 36.29], abs=0.02)


def test_outlines_hardly_overlap(municipalities):
    shapes = municipalities["shape"].to_numpy()
    assert shapely.area(shapes).sum() == pytest.approx(shapely.union_all(shapes).area, rel=2e-3)


@pytest.mark.parametrize(
    ("lon", "lat", "name"),
    [
        (139.7671, 35.6812, "Chiyoda-ku"),  # Tokyo station
        (139.7016, 35.6580, "Shibuya-ku"),  # Shibuya station
        (139.6917, 35.6895, "Shinjuku-ku"),  # metropolitan government
        (139.6223, 35.4660, "Nishi-ku"),  # Yokohama station
        (139.3390, 35.6664, "Hachioji-shi"),  # city hall
        (139.6240, 35.9063, "Omiya-shi"),  # Omiya station
        (140.1233, 35.6047, "Chiba-shi"),  # prefectural office
    ],
)
def test_outline_holds_known_places(municipalities, lon, lat, name):
    assert holder(municipalities, lon, lat) == [name]


def test_centre_of_chiyoda(municipalities):
    shape = municipalities.loc[municipalities["code"] == "13101", "shape"].iloc[0]
    assert (shape.centroid.x, shape.centroid.y) == pytest.approx((139.754, 35.687), abs=0.002)


def test_open_sea_belongs_to_nobody(municipalities):
    assert holder(municipalities, 139.85, 35.55) == []


def test_commuters_stay_on_land(shipped, municipalities):
    """Few fixes lie off the municipalities, none far out in Tokyo Bay."""
    land = shapely.union_all(municipalities["shape"].to_numpy())
    places = shipped[["lon", "lat"]].drop_duplicates().to_numpy()
    shapely.prepare(land)
    off = places[~shapely.contains_xy(land, places[:, 0], places[:, 1])]
    assert len(off) / len(places) < 0.015
    bay = off[(off[:, 0] > 139.6) & (off[:, 0] < 140.15) & (off[:, 1] < 35.7)]
    distance = shapely.distance(shapely.simplify(land, 0.002), shapely.points(bay))
    assert distance.max() < 0.012  # about 1.2 km: wharves and bridges
