"""The list of saved runs: open, compare, rename, send and delete them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urljoin

import pandas as pd
import streamlit as st

from agg_core.base.errors import InputError
from agg_core.base.options import Option, options_of
from agg_core.base.report import printable
from agg_core.evidence.limited import SharedResult
from agg_core.evidence.privacy import MOST_PEOPLE
from agg_core.space.settings import GridSettings, grid_words
from agg_core.store.saved_runs import (
    DamagedRun,
    NewerRun,
    SavedCounts,
    SavedGates,
    SavedRun,
    SavedStudy,
)
from agg_core.store.shipped_runs import SHIPPED_RUNS
from agg_core.study.counts import CountStudy
from agg_core.study.gates import GateStudy
from agg_core.study.people import StudyResult
from agg_core.study.result import FlowResult
from agg_core.study.settings import LearnSettings
from ui import cached, saved
from ui.counts_learn import LEARNERS, METHODS
from ui.owner import is_logged_in, own_machine
from ui.shell import beside, go_on, plain, tell_fault
from ui.state import state
from ui.two_runs import (
    Compared,
    compared,
    follow_address,
    in_order,
    keep_address,
    on_map,
    tick_key,
)
from ui.views import look_afresh

__all__ = ["overview"]

AT_ONCE = 20
"""Runs listed at first, and more with each click."""

COMPARED = 2
FIGURES = {
    "cpc": "Common part",
    "correlation": "Correlation",
    "precision": "Precision",
    "recall": "Recall",
    "total_ratio": "Total movement",
}
TRUTHS = {"vs_single": "M = 1", "vs_counted": "counted"}
COLUMNS = tuple(f"{run} vs {truth}" for truth in TRUTHS.values() for run in "AB")

PREDICTIONS = {"mae": "MAE", "score": "score"}
PREDICTION_COLUMNS = tuple(f"{run} {figure}" for figure in PREDICTIONS.values() for run in "AB")

MANAGED = "runs.managed"
"""Key of the run whose title, address and end are open."""
SHOWN = "runs.shown"
LONGEST_PATH = 400
FULL = "runs.full"
"""Whether the last save found no room."""
NO_ROOM = ("too-many-runs", "too-many-runs-in-all")


def overview() -> None:
    """Every run that this session sees, and two of them side by side."""
    try:
        _save_what_is_shown()
        runs = saved.listed()
    except InputError as fault:
        tell_fault(str(fault))
        return
    ids = [run.id for run in runs]
    named = follow_address((*ids, *SHIPPED_RUNS))
    if set(named) - {*ids, *SHIPPED_RUNS}:
        runs = saved.listed()
        ids = [run.id for run in runs]
    named_last = max((ids.index(run_id) for run_id in named if run_id in ids), default=-1)
    at_once = max(st.session_state.get(SHOWN, AT_ONCE), named_last + 1)
    if named:
        st.session_state[SHOWN] = at_once
    if not runs:
        st.info(
            "No runs are saved yet. When the learner has finished, its flows are saved here by "
            "themselves and stay after the session.",
            icon=":material/info:",
        )
        go_on("pages/3_Learn.py", "Go to Learn")
    beside = st.container()
    shown = runs[:at_once]
    ticked = [compared(run) for run in shown if _row(run) and isinstance(run, SavedRun)]
    if len(shown) < len(runs) and st.button(f"Older runs ({len(runs) - len(shown)})", key="older"):
        st.session_state[SHOWN] = len(shown) + AT_ONCE
        st.rerun()
    ticked += _shipped()
    chosen = in_order(ticked)
    with beside:
        keep_address(chosen)
        with _told():
            _compare(chosen)
    _who_sees_what()


def _shipped() -> list[Compared]:
    """The runs that come with the app; returns those that are ticked for the comparison."""
    with st.expander("Compare with a run that comes with the app", key="runs.shipped"):
        return [
            compared(run.key)
            for run in SHIPPED_RUNS.values()
            if st.checkbox(plain(run.title), key=tick_key(run.key))
        ]


def _save_what_is_shown() -> None:
    """A second chance, should the disk have refused."""
    shown = state().shown.finished
    if shown is None or shown.saved is not None:
        return
    st.warning(f"The flows of {plain(shown.title)} are not saved.", icon=":material/save:")
    if st.button("Save them", key="runs.save"):
        st.session_state[FULL] = False
        try:
            saved.save_finished(state())
        except InputError as fault:
            st.session_state[FULL] = fault.code in NO_ROOM
            tell_fault(str(fault))
        else:
            st.rerun()
    if st.session_state.get(FULL):
        _make_room()


def _make_room() -> None:
    """Where there is no room for one more run: the oldest of one's own may go, if one says so."""
    oldest = saved.oldest_of_own()
    if oldest is None:
        return
    title = oldest.title if isinstance(oldest, SavedRun) else oldest.id[:8]
    sure = st.checkbox(
        f"I want to delete my oldest run, {plain(title)} of "
        f"{plain(f'{oldest.created_utc.astimezone():%Y-%m-%d %H:%M}')}, for good",
        key="runs.room.sure",
    )
    if st.button("Delete it and save these flows", key="runs.room", disabled=not sure):
        with _told():
            saved.delete(oldest.id)
            saved.save_finished(state())
            st.session_state[FULL] = False
            st.rerun()


