"""Aggregate observations: groups of people of whom only the counts per step are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agg_core.errors import InputError

__all__ = ["Aggregates", "aggregate"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Aggregates:
    """K aggregate sequences of T steps, stored as weighted tokens.

    The tokens of sequence k at step t are ``indptr[k * T + t] : indptr[k * T + t + 1]``: one per
    symbol that was seen, with its count. A step without tokens is a step that nobody observed.
    Build one with `Aggregates.from_dense` or `aggregate`.
    """

    indptr: IntArray
    symbol: IntArray
    count: FloatArray
    length: int
    n_symbols: int

    @classmethod
    def from_dense(cls, counts: npt.ArrayLike) -> Aggregates:
        """From histograms (K, T, S): people counted per sequence, step and symbol.

        A step whose counts are all zero counts as not observed.

        Raises
        ------
        InputError
            If counts are negative, not finite, of another shape, all zero in a sequence, or if
            the totals of one sequence differ between its steps.
        """
        try:
            dense = np.asarray(counts, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("Counts must be numbers, sequences x steps x symbols.") from None
        if dense.ndim != 3 or 0 in dense.shape:
            raise InputError(
                "Counts must be a non-empty array of sequences x steps x symbols; "
                f"the shape was {dense.shape}."
            )
        if not np.isfinite(dense).all():
            raise InputError("Counts must be finite numbers; fill or remove the missing ones.")
        if (dense < 0).any():
            k, t, s = np.argwhere(dense < 0)[0]
            raise InputError(
                f"Counts must not be negative; sequence {k}, step {t}, symbol {s} has "
                f"{dense[k, t, s]:g}."
            )
        _check_totals(dense.sum(axis=2))
        n_sequences, length, n_symbols = dense.shape
        sequence_step, symbol = np.nonzero(dense.reshape(-1, n_symbols))
        per_step = np.bincount(sequence_step, minlength=n_sequences * length)
        return cls(
            indptr=np.concatenate([[0], np.cumsum(per_step)]).astype(np.int64),
            symbol=symbol.astype(np.int64),
            count=dense.reshape(-1, n_symbols)[sequence_step, symbol],
            length=length,
            n_symbols=n_symbols,
        )

    @property
    def n_sequences(self) -> int:
        """Number of aggregate sequences K."""
        return (len(self.indptr) - 1) // self.length

    @property
    def n_tokens(self) -> int:
        """Number of (sequence, step, symbol) entries with a count."""
        return len(self.symbol)

    @cached_property
    def sizes(self) -> FloatArray:
        """People in each sequence, M_k, (K,)."""
        running = np.concatenate([[0.0], np.cumsum(self.count)])
        totals = np.diff(running[self.indptr]).reshape(-1, self.length)
        # The cumulative sum of soft counts rounds; of whole counts it does not.
        return np.asarray(totals.max(axis=1))

    @property
    def n_individuals(self) -> float:
        """People in all sequences together."""
        return float(self.sizes.sum())

    def to_dense(self) -> FloatArray:
        """Histograms (K, T, S)."""
        dense = np.zeros((self.n_sequences * self.length, self.n_symbols))
        step = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        np.add.at(dense, (step, self.symbol), self.count)
        return dense.reshape(self.n_sequences, self.length, self.n_symbols)

    def locate(self, token: int) -> tuple[int, int]:
        """Sequence and step of a token."""
        at = int(np.searchsorted(self.indptr, token, side="right")) - 1
        return divmod(at, self.length)


def aggregate(
    observations: npt.ArrayLike,
    group_size: int,
    n_symbols: int,
    random_state: int | np.random.Generator | None = None,
    *,
    within: npt.ArrayLike | None = None,
) -> Aggregates:
    """Form random groups of people and keep only their counts per step.

    Parameters
    ----------
    observations : (N, T) int
        Symbol of each person at each step.
    group_size : int
        People per group, M. The people left over form one smaller group (in each part of
        ``within``): nobody is dropped. M = 1 keeps every person apart.
    n_symbols : int
        Number of symbols S.
    random_state : int, Generator or None
        Who comes into which group.
    within : (N,) int, optional
        Groups are formed only among people of equal value, for example one time window.

    Raises
    ------
    InputError
        If the group size is below 1 or above the number of people, or symbols lie outside 0..S-1.
    """
    symbols = _whole_numbers(observations, "Observations")
    if symbols.ndim != 2 or 0 in symbols.shape:
        raise InputError(
            f"Observations must be a non-empty array of people x steps; got {symbols.shape}."
        )
    n, length = symbols.shape
    if group_size < 1 or group_size != int(group_size):
        raise InputError(
            f"The group size M must be a whole number of 1 or more; it was {group_size}."
        )
    if group_size > n:
        raise InputError(
            f"The group size M = {group_size} is larger than the {n} sequences there are; "
            "choose a smaller M or load more data."
        )
    if symbols.min() < 0 or symbols.max() >= n_symbols:
        raise InputError(
            f"Symbols must lie in 0..{n_symbols - 1}; found {symbols.min()}..{symbols.max()}."
        )
    part = np.zeros(n, dtype=np.int64) if within is None else np.asarray(within)
    if part.shape != (n,):
        raise InputError(f"`within` needs one value per person ({n}); its shape is {part.shape}.")
    if group_size == 1:
        return Aggregates(
            indptr=np.arange(n * length + 1, dtype=np.int64),
            symbol=symbols.ravel(),
            count=np.ones(n * length),
            length=length,
            n_symbols=n_symbols,
        )
    group = _random_groups(np.unique(part, return_inverse=True)[1], int(group_size), random_state)
    step_key = group[:, None] * length + np.arange(length)
    key, count = np.unique(step_key.ravel() * n_symbols + symbols.ravel(), return_counts=True)
    per_step = np.bincount(key // n_symbols, minlength=(int(group.max()) + 1) * length)
    return Aggregates(
        indptr=np.concatenate([[0], np.cumsum(per_step)]).astype(np.int64),
        symbol=key % n_symbols,
        count=count.astype(np.float64),
        length=length,
        n_symbols=n_symbols,
    )


def _whole_numbers(values: npt.ArrayLike, what: str) -> IntArray:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iub":
        try:
            whole = bool((numbers.astype(np.float64) == np.floor(numbers.astype(np.float64))).all())
        except (TypeError, ValueError):
            whole = False
        if not whole:
            raise InputError(f"{what} must be whole numbers, the symbols 0, 1, 2, ….")
    return numbers.astype(np.int64)


def _random_groups(
    part: IntArray, group_size: int, random_state: int | np.random.Generator | None
) -> IntArray:
    """Number of the group of each person, (n,), numbered without gaps; parts never mix."""
    rng = np.random.default_rng(random_state)
    n = len(part)
    order = np.lexsort((rng.random(n), part))
    _, first, size = np.unique(part[order], return_index=True, return_counts=True)
    rank = np.arange(n) - np.repeat(first, size)
    groups_before = np.concatenate([[0], np.cumsum(-(-size // group_size))[:-1]])
    group = np.empty(n, dtype=np.int64)
    group[order] = np.repeat(groups_before, size) + rank // group_size
    return group


def _check_totals(totals: FloatArray) -> None:
    """Each observed step of a sequence must count the same people; totals is (K, T)."""
    largest = totals.max(axis=1, keepdims=True)
    if (largest == 0).any():
        raise InputError(
            f"Sequence {int(np.argmin(largest))} counts nobody at any step; leave it out."
        )
    uneven = (totals > 0) & ~np.isclose(totals, largest, rtol=1e-9, atol=0)
    if uneven.any():
        k, t = np.argwhere(uneven)[0]
        raise InputError(
            f"Sequence {k} counts {totals[k, t]:g} people at step {t} but {largest[k, 0]:g} at "
            "another; add a cell for those who are outside so that every step counts everybody."
        )
