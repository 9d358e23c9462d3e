"""A made log as an operator writes it: many people, in order of time, as Parquet and CSV."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

__all__ = ["SCHEMA", "LogSettings", "log_batches", "write_folder", "write_logs"]

IntArray = npt.NDArray[np.int64]

START = np.datetime64("2024-05-13T00:00:00", "s")
SLOT_S = 1800
SLOTS_PER_DAY = 86_400 // SLOT_S
JITTER_DEGREES = 0.001
DECIMALS = 6

SCHEMA = pa.schema(
    {
        "user_id": pa.string(),
        "time": pa.timestamp("us"),
        "lat": pa.float64(),
        "lon": pa.float64(),
    }
)


@dataclass(frozen=True)
class LogSettings:
    """Who is logged where: people walk at random among places, some outside the extent."""

    rows: int
    people: int = 20_000
    days: int = 10
    n_places: int = 4_000
    move: float = 0.3
    batch_rows: int = 1_000_000
    bounds: tuple[float, float, float, float] = (139.4000005, 35.4000005, 139.9000005, 35.9000005)
    seed: int = 0

    @property
    def n_slots(self) -> int:
        """Half hours that the log lasts."""
        return self.days * SLOTS_PER_DAY


def log_batches(settings: LogSettings) -> Iterator[pa.RecordBatch]:
    """The rows in order of time; nobody has two at one second."""
    rng = np.random.default_rng(settings.seed)
    west, south, east, north = settings.bounds
    places = rng.uniform((west - 0.02, south - 0.02), (east + 0.02, north + 0.02),
                         (settings.n_places, 2))  # fmt: skip
    near = _nearest(places, 8)
    names = pa.array([f"u{i:08d}" for i in rng.permutation(settings.people)])
    at = rng.integers(settings.n_places, size=settings.people)
    ends = np.linspace(0, settings.rows, settings.n_slots + 1).astype(np.int64)
    parts: list[pa.RecordBatch] = []
    for slot, n in enumerate(np.diff(ends)):
        moved = rng.random(settings.people) < settings.move
        at[moved] = near[at[moved], rng.integers(near.shape[1], size=int(moved.sum()))]
        second, person = _draw(int(n), settings.people, rng)
        place = np.round(places[at[person]] + rng.normal(0, JITTER_DEGREES, (n, 2)), DECIMALS)
        time = (START + slot * SLOT_S + second).astype("datetime64[us]")
        columns = [names.take(pa.array(person)), pa.array(time), place[:, 1], place[:, 0]]
        parts.append(pa.record_batch(columns, schema=SCHEMA))
        if sum(len(part) for part in parts) >= settings.batch_rows:
            yield pa.concat_batches(parts)
            parts = []
    if parts:
        yield pa.concat_batches(parts)


def write_logs(settings: LogSettings, parquet: Path, text: Path) -> None:
    """The same rows as Parquet and as CSV (times as YYYY-MM-DD HH:MM:SS)."""
    as_text = SCHEMA.set(1, pa.field("time", pa.string()))
    options = pa_csv.WriteOptions(quoting_style="none")
    with (
        pq.ParquetWriter(parquet, SCHEMA) as typed,
        pa_csv.CSVWriter(text, as_text, write_options=options) as written,
    ):
        for batch in log_batches(settings):
            typed.write_batch(batch)
            seconds = batch.column("time").cast(pa.timestamp("s")).cast(pa.string())
            columns = [batch.column(0), seconds, batch.column(2), batch.column(3)]
            written.write_batch(pa.record_batch(columns, schema=as_text))


def write_folder(settings: LogSettings, folder: Path) -> None:
    """The same rows as a partitioned folder: date=YYYY-MM-DD/part-N.parquet, a file a batch."""
    number = 0
    for batch in log_batches(settings):
        table = pa.Table.from_batches([batch])
        days = table.column("time").to_numpy().astype("datetime64[D]")
        for day in np.unique(days):
            within = folder / f"date={day}"
            within.mkdir(parents=True, exist_ok=True)
            rows = table.filter(pa.array(days == day))
            pq.write_table(rows, within / f"part-{number}.parquet")
            number += 1


def _draw(n: int, people: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Seconds of a slot in order, and who is seen then, (n,) each, without repetition."""
    keys = np.empty(0, dtype=np.int64)
    while len(keys) < n:
        more = rng.integers(SLOT_S * people, size=n - len(keys) + 64)
        keys = np.unique(np.concatenate([keys, more]))
    second, person = np.divmod(rng.choice(keys, n, replace=False), people)
    order = np.argsort(second, kind="stable")
    return second[order], person[order]


def _nearest(places: npt.NDArray[np.float64], n: int) -> IntArray:
    """The n nearest other places of each place, (n_places, n)."""
    from scipy.spatial import cKDTree  # noqa: PLC0415  # only where a log is made

    return np.asarray(cKDTree(places).query(places, n + 1)[1][:, 1:], dtype=np.int64)