def _who_sees_what() -> None:
    store = cached.store()
    if own_machine():
        st.caption(
            "This server answers this machine only, so all runs saved on it are listed.",
            help=f"They lie in the folder {plain(printable(store.folder, LONGEST_PATH))}",
        )
    else:
        st.caption(
            "Others use this server too: listed are your runs, and those of others that you opened "
            "in this session. A run opens for you alone, until you switch on under Manage that "
            "others may open it: then for everybody who has its address. Only you can rename or "
            "delete it. "
            + (
                "They are yours wherever you log in."
                if is_logged_in()
                else "Without a login you are this session: share a run and keep its address, to "
                "find it again in another."
            )
        )
    told = "A run holds its flows, learned numbers and settings, not the file they came from."
    with _told():
        quota = store.quota
        whose = "on this machine" if own_machine() else "of yours"
        told += (
            f" Up to {quota.each:,} {whose} are kept, and none is deleted by itself: beyond that, "
            "one more is only saved when another is deleted."
        )
    st.caption(told)


# -------------------------------------------------------------------------------- one run


def _row(run: saved.AnyRun) -> bool:
    """A run and what can be done with it; returns whether it is ticked for the comparison."""
    with st.container(border=True):
        about, beside = st.columns([5, 3], vertical_alignment="center")
        actions = beside.container(
            horizontal=True, horizontal_alignment="right", vertical_alignment="center"
        )
        with about:
            if isinstance(run, SavedRun):
                _tell(run)
            else:
                st.warning(plain(run.fault), icon=":material/broken_image:")
        whole = isinstance(run, SavedRun)
        ticked = whole and actions.checkbox("Compare", key=tick_key(run.id))
        if whole and actions.button("Open", icon=":material/moving:", key=f"runs.{run.id}.open"):
            _open(run.id)
        if isinstance(run, NewerRun):
            return False
        actions.button(
            "Manage", icon=":material/more_horiz:", key=f"runs.{run.id}.manage",
            on_click=_open_or_close, args=(run.id,),
        )  # fmt: skip
        if st.session_state.get(MANAGED) == run.id:
            _manage(run)
    return ticked


def _open_or_close(run_id: str) -> None:
    """Callback: before the page is drawn, so that never two runs are open."""
    closes = st.session_state.get(MANAGED) == run_id
    st.session_state[MANAGED] = None if closes else run_id


def _tell(run: SavedRun) -> None:
    shown = state().shown.finished
    now = shown is not None and shown.saved == run.id
    st.markdown(f"**{plain(run.title)}**" + (" :material/visibility: open now" if now else ""))
    facts = (f"{run.created_utc.astimezone():%Y-%m-%d %H:%M %Z}", *_facts(run))
    st.caption(" · ".join(plain(fact) for fact in facts))


