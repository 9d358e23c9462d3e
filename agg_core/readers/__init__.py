"""Files that people hold, read into one checked table with an account of what was read."""

from agg_core.readers.columns import as_column
from agg_core.readers.reading import column_names, read_trajectories
from agg_core.readers.report import Guess, ImportReport, SetAside

__all__ = ["Guess", "ImportReport", "SetAside", "as_column", "column_names", "read_trajectories"]
