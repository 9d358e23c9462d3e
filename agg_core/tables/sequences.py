"""State sequences: tracks cut into clock bins, cells of a grid, windows of T bins.

The local clock is cut into bins [tau, tau + step) counted from midnight. The state of a bin is
the cell of the last fix in it; a bin without a fix takes the cell of the fix before it, provided
that the next fix comes within ``max_gap`` of that one. A longer gap starts a new track, and
nothing is carried on after a track's last fix. So a flow is only ever seen within one track of
one person. Fixes outside the grid put the person into the outside cell, state ``grid.n_cells``.

Where a clock is moved, a window is kept only if every one of its bins lasts exactly one step and
exists once: windows that touch a skipped or repeated hour are dropped and counted, so that two
places an hour apart never count as neighbours in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.base.clock import DAY, clock_label, clock_minutes, to_utc
from agg_core.base.errors import InputError

if TYPE_CHECKING:
    from agg_core.space.grid import BaseGrid, Bounds
    from agg_core.tables.trajectories import Trajectories

__all__ = [
    "CLOCK_CHANGE",
    "INCOMPLETE",
    "OUTSIDE_THROUGHOUT",
    "Sequences",
    "cell_counts",
    "count_table",
    "duration_us",
    "nothing_inside",
    "people_present",
    "sequences_of_people",
    "states_of",
    "step_us_of",
    "summed_people",
    "to_sequences",
]

INCOMPLETE = "track does not cover the window"
OUTSIDE_THROUGHOUT = "outside the grid throughout"
CLOCK_CHANGE = "clock moved within the window"

MAX_FILLED_BINS = 200_000_000
"""Most bins of single people that are worked on at once."""

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_US_PER_DAY = int(DAY.astype(np.int64))
_US_PER_SECOND = 10**6


@dataclass(frozen=True)
class Sequences:
    """Where each person was through each window of T bins.

    Parameters
    ----------
    states
        (N, T) cells 0..n_cells - 1; n_cells is the outside cell.
    fixes
        (N, T) row in the trajectory table of the fix that each state comes from; -1 where there
        is no table.
    weights
        (N,) people that each row stands for.
    individual
        (N,) index into ``user_ids``.
    window
        (N,) index into ``windows``.
    user_ids
        (n_individuals,) text.
    windows
        One row per window in order of time: start_utc, local_date (YYYY-MM-DD), time (HH:MM).
    dropped
        Cause to the number of (person, window) pairs left out.
    """

    states: IntArray
    fixes: IntArray
    weights: FloatArray
    individual: IntArray
    window: IntArray
    user_ids: npt.NDArray[np.object_]
    windows: pd.DataFrame
    n_cells: int
    step: pd.Timedelta
    timezone: str
    dropped: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.states)

    @property
    def length(self) -> int:
        """Bins in a window, T."""
        return int(self.states.shape[1])

    @property
    def has_outside(self) -> bool:
        """Whether anybody is in the outside cell at some time."""
        return bool((self.states == self.n_cells).any())

    @property
    def n_states(self) -> int:
        """Number of states: the cells, and the outside cell where it occurs."""
        return self.n_cells + int(self.has_outside)

    @property
    def n_individuals(self) -> int:
        """Number of people who have at least one sequence."""
        return len(self.user_ids)

    @property
    def times(self) -> tuple[str, ...]:
        """Clock times at which windows begin, in order."""
        return tuple(sorted(self.windows["time"].unique()))

    def at_time(self, time: str) -> Sequences:
        """Only the windows that begin at this clock time; ``dropped`` still tells of all.

        Raises
        ------
        InputError
            If no window begins then.
        """
        wanted = _clock_label(_clock_us(time))
        if wanted not in self.times:
            raise InputError(
                f"No window begins at {wanted}; choose one of {', '.join(self.times)}.",
                code="unknown-start-time",
            )
        return self._of((self.windows["time"] == wanted).to_numpy()[self.window])

    def without(self, left: npt.NDArray[np.bool_], cause: str) -> Sequences:
        """All but some (N,), who are counted in ``dropped`` as left out for this cause."""
        if not left.any():
            return self
        dropped = {**self.dropped, cause: self.dropped.get(cause, 0) + int(left.sum())}
        return replace(self._of(~left), dropped=dropped)

    def _of(self, chosen: npt.NDArray[np.bool_]) -> Sequences:
        """Some of them; people and windows without any are gone."""
        people, individual = _compact(self.individual[chosen])
        windows, window = _compact(self.window[chosen])
        return replace(
            self,
            states=self.states[chosen],
            fixes=self.fixes[chosen],
            weights=self.weights[chosen],
            individual=individual,
            window=window,
            user_ids=self.user_ids[people],
            windows=self.windows.iloc[windows].reset_index(drop=True),
        )


def to_sequences(
    trajectories: Trajectories,
    grid: BaseGrid,
    step: str | pd.Timedelta = "30min",
    length: int = 3,
    start: str | Sequence[str] | None = None,
    max_gap: str | pd.Timedelta | None = None,
) -> Sequences:
    """Cut trajectories into state sequences over windows of ``length`` bins of ``step``.

    >>> import agg_core
    >>> import pandas as pd
    >>> seen = pd.DataFrame({
    ...     "user_id": "a", "lon": [139.6, 139.9, 139.9], "lat": 35.7,
    ...     "time": ["2024-05-01 08:05", "2024-05-01 08:35", "2024-05-01 09:05"],
    ... })
    >>> people = agg_core.read_trajectories(seen, tz="Asia/Tokyo")
    >>> grid = agg_core.Grid.from_bbox(139.5, 35.5, 140.0, 35.9, rows=1, cols=2)
    >>> agg_core.to_sequences(people, grid, step="30min", length=3, start="08:00").states
    array([[0, 1, 1]])

    Parameters
    ----------
    step
        Length of a bin; it must divide a day evenly.
    length
        Bins in a window, T.
    start
        None cuts each day from local midnight into successive windows (those that would cross
        midnight are not formed). "08:00", or a list of such times, gives the windows that begin
        then each day; they may run past midnight and overlap.
    max_gap
        Longest time between two successive fixes that is bridged; two steps when None.

    A (person, window) pair counts only if one track fills all bins. The others are counted in
    ``dropped`` if the person has a fix in the window; so are windows that are filled but spent
    wholly outside the grid, or on which the clock is moved.

    Raises
    ------
    InputError
        If a setting does not fit, or no window is left, with the reason.
    """
    step_us = step_us_of(step)
    begins = _start_bins(start, step_us, length)
    fixes = _bin_fixes(trajectories, grid, step_us)
    if (fixes.cell == grid.n_cells).all():
        lon, lat = trajectories.table["lon"], trajectories.table["lat"]
        raise nothing_inside(grid.bounds, (lon.min(), lat.min(), lon.max(), lat.max()))
    filled = _fill(fixes, _gap_us(max_gap, step_us))

    cut = _cut(fixes, filled, begins, length, grid.n_cells, trajectories.timezone, step_us)
    if not len(cut.states):
        raise InputError(
            _no_window(filled, trajectories, begins, step_us, length, cut.dropped),
            code="no-window",
        )
    return _joined([cut], trajectories.user_ids, grid.n_cells, step_us, trajectories.timezone)


def sequences_of_people(
    parts: Iterable[tuple[IntArray, IntArray, IntArray, IntArray]],
    user_ids: Sequence[str],
    n_cells: int,
    step: str | pd.Timedelta,
    length: int,
    start: str | Sequence[str] | None,
    max_gap: str | pd.Timedelta | None,
    timezone: str,
) -> Sequences:
    """`to_sequences` of fixes that come some people at a time, of whom all fixes are there.

    Each part is person, clock bin since 1970, state and UTC in microseconds, (n,) each in order of
    person and time. ``fixes`` of what is returned are -1, as there is no table.

    Raises
    ------
    InputError
        If a setting does not fit, or no window is left.
    """
    step_us = step_us_of(step)
    begins, gap_us = _start_bins(start, step_us, length), _gap_us(max_gap, step_us)
    cuts = list[_Cut]()
    for user, local_bin, state, utc_us in parts:
        fixes = _in_order(user, local_bin, state, utc_us)
        cut = _cut(fixes, _fill(fixes, gap_us), begins, length, n_cells, timezone, step_us)
        cuts.append(replace(cut, fixes=np.full_like(cut.fixes, -1)))
    if not sum(len(cut.states) for cut in cuts):
        raise InputError(
            f"No track covers a window of {length} bins of {_duration_label(step_us)} within the "
            "cells: choose a shorter window, other start times, a longer step, a larger max_gap or "
            "a larger extent.",
            code="no-window",
        )
    ids = np.array(user_ids, dtype=object)
    return _joined(cuts, ids, n_cells, step_us, timezone)


def cell_counts(
    trajectories: Trajectories,
    grid: BaseGrid,
    step: str | pd.Timedelta = "30min",
    max_gap: str | pd.Timedelta | None = None,
) -> pd.DataFrame:
    """People present in each cell in each bin, by the same rule as `to_sequences`.

    Returns columns time (start of the bin on the local clock), cell (n_cells is outside) and
    count, without the empty ones. In an hour that the clock repeats a person counts once a bin.

    Raises
    ------
    InputError
        If a setting does not fit.
    """
    step_us, n_states = step_us_of(step), grid.n_cells + 1
    keys, count = _present(
        _bin_fixes(trajectories, grid, step_us), n_states, _gap_us(max_gap, step_us)
    )
    return count_table(keys, count, n_states, step_us, trajectories.timezone)


def people_present(
    user: IntArray, local_bin: IntArray, state: IntArray, utc_us: IntArray, n_states: int,
    max_gap_us: int,
) -> tuple[IntArray, IntArray]:  # fmt: skip
    """People by bin * n_states + state, in order: the keys that occur, and how many at each.

    Fixes (n,) come in order of person and time; of a person's bin the last one tells the state,
    and the first and the last how far apart two bins are, so that no others need be there.
    """
    return _present(_in_order(user, local_bin, state, utc_us), n_states, max_gap_us)


def summed_people(parts: Sequence[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """The keys and counts of `people_present` of all people, from those of some people each."""
    keys, place = _compact(np.concatenate([keys for keys, _ in parts]))
    counts = np.concatenate([counts for _, counts in parts])
    return keys, np.bincount(place, counts, minlength=len(keys)).astype(np.int64)


def count_table(
    keys: IntArray, count: IntArray, n_states: int, step_us: int, timezone: str
) -> pd.DataFrame:
    """Columns time, cell and count of `people_present`, without bins that the clock skips."""
    time = (keys // n_states * step_us).astype("datetime64[us]")
    exists = ~to_utc(time, timezone).missing
    return pd.DataFrame(
        {"time": time[exists], "cell": keys[exists] % n_states, "count": count[exists]}
    )


def states_of(grid: BaseGrid, lon: npt.ArrayLike, lat: npt.ArrayLike) -> IntArray:
    """Cell of each place, (n,); n_cells where it lies in none."""
    cell = grid.assign(lon, lat)
    return np.where(cell < 0, grid.n_cells, cell)


@dataclass(frozen=True)
class _Fixes:
    """Fixes in order of person and time: person, clock bin since 1970, cell, UTC in us."""

    user: IntArray
    bin: IntArray
    cell: IntArray
    utc_us: IntArray


@dataclass(frozen=True)
class _Filled:
    """(person, bin) pairs that have a state, in order: the fix it comes from, and its track."""

    user: IntArray
    bin: IntArray
    cell: IntArray
    fix: IntArray
    track: IntArray


def _bin_fixes(trajectories: Trajectories, grid: BaseGrid, step_us: int) -> _Fixes:
    table = trajectories.table
    return _in_order(
        trajectories.user_codes,
        trajectories.time_local.astype(np.int64) // step_us,
        states_of(grid, table["lon"].to_numpy(), table["lat"].to_numpy()),
        trajectories.time_utc.astype(np.int64),
    )


def _in_order(user: IntArray, local_bin: IntArray, cell: IntArray, utc_us: IntArray) -> _Fixes:
    base = local_bin.min()
    span = local_bin.max() - base + 1
    # A clock put back would send a person's bins back too; holding them keeps the order, and
    # windows in a repeated hour are dropped anyway.
    held = np.maximum.accumulate(user * span + (local_bin - base))
    return _Fixes(user, held - user * span + base, cell, utc_us)


@dataclass(frozen=True)
class _Cut:
    """Windows of some people: states and fixes (N, T), person and first bin (N,), and others."""

    states: IntArray
    fixes: IntArray
    user: IntArray
    bin: IntArray
    dropped: Mapping[str, int]


def _cut(
    fixes: _Fixes, filled: _Filled, begins: BoolArray, length: int, n_cells: int, timezone: str,
    step_us: int,
) -> _Cut:  # fmt: skip
    """The windows that tracks fill, and how many are left out for which cause."""
    base = int(fixes.bin.min()) - length
    span = int(fixes.bin.max()) - base + 1
    at = _whole_windows(filled, begins, length)
    whole = filled.user[at] * span + filled.bin[at] - base
    touched = _touched_windows(fixes, begins, length, base, span)
    _check_size(len(at) * length)
    bins = at[:, None] + np.arange(length)
    states = filled.cell[bins]

    pairs = _sorted_unique(np.concatenate([whole, touched]))
    moved = _clock_moves(pairs % span + base, timezone, step_us, length)
    steady = ~moved[np.searchsorted(pairs, whole)]
    inside = (states < n_cells).any(axis=1)
    kept = steady & inside
    dropped = {
        INCOMPLETE: int((~moved).sum() - steady.sum()),
        OUTSIDE_THROUGHOUT: int((steady & ~inside).sum()),
        CLOCK_CHANGE: int(moved.sum()),
    }
    where = at[kept]
    return _Cut(
        states[kept], filled.fix[bins[kept]], filled.user[where], filled.bin[where], dropped
    )


def _joined(
    cuts: Sequence[_Cut],
    user_ids: npt.NDArray[np.object_],
    n_cells: int,
    step_us: int,
    timezone: str,
) -> Sequences:
    """The windows of all people together."""
    states, fixes = (
        np.concatenate([getattr(cut, name) for cut in cuts]) for name in ("states", "fixes")
    )
    codes, individual = _compact(np.concatenate([cut.user for cut in cuts]))
    starts, window = _compact(np.concatenate([cut.bin for cut in cuts]))
    causes = {cause: sum(cut.dropped[cause] for cut in cuts) for cause in cuts[0].dropped}
    return Sequences(
        states=states,
        fixes=fixes,
        weights=np.ones(len(states)),
        individual=individual,
        window=window,
        user_ids=user_ids[codes],
        windows=_window_table(starts, step_us, timezone),
        n_cells=n_cells,
        step=pd.Timedelta(step_us, unit="us"),
        timezone=timezone,
        dropped={cause: count for cause, count in causes.items() if count},
    )


def _present(fixes: _Fixes, n_states: int, max_gap_us: int) -> tuple[IntArray, IntArray]:
    filled = _fill(fixes, max_gap_us)
    keys, place = _compact(filled.bin * n_states + filled.cell)
    return keys, np.bincount(place)


def _fill(fixes: _Fixes, max_gap_us: int) -> _Filled:
    """The last fix of each bin, repeated over the empty bins up to a next fix in reach."""
    same_user = np.diff(fixes.user) == 0
    bridged = same_user & (np.diff(fixes.utc_us) <= max_gap_us)
    track = np.concatenate([[0], np.cumsum(~bridged)])
    leaves_bin = ~same_user | (np.diff(fixes.bin) != 0)
    last = np.flatnonzero(np.append(leaves_bin, True))
    empty_after = np.zeros(len(last), dtype=np.int64)
    crossing = bridged[last[:-1]]
    empty_after[:-1][crossing] = (fixes.bin[last[:-1] + 1] - fixes.bin[last[:-1]] - 1)[crossing]
    times = empty_after + 1
    total = int(times.sum())
    _check_size(total)
    run_start = np.cumsum(times) - times
    ahead = np.arange(total) - np.repeat(run_start, times)
    rows = np.repeat(last, times)
    return _Filled(fixes.user[rows], fixes.bin[rows] + ahead, fixes.cell[rows], rows, track[rows])


def _whole_windows(filled: _Filled, begins: BoolArray, length: int) -> IntArray:
    """Index of the first bin of every window that one track fills."""
    n = len(filled.bin) - length + 1
    if n <= 0:
        return np.empty(0, dtype=np.int64)
    ends = slice(length - 1, None)
    whole = (
        begins[filled.bin[:n] % len(begins)]
        & (filled.track[:n] == filled.track[ends])
        & (filled.bin[:n] + length - 1 == filled.bin[ends])
    )
    return np.flatnonzero(whole)


def _touched_windows(
    fixes: _Fixes, begins: BoolArray, length: int, base: int, span: int
) -> IntArray:
    """Every (person, window) with a fix, as sorted codes person * span + first bin - base."""
    per_day = len(begins)
    entry = np.flatnonzero(np.append(True, (np.diff(fixes.user) != 0) | (np.diff(fixes.bin) != 0)))
    user, first = fixes.user[entry], fixes.bin[entry]
    clock_bin = np.arange(per_day)
    offsets = np.full((1, per_day), -1)
    for back in range(length):  # the windows that hold a clock bin, one layer per overlap
        hit = begins[(clock_bin - back) % per_day]
        layer = (offsets >= 0).sum(axis=0)
        if layer[hit].max(initial=0) >= len(offsets):
            offsets = np.vstack([offsets, np.full((1, per_day), -1)])
        offsets[layer[hit], clock_bin[hit]] = back
    _check_size(len(offsets) * len(entry))
    found = []
    for layer_offsets in offsets:
        back_by = layer_offsets[first % per_day]
        held = back_by >= 0
        found.append(user[held] * span + first[held] - back_by[held] - base)
    return _sorted_unique(np.concatenate(found))


def _clock_moves(starts: IntArray, timezone: str, step_us: int, length: int) -> BoolArray:
    """Which windows (n,), by first bin, hold a bin that is no whole step or exists twice."""
    unique, back = _compact(starts)
    per_day = _US_PER_DAY // step_us
    first_day, last_day = unique // per_day, (unique + length - 1) // per_day
    n_days = (length - 1) // per_day + 2
    days = _sorted_unique((first_day[:, None] + np.arange(n_days)).ravel())
    midnight = to_utc((days * _US_PER_DAY).astype("datetime64[us]"), timezone).utc
    next_midnight = to_utc(((days + 1) * _US_PER_DAY).astype("datetime64[us]"), timezone).utc
    odd_days = days[~(next_midnight - midnight == DAY)]
    moves = np.searchsorted(odd_days, first_day) < np.searchsorted(odd_days, last_day, "right")
    edges = (unique[moves][:, None] + np.arange(length + 1)) * step_us
    edges[:, -1] -= 1  # the window's last instant: its end may lie just beyond the move
    utc = to_utc(edges.ravel().astype("datetime64[us]"), timezone).utc.reshape(edges.shape)
    steady = np.diff(utc, axis=1) == np.diff(edges, axis=1).astype("timedelta64[us]")
    moves[moves] = ~steady.all(axis=1)
    return moves[back]


def _check_size(n_bins: int) -> None:
    if n_bins > MAX_FILLED_BINS:
        raise InputError(
            f"The windows would hold {n_bins:,} bins of single people, more than the "
            f"{MAX_FILLED_BINS:,} worked on at once; use a longer step, a shorter max_gap, "
            "fewer start times or fewer people.",
            code="too-many-bins",
        )


def _sorted_unique(values: IntArray) -> IntArray:
    """Distinct values in order. The values come in sorted runs, which a stable sort merges fast."""
    ordered = np.sort(values, kind="stable")
    distinct: IntArray = ordered[np.append(True, np.diff(ordered) != 0)[: len(ordered)]]
    return distinct


def _compact(values: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct values in order, and the place (n,) of each value among them."""
    low = int(values.min()) if len(values) else 0
    reach = int(values.max()) - low + 1 if len(values) else 0
    if reach > 4 * len(values) + 10**6:
        distinct, place = np.unique(values, return_inverse=True)
        return distinct, place.astype(np.int64)
    present = np.zeros(reach, dtype=bool)
    present[values - low] = True
    return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[values - low]