def _facts(run: SavedRun) -> tuple[str, ...]:
    """What matters of a run of its kind."""
    if isinstance(run, SavedStudy):
        people = f"{run.n_individuals:,} people"
        return people, f"M = {run.group_size}", ", ".join(run.times), _learner(run.learner)
    assert isinstance(run, SavedCounts | SavedGates)
    days = _number(run.n_days, "day")
    if isinstance(run, SavedGates):
        return "from entries and exits", _number(run.n_cells, "station"), days
    cells = _number(run.n_cells, "cell")
    return "from counts alone", cells, days, LEARNERS.get(run.learner, run.learner)


def _number(number: int, of: str) -> str:
    return f"{number:,} {of}{'' if number == 1 else 's'}"


def _learner(names: str) -> str:
    """Learners as the form words them."""
    option = options_of(LearnSettings)["inference"]
    labels = dict(zip(option.choices, option.choice_labels, strict=True))
    return ", ".join(labels.get(name, name) for name in names.split(", "))


def _open(run_id: str) -> None:
    with _told():
        if saved.open_saved(run_id):
            look_afresh()
        st.switch_page("pages/4_Flows.py")


def _manage(run: SavedRun | DamagedRun) -> None:
    if isinstance(run, SavedRun):
        st.caption("The address of this run, to keep or to send:")
        st.code(_address(run.id), language=None)
    if not saved.may_change(run.id):
        return
    if isinstance(run, SavedRun):
        if not own_machine():
            _share(run)
        _rename(run)
    _delete(run)


def _address(run_id: str) -> str:
    """Address of the flows of a run; without its beginning where the browser does not tell it."""
    return f"{urljoin(st.context.url or '', 'Flows')}?run={run_id}"


def _share(run: SavedRun) -> None:
    """The switch by which others may open a run; at once, as it stands on the page."""
    key, least = f"runs.{run.id}.shared", f"runs.{run.id}.least"

    def change() -> None:
        with _told():
            saved.share(run.id, bool(st.session_state[key]), int(st.session_state[least]))

    if run.owner is None:
        st.caption(
            "It was saved before runs had owners: it opens for all who have its address"
            f"{_withheld(run.least_people)}."
        )
        return
    st.session_state[key], st.session_state[least] = run.shared, run.least_people
    st.toggle("Others who have its address may open it", key=key, on_change=change)
    st.number_input(
        "Least number of people", 0, int(MOST_PEOPLE), step=1, key=least, on_change=change,
        width=320,
        help="Flows of fewer people per step are withheld from others, wherever they look, and so "
        "are flows from which these could be worked out, and single days. You see all. 0 withholds "
        "nothing: others then see all that you see. Whoever has seen more keeps it.",
    )  # fmt: skip


def _withheld(least_people: int) -> str:
    return f", without flows of fewer than {least_people:,} people" if least_people else ""


def _rename(run: SavedRun) -> None:
    field, button = st.columns([5, 1], vertical_alignment="bottom")
    title = field.text_input("Title", run.title, key=f"runs.{run.id}.title")
    if button.button("Rename", key=f"runs.{run.id}.rename"):
        with _told():
            saved.rename(run.id, title)
            st.rerun()


def _delete(run: SavedRun | DamagedRun) -> None:
    sure = st.checkbox("I want to delete this run for good", key=f"runs.{run.id}.sure")
    if st.button(
        "Delete", icon=":material/delete:", key=f"runs.{run.id}.delete", disabled=not sure
    ):
        with _told():
            saved.delete(run.id)
            st.session_state[MANAGED] = None
            st.rerun()


@contextmanager
def _told() -> Iterator[None]:
    """A fault is told where it happens; the rest of the list stays."""
    try:
        yield
    except InputError as fault:
        tell_fault(str(fault))


# --------------------------------------------------------------------------- side by side


