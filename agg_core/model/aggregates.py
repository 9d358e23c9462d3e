"""Aggregate observations: groups of people of whom only the counts per step are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agg_core.base.errors import InputError

__all__ = ["Aggregates", "aggregate", "aggregate_points"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MERGED_AT = 0.8
"""Sequences that are equal are made one where that leaves no more than this part of them."""


class Distinct(NamedTuple):
    """Aggregates in which nothing is there twice, and from where among all they were taken.

    Sequence k is the first, ``sequences[k]``, of those that it stands for; its tokens are
    ``tokens`` there.
    """

    aggregates: Aggregates
    sequences: IntArray
    tokens: IntArray


@dataclass(frozen=True)
class Aggregates:
    """K aggregate sequences of T steps, stored as weighted tokens.

    >>> import agg_core
    >>> groups = agg_core.Aggregates.from_dense([[[3, 1], [1, 3]]])  # one group, two steps
    >>> groups.n_sequences, groups.length, groups.n_individuals
    (1, 2, 4.0)

    The tokens of sequence k at step t are ``indptr[k * T + t] : indptr[k * T + t + 1]``: one per
    symbol that was seen, with its count. A step without tokens is a step that nobody observed.
    Continuous observations are symbols too: symbol i was seen at ``points[i]`` (n_symbols, s),
    and each is seen once. ``stated_sizes`` (K,) are given where counts are noisy readings of
    groups of known size, which need not sum to it.
    Build one with `Aggregates.from_dense`, `from_samples`, `aggregate` or `aggregate_points`.
    """

    indptr: IntArray
    symbol: IntArray
    count: FloatArray
    length: int
    n_symbols: int
    points: FloatArray | None = None
    stated_sizes: FloatArray | None = None

    @classmethod
    def from_dense(cls, counts: npt.ArrayLike, sizes: npt.ArrayLike | None = None) -> Aggregates:
        """From histograms (K, T, S): people counted per sequence, step and symbol.

        A step whose counts are all zero counts as not observed. With ``sizes`` (K,), the people
        in each group, the counts are noisy readings whose totals may differ (Poisson noise).

        Raises
        ------
        InputError
            If counts are negative, not finite, of another shape, all zero in a sequence, or if
            the totals of one sequence differ between its steps and no ``sizes`` are given.
        """
        try:
            dense = np.asarray(counts, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "Counts must be numbers, sequences x steps x symbols.", code="not-numbers"
            ) from None
        if dense.ndim != 3 or 0 in dense.shape:
            raise InputError(
                "Counts must be a non-empty array of sequences x steps x symbols; "
                f"the shape was {dense.shape}.",
                code="wrong-shape",
            )
        if not np.isfinite(dense).all():
            raise InputError(
                "Counts must be finite numbers; fill or remove the missing ones.", code="not-finite"
            )
        if (dense < 0).any():
            k, t, s = np.argwhere(dense < 0)[0]
            raise InputError(
                f"Counts must not be negative; sequence {k}, step {t}, symbol {s} has "
                f"{dense[k, t, s]:g}.",
                code="negative-count",
            )
        n_sequences, length, n_symbols = dense.shape
        stated = None if sizes is None else _check_sizes(sizes, n_sequences)
        _check_totals(dense.sum(axis=2), may_differ=stated is not None)
        sequence_step, symbol = np.nonzero(dense.reshape(-1, n_symbols))
        per_step = np.bincount(sequence_step, minlength=n_sequences * length)
        return cls(
            indptr=np.concatenate([[0], np.cumsum(per_step)]).astype(np.int64),
            symbol=symbol.astype(np.int64),
            count=dense.reshape(-1, n_symbols)[sequence_step, symbol],
            length=length,
            n_symbols=n_symbols,
            stated_sizes=stated,
        )

    @classmethod
    def from_samples(cls, points: npt.ArrayLike) -> Aggregates:
        """From continuous observations (K, T, M, s): where the M people of each group were seen.

        The order of the people within a step carries no meaning. A step that is NaN throughout
        counts as not observed.

        Raises
        ------
        InputError
            If the array has another shape, holds infinite values, or NaN beside numbers in a step.
        """
        try:
            samples = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                "Samples must be numbers, groups x steps x people x coordinates.",
                code="not-numbers",
            ) from None
        if samples.ndim != 4 or 0 in samples.shape:
            raise InputError(
                "Samples must be a non-empty array of groups x steps x people x coordinates; "
                f"the shape was {samples.shape}.",
                code="wrong-shape",
            )
        n_groups, length, size, n_features = samples.shape
        steps = samples.reshape(n_groups * length, size * n_features)
        missing = np.isnan(steps).all(axis=1)
        bad = ~np.isfinite(steps).all(axis=1) & ~missing
        if bad.any():
            k, t = divmod(int(np.argmax(bad)), length)
            raise InputError(
                f"Group {k} has a value at step {t} that is missing or infinite; fill it, or make "
                "the whole step NaN if nobody was observed.",
                code="not-finite",
            )
        _check_totals(np.where(missing, 0.0, size).reshape(n_groups, length))
        return _continuous(
            samples.reshape(n_groups * length, size, n_features)[~missing].reshape(-1, n_features),
            np.where(missing, 0, size),
            length,
        )

    @property
    def n_sequences(self) -> int:
        """Number of aggregate sequences K."""
        return (len(self.indptr) - 1) // self.length

    @property
    def shape(self) -> tuple[int, int, int]:
        """Sequences, steps and symbols: the shape of `to_dense`."""
        return self.n_sequences, self.length, self.n_symbols

    def __len__(self) -> int:
        return self.n_sequences

    def __getitem__(self, key: Any) -> Aggregates:
        """Some of the sequences, as an array of them is indexed: scikit-learn splits data so."""
        sequences = key[0] if isinstance(key, tuple) else key
        return self.take(np.atleast_1d(np.arange(self.n_sequences)[sequences]))

    @property
    def n_tokens(self) -> int:
        """Number of (sequence, step, symbol) entries with a count."""
        return len(self.symbol)

    @cached_property
    def sizes(self) -> FloatArray:
        """People in each sequence, M_k, (K,)."""
        if self.stated_sizes is not None:
            return self.stated_sizes
        running = np.concatenate([[0.0], np.cumsum(self.count)])
        totals = np.diff(running[self.indptr]).reshape(-1, self.length)
        # The cumulative sum of soft counts rounds; of whole counts it does not.
        return np.asarray(totals.max(axis=1))

    @property
    def n_individuals(self) -> float:
        """People in all sequences together."""
        return float(self.sizes.sum())

    @property
    def step_of_token(self) -> IntArray:
        """Place of each token in the K x T steps, sequence by sequence."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    @property
    def shares(self) -> FloatArray:
        """Share of the people counted in its step that each token holds."""
        totals = np.bincount(self.step_of_token, self.count, minlength=len(self.indptr) - 1)
        return np.asarray(self.count / totals[self.step_of_token])

    def take(self, sequences: npt.ArrayLike) -> Aggregates:
        """Some of the sequences, by number, in the order given; numbers may repeat."""
        chosen = np.arange(self.n_sequences)[np.asarray(sequences)]
        token, indptr = self._tokens_of(chosen)
        symbol, points = self.symbol[token], self.points
        if points is not None:
            points, symbol = points[symbol], np.arange(len(token))
        return replace(
            self,
            indptr=indptr,
            symbol=symbol,
            count=self.count[token],
            n_symbols=self.n_symbols if points is None else len(token),
            points=points,
            stated_sizes=None if self.stated_sizes is None else self.stated_sizes[chosen],
        )

    def _tokens_of(self, sequences: IntArray) -> tuple[IntArray, IntArray]:
        """The tokens of some sequences, one after the other, and the indptr of their steps."""
        steps = (sequences[:, None] * self.length + np.arange(self.length)).ravel()
        per_step = np.diff(self.indptr)[steps]
        indptr = np.concatenate([[0], np.cumsum(per_step)]).astype(np.int64)
        token = np.repeat(self.indptr[steps] - indptr[:-1], per_step) + np.arange(indptr[-1])
        return token, indptr

    @property
    def single(self) -> npt.NDArray[np.bool_]:
        """Which sequences show one symbol at each step that was observed, as one person does."""
        per_step = np.diff(self.indptr).reshape(-1, self.length)
        return np.asarray((per_step <= 1).all(axis=1))

    @cached_property
    def distinct(self) -> Distinct:
        """The same people, with equal sequences of which each shows one symbol a step made one.

        They hide nothing, so that several that are equal are one that counts all of their people.
        """
        every = Distinct(self, np.arange(self.n_sequences), np.arange(self.n_tokens))
        single = np.flatnonzero(self.single)
        if self.points is not None or self.stated_sizes is not None or len(single) < 2:
            return every
        shown = np.zeros((self.n_sequences * self.length), dtype=np.int64)
        shown[self.step_of_token] = self.symbol + 1
        order, first = _equal_rows(shown.reshape(-1, self.length)[single], self.n_symbols + 1)
        if len(first) > MERGED_AT * len(single):
            return every
        others = np.setdiff1d(every.sequences, single)
        begins = np.sort(np.concatenate([others, single[order[first]]]))
        people = self.sizes.copy()
        people[single[order[first]]] = np.add.reduceat(self.sizes[single[order]], first)
        merged = self.take(begins)
        of_token = merged.step_of_token // self.length
        merged = replace(merged, count=merged.shares * people[begins][of_token])
        return Distinct(merged, begins, self._tokens_of(begins)[0])

    def to_dense(self) -> FloatArray:
        """Histograms (K, T, S)."""
        dense = np.zeros((self.n_sequences * self.length, self.n_symbols))
        np.add.at(dense, (self.step_of_token, self.symbol), self.count)
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

    >>> import agg_core
    >>> agg_core.aggregate([[0, 1], [0, 0], [1, 1], [0, 1]], 4, n_symbols=2).to_dense()
    array([[[3., 1.],
            [1., 3.]]])

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
            f"Observations must be a non-empty array of people x steps; got {symbols.shape}.",
            code="wrong-shape",
        )
    n, length = symbols.shape
    if symbols.min() < 0 or symbols.max() >= n_symbols:
        raise InputError(
            f"Symbols must lie in 0..{n_symbols - 1}; found {symbols.min()}..{symbols.max()}.",
            code="symbol-out-of-range",
        )
    group = _random_groups(n, group_size, random_state, within)
    if group_size == 1:
        return Aggregates(
            indptr=np.arange(n * length + 1, dtype=np.int64),
            symbol=symbols.ravel(),
            count=np.ones(n * length),
            length=length,
            n_symbols=n_symbols,
        )
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