def _window_table(starts: IntArray, step_us: int, timezone: str) -> pd.DataFrame:
    local = (starts * step_us).astype("datetime64[us]")
    return pd.DataFrame(
        {
            "start_utc": pd.DatetimeIndex(to_utc(local, timezone).utc).tz_localize("UTC"),
            "local_date": np.datetime_as_string(local, unit="D"),
            "time": [_clock_label(int(us)) for us in local.astype(np.int64) % _US_PER_DAY],
        }
    )


def step_us_of(step: str | pd.Timedelta) -> int:
    """Microseconds of a step; raises InputError unless it divides a day into whole seconds."""
    step_us = duration_us(step, "step")
    if step_us < _US_PER_SECOND or _US_PER_DAY % step_us:
        raise InputError(
            f"The step must be at least a second and divide a day evenly, such as 20min or 1h; "
            f"it was given {step}.",
            code="step-not-dividing-day",
        )
    return step_us


def _gap_us(max_gap: str | pd.Timedelta | None, step_us: int) -> int:
    return 2 * step_us if max_gap is None else duration_us(max_gap, "max_gap")


def duration_us(duration: str | pd.Timedelta, what: str) -> int:
    """Microseconds of a duration; raises InputError, which names ``what``, unless it is one."""
    try:
        value = pd.Timedelta(duration)
    except ValueError as error:
        raise InputError(
            f"The {what} {str(duration)[:40]!r} is no duration; write it like 30min or 1h.",
            code="malformed-duration",
        ) from error
    if pd.isna(value) or value <= pd.Timedelta(0):
        raise InputError(
            f"The {what} must be longer than nothing; it was given {duration}.",
            code="value-out-of-range",
        )
    return int(value // pd.Timedelta(1, unit="us"))


def _start_bins(start: str | Sequence[str] | None, step_us: int, length: int) -> BoolArray:
    """Which bins of the day begin a window, (bins per day,)."""
    per_day = _US_PER_DAY // step_us
    begins = np.zeros(per_day, dtype=bool)
    if length < 1 or length > 7 * per_day:
        raise InputError(
            f"A window needs 1 to {7 * per_day:,} bins; it was given {length}.",
            code="value-out-of-range",
        )
    if start is None:
        if length > per_day:
            raise InputError(
                f"A window of {length} bins is longer than a day; give the times it starts at.",
                code="window-too-long",
            )
        begins[np.arange(per_day // length) * length] = True
        return begins
    for clock in [start] if isinstance(start, str) else start:
        at_us = _clock_us(clock)
        if at_us % step_us:
            raise InputError(
                f"The start {clock} is not on a border of bins of {_duration_label(step_us)} "
                "counted from midnight.",
                code="start-off-border",
            )
        begins[at_us // step_us] = True
    if not begins.any():
        raise InputError("Give at least one start time, such as 08:00.", code="no-start-given")
    return begins


def _clock_us(clock: str) -> int:
    return clock_minutes(clock) * 60 * _US_PER_SECOND


def _clock_label(us: int) -> str:
    return clock_label(us // _US_PER_SECOND)


def _duration_label(us: int) -> str:
    seconds = us // _US_PER_SECOND
    return f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds} s"


def nothing_inside(bounds: Bounds, span: Bounds) -> InputError:
    """The fault that cells within ``bounds`` hold none of the fixes, which lie within ``span``."""
    extent, data = (", ".join(f"{side:g}" for side in sides) for sides in (bounds, span))
    return InputError(
        f"No fix lies inside the extent {extent}; the data span {data} (west, south, east, "
        "north): choose an extent that covers them.",
        code="nothing-in-extent",
    )


def _no_window(
    filled: _Filled,
    trajectories: Trajectories,
    begins: BoolArray,
    step_us: int,
    length: int,
    dropped: Mapping[str, int],
) -> str:
    size = f"{length} bins of {_duration_label(step_us)}"
    if not any(dropped.values()):
        starts = [_clock_label(int(i) * step_us) for i in np.flatnonzero(begins)[:5]]
        clock = np.sort(trajectories.time_local.astype(np.int64) % _US_PER_DAY)
        return (
            f"No fix falls in a window of {size} from {', '.join(starts)}; the fixes lie between "
            f"{_clock_label(int(clock[0]))[:5]} and {_clock_label(int(clock[-1]))[:5]} "
            f"({trajectories.timezone}): choose another start."
        )
    if dropped[OUTSIDE_THROUGHOUT]:
        return (
            f"Every window of {size} that a track covers lies outside the grid: choose a larger "
            "extent."
        )
    longest = int(np.bincount(filled.track).max())
    reason = f"the longest unbroken track fills {longest} bin{'s' * (longest != 1)}"
    if longest >= length:
        reason = "no unbroken track lies where a window begins and lasts to its end"
    return (
        f"No track covers a whole window of {size}; {reason}: choose a shorter window, other "
        "start times, a longer step or a larger max_gap."
    )
