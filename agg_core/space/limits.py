"""How many cells a grid may have."""

from agg_core.base.errors import InputError

__all__ = ["MOST_CELLS", "too_many"]

MOST_CELLS = 10_000
"""More than a learner could hold: its tables have cells x cells numbers."""


def too_many(n_cells: int, what_to_do: str) -> None:
    """Refuse more than `MOST_CELLS`.

    Raises
    ------
    InputError
        With the number and what to do.
    """
    if n_cells > MOST_CELLS:
        raise InputError(
            f"The grid would have {n_cells:,} cells and at most {MOST_CELLS:,} can be learned; "
            f"{what_to_do}.",
            code="too-many-cells",
        )