def aggregate_points(
    points: npt.ArrayLike,
    group_size: int,
    random_state: int | np.random.Generator | None = None,
    *,
    within: npt.ArrayLike | None = None,
) -> Aggregates:
    """Form random groups of people of whom only the places per step are known, not who is where.

    ``points`` (N, T, s) holds where each person was seen; the other parameters and the people
    left over are as in `aggregate`.

    Raises
    ------
    InputError
        If the group size does not fit or ``points`` is not a finite array of three dimensions.
    """
    places = np.asarray(points, dtype=np.float64)
    if places.ndim != 3 or 0 in places.shape:
        raise InputError(
            "Points must be a non-empty array of people x steps x coordinates; "
            f"got {places.shape}.",
            code="wrong-shape",
        )
    if not np.isfinite(places).all():
        raise InputError(
            "Points must be finite numbers; leave out people with missing places.",
            code="not-finite",
        )
    n, length, n_features = places.shape
    group = _random_groups(n, group_size, random_state, within)
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group)
    # People of one group lie together; within it the steps come first.
    person = np.repeat(np.arange(n), length)
    step = np.tile(np.arange(length), n)
    by_step = np.lexsort((person, step, group[order][person]))
    return _continuous(
        places[order].reshape(n * length, n_features)[by_step], np.repeat(sizes, length), length
    )


