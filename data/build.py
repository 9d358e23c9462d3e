"""Make the shipped files from scratch: ``python data/build.py`` (needs libpysal, geopandas)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from libpysal import examples

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from agg_core.made.samples import SAMPLES, Sample, make_sample  # noqa: E402

# The file's own .prj names Japan zone 6 on the Tokyo datum. Its plain parameters carry no datum
# shift, so the EPSG code is stated, which does: places land within metres instead of 400 m off.
SOURCE_CRS = "EPSG:30166"
OUTLINE_TOLERANCE_M = 120.0
DESIGNATIONS = {"ku", "shi", "machi", "mura"}


def full_name(name: str) -> str:
    """The municipality's name; the source cuts at 16 letters, so a cut designation is dropped."""
    stem, _, designation = name.partition("-")
    return name if designation in DESIGNATIONS else stem


def mended(shapes: np.ndarray) -> np.ndarray:
    """Valid areas: rings that cross themselves are rebuilt, slivers of no width dropped."""
    return shapely.make_valid(shapes, method="structure", keep_collapsed=False)


def municipal_outline() -> dict[str, object]:
    """Municipalities about Tokyo as a GeoJSON FeatureCollection in WGS84."""
    source = gpd.read_file(examples.get_path("tokyomet262.shp")).set_crs(
        SOURCE_CRS, allow_override=True
    )
    source.geometry = mended(source.geometry.to_numpy())
    source.geometry = shapely.coverage_simplify(source.geometry.to_numpy(), OUTLINE_TOLERANCE_M)
    degrees = source.to_crs("EPSG:4326")
    rounded = shapely.transform(degrees.geometry.to_numpy(), lambda xy: np.round(xy, 5))
    shapes = mended(rounded)
    features = [
        {
            "type": "Feature",
            "properties": {"code": code, "name": full_name(name)},
            "geometry": json.loads(shapely.to_geojson(shape)),
        }
        for code, name, shape in zip(degrees["GEOCODE"], degrees["AREANAME"], shapes, strict=True)
    ]
    return {"type": "FeatureCollection", "features": features}


def write_sample(sample: Sample) -> Path:
    """Write a sample's table; its columns repeat themselves, so dictionaries and zstd suit."""
    table = pa.Table.from_pandas(make_sample(sample.key), preserve_index=False)
    table = table.cast(
        pa.schema(
            [
                ("user_id", pa.string()),
                ("time", pa.timestamp("us", tz="UTC")),
                ("lon", pa.float64()),
                ("lat", pa.float64()),
            ],
            metadata={"timezone": sample.timezone, "title": sample.title, "license": "MIT"},
        )
    )
    path = HERE / sample.file_name
    pq.write_table(table, path, compression="zstd", compression_level=19, use_dictionary=True)
    return path


def main() -> None:
    """Write the outline and every sample into this folder."""
    outline = HERE / "tokyo_outline.geojson"
    outline.write_text(
        json.dumps(municipal_outline(), separators=(",", ":")) + "\n", encoding="utf-8"
    )
    print(f"{outline.name}: {outline.stat().st_size:,} bytes")
    for sample in SAMPLES.values():
        path = write_sample(sample)
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
