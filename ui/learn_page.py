"""The page Learn where no data are open: work that was found again goes on without them."""

from __future__ import annotations

from ui.at_work import OF_LEARNING, others
from ui.counts_learn import counts_progress
from ui.gates_learn import gates_progress
from ui.learning import people_progress
from ui.shell import need_dataset
from ui.state import Dataset, state
from ui.sweeps import sweep_progress

__all__ = ["need_data_or_work"]


def need_data_or_work() -> Dataset:
    """The open data set; without one the page shows work, says where to get data, and ends."""
    now = state()
    if now.dataset is None:
        people_progress()
        counts_progress()
        gates_progress()
        sweep_progress()
        others(OF_LEARNING, *(runs.run for runs in now.learned.values()), now.sweeps.run)
    return need_dataset()