def _continuous(points: FloatArray, per_step: IntArray, length: int) -> Aggregates:
    return Aggregates(
        indptr=np.concatenate([[0], np.cumsum(per_step)]).astype(np.int64),
        symbol=np.arange(len(points)),
        count=np.ones(len(points)),
        length=length,
        n_symbols=len(points),
        points=points,
    )


def _equal_rows(rows: IntArray, n_values: int) -> tuple[IntArray, IntArray]:
    """An order in which equal rows (of values below ``n_values``) adjoin, and where each begins.

    The first of equal rows is the first that there is.
    """
    if n_values ** rows.shape[1] < 2**62:
        key = rows @ n_values ** np.arange(rows.shape[1], dtype=np.int64)
        order = np.argsort(key, kind="stable")
        new = np.diff(key[order]) != 0
    else:
        order = np.lexsort(rows.T)
        new = (np.diff(rows[order], axis=0) != 0).any(axis=1)
    return order, np.concatenate([[0], np.flatnonzero(new) + 1])


def _whole_numbers(values: npt.ArrayLike, what: str) -> IntArray:
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iub":
        try:
            whole = bool((numbers.astype(np.float64) == np.floor(numbers.astype(np.float64))).all())
        except (TypeError, ValueError):
            whole = False
        if not whole:
            raise InputError(
                f"{what} must be whole numbers, the symbols 0, 1, 2, ….", code="not-whole-numbers"
            )
    return numbers.astype(np.int64)


