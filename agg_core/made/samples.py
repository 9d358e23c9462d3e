"""The data that ships with the project: where its files are and how they are made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agg_core.base.errors import InputError
from agg_core.base.shipped import shipped
from agg_core.made._tokyo import COMMUTER_DAY, COMMUTER_ZONE

if TYPE_CHECKING:
    import pandas as pd

    from agg_core.study.settings import StudySettings
    from agg_core.tables.counts import CountTable
    from agg_core.tables.gates import GateTable

__all__ = [
    "COUNT_SAMPLE",
    "GATE_SAMPLE",
    "SAMPLES",
    "Sample",
    "count_sample",
    "file_or_sample",
    "gate_sample",
    "load_outline",
    "make_sample",
    "sample_path",
    "sample_settings",
]


@dataclass(frozen=True)
class Sample:
    """A shipped set of trajectories and the settings that show it well.

    The extent is in degrees; ``times`` are the local clock times whose models are worth a look,
    each learned from ``length`` steps of ``step_minutes`` from there.
    """

    key: str
    title: str
    description: str
    timezone: str
    date: str
    west: float
    south: float
    east: float
    north: float
    rows: int
    cols: int
    step_minutes: int
    length: int
    times: tuple[str, ...]
    n_people: int
    """People in the shipped file."""
    full_people: int
    """People of the larger set that `make_sample` makes on demand."""

    @property
    def file_name(self) -> str:
        """Name of the shipped file."""
        return f"{self.key}.parquet"

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east, north in degrees, as `Grid.from_bbox` takes them."""
        return self.west, self.south, self.east, self.north


SAMPLES: Mapping[str, Sample] = MappingProxyType(
    {
        "tokyo_commuters": Sample(
            key="tokyo_commuters",
            title="Tokyo commuters (synthetic)",
            description=(
                "A made-up weekday of 20,000 people in Greater Tokyo: every half hour a position "
                "at home, at work or on the way along the railways. No real person is in it."
            ),
            timezone=COMMUTER_ZONE,
            date=COMMUTER_DAY,
            west=139.28,
            south=35.36,
            east=140.24,
            north=36.06,
            rows=14,
            cols=16,
            step_minutes=30,
            length=3,
            times=("02:00", "08:00", "14:00", "20:00"),
            n_people=20_000,
            full_people=49_538,
        )
    }
)
"""Shipped samples by key."""


def _sample(key: str) -> Sample:
    if key not in SAMPLES:
        raise InputError(
            f"There is no sample named {key!r}; choose one of {', '.join(SAMPLES)}.",
            code="unknown-sample",
        )
    return SAMPLES[key]


def sample_path(key: str = "tokyo_commuters") -> Path:
    """The shipped Parquet file of a sample: columns user_id, time (UTC), lon, lat.

    >>> import agg_core
    >>> agg_core.sample_path().name
    'tokyo_commuters.parquet'

    Raises
    ------
    InputError
        If no sample has that key, or its file is missing.
    """
    return shipped(f"data/{_sample(key).file_name}")


COUNT_SAMPLE = "Hourly counts of a made-up city"
"""What `count_sample` is called."""

GATE_SAMPLE = "Entries and exits of a made-up railway"
"""What `gate_sample` is called."""


def sample_settings(key: str) -> StudySettings:
    """The settings that show a sample well: its grid and its windows, all else as by default.

    Raises
    ------
    InputError
        If no sample has that key.
    """
    from agg_core.space.settings import GridSettings  # noqa: PLC0415
    from agg_core.study.settings import StudySettings, WindowSettings  # noqa: PLC0415

    about = _sample(key)
    return StudySettings(
        GridSettings(*about.bounds, about.rows, about.cols),
        WindowSettings(about.step_minutes, about.length, about.times),
    )


def count_sample() -> CountTable:
    """A week of 900 made-up people in 25 cells, counted each hour as an operator delivers it."""
    from agg_core.io.counts import read_counts  # noqa: PLC0415
    from agg_core.made.counts import docomo_csv, simulate_city  # noqa: PLC0415

    city = simulate_city(5, 5, days=7, people=900, random_state=0)
    return read_counts(docomo_csv(city).encode())


def gate_sample() -> GateTable:
    """Three weeks of a made-up railway of ten stations, hour by hour; nobody in it is real."""
    from agg_core.io.counts import CountChoices  # noqa: PLC0415
    from agg_core.io.gates import read_gates  # noqa: PLC0415
    from agg_core.made.gates import RAILWAY_ZONE, simulate_railway  # noqa: PLC0415

    railway = simulate_railway()
    return read_gates(
        railway.table(), places=railway.stations, choices=CountChoices(tz=RAILWAY_ZONE)
    )


def file_or_sample(name: str) -> str:
    """The path of a file; ``sample``, or the key of a sample, means the shipped one.

    A file or folder of that name goes before.
    """
    if Path(name).exists():
        return name
    if name == "sample":
        return str(sample_path(next(iter(SAMPLES))))
    return str(sample_path(name)) if name in SAMPLES else name


def make_sample(key: str, n_people: int | None = None) -> pd.DataFrame:
    """Make a sample's table anew; the shipped file holds that of its own n_people.

    Parameters
    ----------
    key : a key of `SAMPLES`.
    n_people : people to make, by default as many as are shipped; ``full_people`` of the sample
        is the size of the paper's experiment.

    Raises
    ------
    InputError
        If no sample has that key or n_people is less than 1.
    """
    from agg_core.made.people import commuter_day  # noqa: PLC0415

    sample = _sample(key)
    wanted = sample.n_people if n_people is None else n_people
    return commuter_day(wanted, random_state=0, step_minutes=sample.step_minutes)


def load_outline() -> dict[str, Any]:
    """Municipalities about Tokyo as a GeoJSON FeatureCollection (WGS84), with code and name.

    Raises
    ------
    InputError
        If the file is missing.
    """
    text = shipped("data/tokyo_outline.geojson").read_text(encoding="utf-8")
    outline: dict[str, Any] = json.loads(text)
    return outline