def _compare(runs: Sequence[Compared]) -> None:
    """Two runs on a map and in tables, or how to get there."""
    if len(runs) != COMPARED:
        st.caption("Tick two runs to see side by side in what they differ.")
        return
    st.caption(f"A: {plain(runs[0].title)} · B: {plain(runs[1].title)}")
    one, other = (cached.result(run.id) for run in runs)
    for side, result in zip("AB", (one, other), strict=True):
        if result.limit_words:
            st.caption(f"{side}: {plain(result.limit_words)}")
    kinds = [_learned(result).kind for result in (one, other)]
    alike = kinds[0] == kinds[1]
    with _told():
        on_map(runs, _telling(one, other) if alike else ())
    if alike and (one.limit_words or other.limit_words):
        _differences(one, other)
        st.caption("Figures of all flows together are not told of a run that another shares.")
    elif alike:
        COMPARISONS[kinds[0]](one, other)
    else:
        st.caption(
            f"One was learned {LEARNED_FROM[one.kind]} and one {LEARNED_FROM[other.kind]}: they "
            "have no settings in common."
        )


def _learned(result: FlowResult) -> FlowResult:
    """What was learned, of whose settings all may know, also behind a limit."""
    return result.base if isinstance(result, SharedResult) else result


def _compare_studies(one: StudyResult, other: StudyResult) -> None:
    settings, figures = beside([4, 5])
    with settings:
        _differences(one, other)
    with figures:
        _table(("Learned from groups", *COLUMNS), _figures(one, other))
        st.caption(
            "Over all times of day; the threshold of each run is its own. The first four are 1 at "
            "best; total movement is 1 where as many people move as in the truth, which is M = 1 "
            "or as counted."
        )


def _compare_counts(one: CountStudy, other: CountStudy) -> None:
    settings, figures = beside([4, 5])
    with settings:
        _differences(one, other)
    with figures:
        _table(("Held-out counts", *PREDICTION_COLUMNS), _predictions(one, other))
        st.caption(
            "How well counts of held-out days are predicted: the mean error of a cell's count in "
            "people (MAE, smaller is better) and the score of means and covariances together "
            "(larger is better)."
        )


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Whole values, wrapped where they are long; markdown's signs in them are only signs."""
    frame = pd.DataFrame(rows, columns=list(columns)).map(plain)
    st.table(frame, hide_index=True, alt=columns[0])


Facts = list[tuple[str, str]]
"""Labels and values, in words."""


def _differences(one: FlowResult, other: FlowResult) -> None:
    """A table of what differs, or that nothing does."""
    differing = _differing(one, other)
    if differing:
        _table(("Settings that differ", "A", "B"), differing)
    else:
        st.caption("They have the same settings and as much data.")


def _differing(one: FlowResult, other: FlowResult) -> list[tuple[str, str, str]]:
    """Label and values of the settings in which two runs of a kind differ."""
    facts = FACTS[_learned(one).kind]
    ours, others = dict(facts(_learned(one))), dict(facts(_learned(other)))
    # Grids of two kinds have settings of their own.
    rows = [
        (label, ours.get(label, "–"), others.get(label, "–"))
        for label in dict.fromkeys([*ours, *others])
    ]
    return [row for row in rows if row[1] != row[2]]


def _telling(one: FlowResult, other: FlowResult) -> list[tuple[str, str, str]]:
    """The same, those first that say how it was learned: they tell two maps apart best."""
    settings = one.settings.learn if isinstance(_learned(one), StudyResult) else one.settings
    learned = {label for label, _ in _chosen(settings)}
    return sorted(_differing(one, other), key=lambda row: row[0] not in learned)


def _facts_of_study(result: StudyResult) -> Facts:
    settings = result.settings
    rectangle = isinstance(settings.grid, GridSettings)
    named = [] if rectangle else [("Cells", grid_words(settings.grid))]
    parts = (settings.grid, settings.window, settings.learn)
    people = ("People", f"{result.n_individuals:,}")
    return [people, *named, *(fact for part in parts for fact in _chosen(part))]


def _facts_of_counts(study: CountStudy) -> Facts:
    cells = "without a place" if study.grid is None else grid_words(study.grid)
    return [
        ("Days", f"{study.n_days:,}"),
        ("Pairs of counts", f"{study.n_pairs:,}"),
        ("Cells", f"{study.n_cells:,}, {cells}"),
        ("Learner", LEARNERS.get(study.learner, study.learner)),
        *_chosen(study.settings),
    ]


