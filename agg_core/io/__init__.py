"""Files that people hold, read into one checked table with an account of what was read."""

from agg_core.base.report import Guess, SetAside
from agg_core.io.choices import Choices
from agg_core.io.guess.columns import ROLES, as_column
from agg_core.io.guess.times import DATE_ORDERS
from agg_core.io.reading import ReadingProgress, read_trajectories, reading_steps
from agg_core.io.sandbox import Reading, start_reading
from agg_core.io.trips import TripCounts, count_trips
from agg_core.tables.report import ImportReport

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
