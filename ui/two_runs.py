"""Two runs on one map, how far their flows are apart, and the address that brings both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.plotting.beside import OTHER
from agg_core.plotting.flow_map import map_view, source_heading
from agg_core.store.saved_runs import SavedRun
from agg_core.store.shipped_runs import SHIPPED_RUNS
from agg_core.study.beside import Apart, TwoResults
from agg_core.study.people import ALL_DAY
from agg_core.study.result import ESTIMATE, WHOLE_DAY
from ui import cached, saved
from ui.counts_data import NO_PLACES
from ui.flow_map import flow_map, told
from ui.shell import entered, plain, tell_fault

__all__ = [
    "Compared",
    "Differing",
    "compared",
    "follow_address",
    "in_order",
    "keep_address",
    "map_key",
    "on_map",
    "tick_key",
]

SIDES = ("A", "B")
PARAMS = ("a", "b")
"""Names of the parameters of the address, whose values are ids of runs."""

FOLLOWED = "runs.followed"
"""The parameters that the ticks go with."""
REFUSED = "runs.refused"
"""Why the address could not be followed."""

MOST_TOLD = 2
"""Settings that a heading has room for."""

FEW = 100
"""People of whom the tenths are told."""

Differing = Sequence[tuple[str, str, str]]
"""Settings that differ: label, and what it is of the one and of the other."""


@dataclass(frozen=True)
class Compared:
    """A run that is set beside another: its id, its title, and when it was made."""

    id: str
    title: str
    made: str


def compared(run: SavedRun | str) -> Compared:
    """A saved run, or the shipped one of a key."""
    if isinstance(run, str):
        return Compared(run, SHIPPED_RUNS[run].title, "comes with the app")
    return Compared(run.id, run.title, f"{run.created_utc.astimezone():%Y-%m-%d %H:%M:%S}")


# -------------------------------------------------------------------------------- address


def tick_key(run_id: str) -> str:
    """Key of the box that takes a run into the comparison."""
    return f"runs.{run_id}.tick"


def follow_address(ticked: Iterable[str]) -> tuple[str, ...]:
    """Tick the two runs that the address names, before boxes are drawn; returns what it ticked.

    ``ticked`` are the runs that a person may have ticked before. What cannot be followed is told
    until two runs are chosen.
    """
    wanted = _asked()
    if wanted is None:
        if entered():
            st.session_state.pop(REFUSED, None)
        return ()
    if wanted == st.session_state.get(FOLLOWED) and not entered():
        return ()
    st.session_state[FOLLOWED] = wanted
    try:
        _check(wanted)
    except InputError as fault:
        st.session_state[REFUSED] = str(fault)
        return ()
    st.session_state.pop(REFUSED, None)
    for run_id in {*ticked, *wanted}:
        st.session_state[tick_key(run_id)] = run_id in wanted
    return wanted


def _asked() -> tuple[str, ...] | None:
    params = st.query_params.to_dict()
    if not any(name in params for name in PARAMS):
        return None
    return tuple(params.get(name, "") for name in PARAMS)


def _check(wanted: tuple[str, ...]) -> None:
    if not all(wanted) or len(set(wanted)) < len(wanted):
        raise InputError(
            "The address does not name two runs to compare; tick two in the list.",
            code="not-two-runs",
        )
    for run_id in wanted:
        saved.let_see(run_id)


def in_order(chosen: Sequence[Compared]) -> Sequence[Compared]:
    """Runs in the order that the address has them in, if it names them."""
    wanted = _asked() or ()
    if {run.id for run in chosen} != set(wanted):
        return chosen
    return sorted(chosen, key=lambda run: wanted.index(run.id))


def keep_address(chosen: Sequence[Compared]) -> None:
    """Let the address name the two runs that are compared, or none; tell what it could not do."""
    if len(chosen) == len(PARAMS):
        st.session_state.pop(REFUSED, None)
        ids = tuple(run.id for run in chosen)
        st.session_state[FOLLOWED] = ids
        if _asked() != ids:
            st.query_params.update(dict(zip(PARAMS, ids, strict=True)))
        return
    if REFUSED in st.session_state:
        tell_fault(st.session_state[REFUSED])
        return
    for name in PARAMS:
        st.query_params.pop(name, None)


# -------------------------------------------------------------------------------- the map


def map_key(chosen: Sequence[Compared]) -> str:
    """Key of the map of two runs, which has a view of its own."""
    return ".".join(["runs.map", *(run.id for run in chosen)])


def on_map(chosen: Sequence[Compared], differing: Differing) -> None:
    """The flows of two runs on one map, and how far they are apart in a sentence.

    Raises
    ------
    InputError
        If their flows cannot be compared cell by cell.
    """
    one, other = chosen
    two = cached.two_runs(one.id, other.id)
    st.fragment(_on_map)(chosen, _headings(chosen, two, differing))
    for note in _notes(two):
        st.caption(note)


def _on_map(chosen: Sequence[Compared], headings: tuple[str, str]) -> None:
    one, other = (run.id for run in chosen)
    two, key = cached.two_runs(one, other), map_key(chosen)
    times = _times(told(key), two)
    st.markdown(plain(_sentence(cached.apart(one, other, times), times, two)))
    if two.results[0].states.grid is None:
        st.info(NO_PLACES, icon=":material/info:")
        return
    sent = f"sent.{key}"
    if entered() or sent not in st.session_state:
        first = map_view(two.first_time, truth=OTHER, threshold=two.first_threshold)
        st.session_state[sent] = {**first, **told(key)}
    packed = cached.packed_two(one, other, headings, cached.outline_key())
    flow_map(packed, st.session_state[sent], key=key, height="560px")


def _times(view: Mapping[str, Any], two: TwoResults) -> tuple[str, ...]:
    """The times that the map shows the mean of."""
    known = two.times
    ends = [time for time in (view.get("time"), view.get("until")) if time in known]
    if not ends:
        return (two.first_time,)
    first, last = known.index(ends[0]), known.index(ends[-1])
    return known[min(first, last) : max(first, last) + 1]


def _sentence(apart: Apart, times: Sequence[str], two: TwoResults) -> str:
    unit = two.results[0].step_name + (" of a mean day" if two.of_mean_day else "")
    ours, others = (_people(moves) for moves in apart.moves)
    told = f"{_when(times)} {ours} people move per {unit} in A and {others} in B"
    if not isnan(apart.ratio):  # as it is where nobody moves in B
        told += f": A has {apart.ratio:.2f} times the movement of B"
    if not isnan(apart.common_part):
        told += f", and {apart.common_part:.0%} of all movement is common to both"
    return f"{told}."


def _days(number: int) -> str:
    return "one day" if number == 1 else f"{number:,} days"


def _when(times: Sequence[str]) -> str:
    if len(times) > 1:
        return f"On average from {times[0]} to {times[-1]}"
    if times[0] in (WHOLE_DAY, ALL_DAY):
        return "Over the day"
    return f"At {times[0]}"


def _people(number: float) -> str:
    return f"{number:,.1f}" if number < FEW else f"{number:,.0f}"


def _headings(chosen: Sequence[Compared], two: TwoResults, differing: Differing) -> tuple[str, str]:
    """Title, whose flows they are, and what else differs; or when each was made."""
    flows = [source_heading(result, ESTIMATE) for result in two.results]
    # "M = 5" among the words of the flows tells that setting already.
    new = [row for row in differing if not all(row[1 + i] in flows[i] for i in (0, 1))]
    made = []
    for i, (side, run) in enumerate(zip(SIDES, chosen, strict=True)):
        more = [f"{row[0]}: {row[1 + i]}" for row in new[:MOST_TOLD]]
        if not differing:
            more = [run.made]
        made.append(" · ".join([f"{side}: {run.title}", flows[i], *more]))
    return made[0], made[1]


def _notes(two: TwoResults) -> list[str]:
    """What is to be known before flows of two runs are set against each other."""
    one, other = two.results
    notes = []
    if two.of_mean_day:
        notes.append(
            f"Flows are of a mean day: those of A were sums over {_days(two.days[0])}, those of B "
            f"over {_days(two.days[1])}."
        )
    steps = [max(result.n_steps, 1) for result in two.results]
    if steps[0] != steps[1]:
        notes.append(
            f"A time stands for the mean of steps from it on: {steps[0]} in A, {steps[1]} in B."
        )
    if two.leaves_outside:
        notes.append(
            "Only one of the runs knows the outside: who comes from there or goes there is left "
            "out here."
        )
    if len(two.times) < max(len(one.times), len(other.times)):
        notes.append("Only the times of day that both runs have are shown.")
    return notes
