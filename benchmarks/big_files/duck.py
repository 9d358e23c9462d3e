"""DuckDB's side: the same counts in one statement."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.big_files.task import CELLS_A_SIDE, STEP_MINUTES, Counts

__all__ = ["THREADS", "count", "statement"]

THREADS = 2

_CSV = """read_csv('{path}', header = true, auto_detect = false, delim = ',', quote = '"',
    escape = '"', timestampformat = '%Y-%m-%d %H:%M:%S', columns = {{'user_id': 'VARCHAR',
    'time': 'TIMESTAMP', 'lat': 'DOUBLE', 'lon': 'DOUBLE'}})"""

# The last fix as the largest (instant, cell) in one number: the same as arg_max(cell, time) where
# nobody has two fixes at one instant, and cheaper by a fifth on Parquet.
_STATEMENT = """
SELECT bin, last_fix & 4095 AS cell, count(*) AS people
FROM (
    SELECT user_id, (epoch_us(time) // {step_us})::INTEGER AS bin,
        max(epoch_us(time) % {step_us} * 4096 + {cell}) AS last_fix
    FROM {table} GROUP BY user_id, bin
) GROUP BY bin, cell"""

_CELL = """CASE WHEN lon BETWEEN {west} AND {east} AND lat BETWEEN {south} AND {north}
    THEN least(floor((lat - {south}) * {per_lat})::INTEGER, {last}) * {side}
        + least(floor((lon - {west}) * {per_lon})::INTEGER, {last})
    ELSE {outside} END"""


def statement(path: Path, bounds: tuple[float, float, float, float]) -> str:
    """The statement that counts a Parquet or CSV file, or a partitioned folder of Parquet."""
    west, south, east, north = bounds
    named = str(path).replace("'", "''")
    side = CELLS_A_SIDE
    cell = _CELL.format(
        west=west, south=south, east=east, north=north, side=side, last=side - 1,
        outside=side * side, per_lon=side / (east - west), per_lat=side / (north - south),
    )  # fmt: skip
    if path.suffix == ".csv":
        table = _CSV.format(path=named)
    else:
        files = named if path.suffix else f"{named}/*/*.parquet"
        table = f"read_parquet('{files}')"
    return _STATEMENT.format(step_us=STEP_MINUTES * 60 * 10**6, cell=cell, table=table)


def count(path: Path, bounds: tuple[float, float, float, float]) -> Counts:
    """Counts of a file or folder whose clock is UTC."""
    import duckdb  # noqa: PLC0415  # a development dependency, and only this side pays for it

    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        connection.execute("SET preserve_insertion_order = false")
        found = connection.execute(statement(path, bounds)).fetchnumpy()
    return Counts(*(np.asarray(found[name], np.int64) for name in ("bin", "cell", "people")))
