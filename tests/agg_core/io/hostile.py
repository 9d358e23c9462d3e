"""Small files that take a reader for a ride: a database that computes, tables that unfold."""

from __future__ import annotations

import io
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FILES"]

COMPUTED = """
CREATE TABLE fixes (
    fid INTEGER PRIMARY KEY, geom BLOB, time TEXT,
    user_id TEXT GENERATED ALWAYS AS (hex(zeroblob(400000000))) VIRTUAL
)
"""
ENDLESS = """
CREATE VIEW gpkg_contents AS
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
SELECT 't' || x AS table_name, data_type, identifier || x AS identifier, description, last_change,
    min_x, min_y, max_x, max_y, srs_id FROM n, kept_contents
"""


def _geopackage(folder: Path, change: str) -> bytes:
    """One point of one person, whose table is another one than that which was written."""
    import geopandas as gpd
    import shapely

    path = folder / "made.gpkg"
    frame = gpd.GeoDataFrame(
        {"user_id": ["a"], "time": ["2024-05-01T00:00:00Z"]},
        geometry=[shapely.Point(139, 35)],
        crs=4326,
    )
    frame.to_file(path, layer="fixes", driver="GPKG")
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        triggers = base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            base.execute(f'DROP TRIGGER "{name}"')
        base.execute('DROP TABLE "rtree_fixes_geom"')
        base.execute("DELETE FROM gpkg_extensions")
        if change == COMPUTED:
            base.execute("ALTER TABLE fixes RENAME TO kept")
            base.execute(change)
            base.execute("INSERT INTO fixes (geom, time) SELECT geom, time FROM kept")
        else:
            base.execute("ALTER TABLE gpkg_contents RENAME TO kept_contents")
            base.execute(change)
        base.execute("VACUUM")
    content = path.read_bytes()
    path.unlink()
    return content


def _parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, write_statistics=False, compression="zstd")
    return file.getvalue()


def _one_text_in_every_row() -> bytes:
    text = pa.array(["x" * 1_000]).take(np.zeros(400_000, dtype=int))
    return _parquet(pa.table(dict.fromkeys(("user_id", "time", "lon", "lat"), text)))


FILES = {
    "computed.gpkg": lambda folder: _geopackage(folder, COMPUTED),
    "endless.gpkg": lambda folder: _geopackage(folder, ENDLESS),
    "columns.parquet": lambda folder: _parquet(pa.table({f"c{i}": [1.0] for i in range(5_000)})),
    "texts.parquet": lambda folder: _one_text_in_every_row(),
}
"""Content by file name, made with a folder to work in."""