def _chosen(settings: Any) -> Facts:
    """The settings of a form, as it words them."""
    return [
        (
            f"{option.label} ({option.unit})" if option.unit else option.label,
            _worded(getattr(settings, name), option),
        )
        for name, option in options_of(settings).items()
    ]


def _worded(value: Any, option: Option) -> str:
    if value in option.choices:
        return option.choice_labels[option.choices.index(value)]
    if isinstance(value, tuple):
        return ", ".join(value) or "all day"
    if value is None:
        return "–"
    return f"{value:,}" if option.per == 1 else f"{option.shown(value):,g}"


def _figures(one: StudyResult, other: StudyResult) -> list[tuple[str, ...]]:
    return [
        (
            label,
            *(_shown(getattr(getattr(r, truth), name)) for truth in TRUTHS for r in (one, other)),
        )
        for name, label in FIGURES.items()
    ]


def _predictions(one: CountStudy, other: CountStudy) -> list[tuple[str, ...]]:
    tables = [study.held_out.set_index("method") for study in (one, other)]
    return [
        (
            label,
            *(
                _shown(float(table[figure].get(method, float("nan"))))
                for figure in PREDICTIONS
                for table in tables
            ),
        )
        for method, label in METHODS.items()
    ]


def _shown(figure: float) -> str:
    return "–" if figure != figure else f"{figure:.3f}"  # noqa: PLR0124


def _facts_of_gates(study: GateStudy) -> Facts:
    told_by = "how days stray" if study.learned else "nothing: pairs are taken as alike"
    return [
        ("Stations", f"{len(study.cells):,}{'' if study.grid else ', without a place'}"),
        ("Days", f"{study.n_days:,}"),
        ("Who goes where", "an old matrix" if study.matrix_weights else told_by),
        *_chosen(study.settings),
    ]


def _compare_gates(one: GateStudy, other: GateStudy) -> None:
    settings, figures = beside([4, 5])
    with settings:
        _differences(one, other)
    with figures:
        told = [_figures_of_gates(each) for each in (one, other)]
        _table(
            ("Learned from entries and exits", "A", "B"),
            [(label, told[0][label], told[1][label]) for label in told[0]],
        )
        st.caption(
            "Entries and exits are met by both on every day, so they do not tell which is nearer "
            "to the truth: hold both against known trips on the page Evidence. The factors are by "
            "how much 10 km more, or another line, multiply a pair's weight, with an interval of "
            "nine in ten."
        )


def _figures_of_gates(study: GateStudy) -> dict[str, str]:
    """What a run of entries and exits came to, in words."""
    told = study.summary()
    weights, pace = told["weights"], told["minutes_per_km"]

    def factor(name: str) -> str:
        if not study.learned or study.matrix_weights or name not in weights:
            return "–"
        at = weights[name]
        return f"{at['factor']:.2f} ({at['low']:.2f} to {at['high']:.2f})"

    resolved = told["n_resolved"]
    return {
        "Trips a day": f"{told['trips_per_day']:,.0f}",
        "Entries": f"{told['n_entered']:,.0f}",
        "Exits": f"{told['n_left']:,.0f}",
        "Counts that were filled": f"{told['n_filled']:,}",
        "10 km more": factor("distance"),
        "Another line": factor("line"),
        "Minutes per km": "–" if pace is None else f"{pace:g}",
        "Flows that the counts resolve": "–" if resolved is None else f"{resolved:,}",
    }


LEARNED_FROM = {
    SavedStudy.kind: "from people",
    SavedCounts.kind: "from counts alone",
    SavedGates.kind: "from entries and exits",
}

COMPARISONS: Mapping[str, Callable[[Any, Any], None]] = {
    SavedStudy.kind: _compare_studies,
    SavedCounts.kind: _compare_counts,
    SavedGates.kind: _compare_gates,
}
"""What shows two runs of a kind side by side."""

FACTS: Mapping[str, Callable[[Any], Facts]] = {
    SavedStudy.kind: _facts_of_study,
    SavedCounts.kind: _facts_of_counts,
    SavedGates.kind: _facts_of_gates,
}
"""What tells the settings of a run of a kind."""