def _random_groups(
    n: int,
    group_size: int,
    random_state: int | np.random.Generator | None,
    within: npt.ArrayLike | None,
) -> IntArray:
    """Number of the group of each person, (n,), numbered without gaps; parts never mix."""
    if group_size < 1 or group_size != int(group_size):
        raise InputError(
            f"The group size M must be a whole number of 1 or more; it was {group_size}.",
            code="value-out-of-range",
        )
    if group_size > n:
        raise InputError(
            f"The group size M = {group_size} is larger than the {n} sequences there are; "
            "choose a smaller M or load more data.",
            code="group-too-large",
        )
    if within is not None and np.shape(within) != (n,):
        raise InputError(
            f"`within` needs one value per person ({n}); its shape is {np.shape(within)}.",
            code="wrong-shape",
        )
    if group_size == 1:
        return np.arange(n)
    group_size = int(group_size)
    rng = np.random.default_rng(random_state)
    part = np.zeros(n, dtype=np.int64)
    if within is not None:
        part = np.unique(np.asarray(within), return_inverse=True)[1]
    order = np.lexsort((rng.random(n), part))
    _, first, size = np.unique(part[order], return_index=True, return_counts=True)
    rank = np.arange(n) - np.repeat(first, size)
    groups_before = np.concatenate([[0], np.cumsum(-(-size // group_size))[:-1]])
    group = np.empty(n, dtype=np.int64)
    group[order] = np.repeat(groups_before, size) + rank // group_size
    return group


def _check_sizes(sizes: npt.ArrayLike, n_sequences: int) -> FloatArray:
    people = np.asarray(sizes, dtype=np.float64)
    if people.shape != (n_sequences,) or not (np.isfinite(people) & (people > 0)).all():
        raise InputError(
            f"Sizes must hold a positive number of people for each of the {n_sequences} sequences.",
            code="sizes-not-positive",
        )
    return people


def _check_totals(totals: FloatArray, *, may_differ: bool = False) -> None:
    """Each observed step of a sequence must count the same people; totals is (K, T)."""
    largest = totals.max(axis=1, keepdims=True)
    if (largest == 0).any():
        raise InputError(
            f"Sequence {int(np.argmin(largest))} counts nobody at any step; leave it out.",
            code="empty-sequence",
        )
    if may_differ:
        return
    uneven = (totals > 0) & ~np.isclose(totals, largest, rtol=1e-9, atol=0)
    if uneven.any():
        k, t = np.argwhere(uneven)[0]
        raise InputError(
            f"Sequence {k} counts {totals[k, t]:g} people at step {t} but {largest[k, 0]:g} at "
            "another; add a cell for those who are outside so that every step counts everybody.",
            code="totals-differ",
        )
