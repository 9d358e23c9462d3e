"""Files that people hold, read into one checked table with an account of what was read."""

from agg_core.readers.choices import Choices
from agg_core.readers.columns import ROLES, as_column
from agg_core.readers.reading import (
    ReadingProgress,
    read_trajectories,
    reading_steps,
)
from agg_core.readers.report import Guess, ImportReport, SetAside
from agg_core.readers.sandbox import Reading, start_reading
from agg_core.readers.times import DATE_ORDERS
from agg_core.readers.trips import TripCounts, count_trips

__all__ = [
    "DATE_ORDERS",
    "ROLES",
    "Choices",
    "Guess",
    "ImportReport",
    "Reading",
    "ReadingProgress",
    "SetAside",
    "TripCounts",
    "as_column",
    "count_trips",
    "read_trajectories",
    "reading_steps",
    "start_reading",
]
