"""One setting at several values, on the page Learn: the form, the job, and its table and figure."""

from __future__ import annotations

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.base.threads import number_of_threads
from agg_core.exports.tables import csv_bytes
from agg_core.plotting.sweeps import sweep_chart
from agg_core.store.jobs import SWEEP
from agg_core.study.settings import CountLearnSettings, StudySettings
from agg_core.study.sweeps import (
    FIGURES,
    MOST_VALUES,
    Sweep,
    SweepProgress,
    SweepResult,
    Value,
    check_sweep,
    read_values,
    suggested_values,
    texts_of,
    to_be_used,
    variable,
)
from ui import cached
from ui.at_work import tell_address, whose
from ui.engines import engine_of_choice
from ui.forms import fill
from ui.panels import STATIC, cost, follow
from ui.shell import plain, tell_fault, theme
from ui.state import Dataset, Run, state
from ui.views import take_finished
from ui.workspace import job, workspace

__all__ = ["compare", "sweep_progress"]

AnySettings = StudySettings | CountLearnSettings

OPEN = "sweep.open"
"""Key of the expander: what is in it is asked for only while it is open."""


def compare(opened: Dataset) -> None:
    """Choose a setting and values for it, learn at each, and look at what comes of them."""
    box = st.expander(
        "Compare several settings", icon=":material/stacked_line_chart:", key=OPEN,
        on_change="rerun",
    )  # fmt: skip
    if box.open:
        with box:
            _choose(opened)
    sweep_progress()


def _choose(opened: Dataset) -> None:
    now = state()
    base: AnySettings = now.count_learn if opened.kind == "counts" else now.settings
    st.caption(
        "The flows are learned once for each value of one setting, with all others as they are "
        "chosen on these pages; a table and a figure tell what becomes of the flows."
    )
    names = [name for name in variable(base) if suggested_values(base, name)]
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    with left:
        name = st.selectbox(
            "Setting", names, format_func=lambda name: variable(base)[name].label,
            key=f"sweep.{opened.kind}.name",
        )  # fmt: skip
    settings = to_be_used(base, name)
    try:
        with right:
            values = _values(opened, settings, name)
        sweep = Sweep(settings, name, values)
    except InputError as fault:
        tell_fault(str(fault))
        return
    if settings != base:
        st.caption("It is then as given, and not chosen by the data.")
    if st.button("Compare the values", icon=":material/play_arrow:", key="sweep.start"):
        _start(opened, sweep)
    cost(cached.lasting_of_sweep(opened, sweep, _at_once()), _megabytes(opened, sweep))


def _values(opened: Dataset, settings: AnySettings, name: str) -> tuple[Value, ...]:
    """The values as a widget.

    Raises
    ------
    InputError
        If what is typed are no values.
    """
    option, key = variable(settings)[name], f"sweep.{opened.kind}.{name}"
    people = None
    if opened.kind == "trajectories":
        people = cached.trajectories(opened.key).report.individuals
    given = suggested_values(settings, name, people)
    if option.choices:
        labels = dict(zip(option.choices, option.choice_labels or option.choices, strict=True))
        # Those that nobody can have beside the other settings are not offered.
        chosen = st.multiselect(
            "Values", [value for value in option.choices if value in given], default=list(given),
            format_func=labels.__getitem__, help=option.help, key=key,
        )  # fmt: skip
        return tuple(chosen)
    unit = f", in {option.unit}" if option.unit else ""
    text = st.text_input(
        f"Values{unit}", ", ".join(texts_of(given, option)), key=key,
        help=f"{option.help} Up to {MOST_VALUES} values with commas between them.",
    )  # fmt: skip
    return read_values(type(settings), name, text.split(","))


def _at_once() -> int:
    """Values that are learned at once on this machine, as far as is known: a cluster is another."""
    return 1 if "://" in engine_of_choice() else number_of_threads()


def _megabytes(opened: Dataset, sweep: Sweep) -> float | None:
    return cached.megabytes_of_sweep(opened, sweep, _at_once())


def _start(opened: Dataset, sweep: Sweep) -> None:
    """Let the job begin; what rules it out is told, and what is shown stays."""
    now, own = state(), workspace()
    of_counts = opened.kind == "counts"
    try:
        with st.spinner("Looking whether these data have all that …"):
            check_sweep(
                cached.counts(opened.key) if of_counts else cached.trajectories(opened.key), sweep
            )
        data = own.counts[opened.key] if of_counts else own.datasets[opened.key]
        lasting = cached.lasting_of_sweep(opened, sweep, _at_once())
        key = own.work(
            SWEEP, sweep, opened.title, whose(), data, engine_of_choice(),
            _megabytes(opened, sweep), lasting,
        )  # fmt: skip
    except InputError as fault:
        tell_fault(str(fault))
        return
    now.sweeps.run = Run(key, opened.title, sweep, lasting=lasting)


def sweep_progress() -> None:
    """The last comparison: at work, or how it ended; below it the last that ended well."""
    now = state()
    run = now.sweeps.run
    if run is None:
        return
    tell_address(run)
    with st.container(key="sweep.shown"):
        st.header(f"Compared: {run.settings.option.label}", anchor=False)
        working = follow(
            job(run.key), "sweep", preparing="Preparing …",
            kept="The last finished comparison is still shown." if now.sweeps.finished else "",
            describe=_step, lasting=run.lasting,
        )  # fmt: skip
        if not working:
            take_finished(now.sweeps)
        shown = now.sweeps.finished
        if shown is not None and job(shown.key) is not None:
            _show(shown)


def _step(step: SweepProgress) -> str:
    return f"{step.done} of {step.n_values} values done, now {plain(step.label)}"


def _show(run: Run[Sweep]) -> None:
    """The figure and the table of a comparison, and what to do with it."""
    result = cached.sweep(run.key)
    option = result.sweep.option
    st.markdown(f"**{plain(run.title)}**: {option.label}, {len(result.rows)} values")
    st.plotly_chart(
        sweep_chart(result, theme()), theme=None, config=STATIC, key="sweep.figure",
        alt=f"Movement and error against {option.label}",
    )  # fmt: skip
    st.dataframe(
        _table(result), hide_index=True, key="sweep.table", width="stretch",
        column_config={
            figure.label: st.column_config.NumberColumn(
                format=f"%.{figure.digits}f", help=figure.help
            )
            for figure in FIGURES.values()
        },
    )  # fmt: skip
    for label, row in zip(result.sweep.labels, result.rows, strict=True):
        if row.fault:
            st.caption(plain(f"{label}: {row.fault}"))
    st.download_button(
        "The table (CSV)", lambda: csv_bytes(result.table), key="sweep.csv",
        file_name=f"sweep-{result.sweep.name}.csv", mime="text/csv", icon=":material/download:",
        on_click="ignore",
    )  # fmt: skip
    _take_over(run, result)


def _table(result: SweepResult) -> object:
    """The table with the words of people; a fault is told below it."""
    named = {name: FIGURES[name].label for name in result.columns}
    named |= {"label": result.sweep.option.label, "learner": "Learner"}
    return result.table.drop(columns=["value", "fault"]).rename(columns=named)


def _take(settings: AnySettings) -> None:
    """Let the settings of the session, and the controls of the page Learn, be these."""
    now = state()
    if isinstance(settings, CountLearnSettings):
        now.count_learn = settings
        # Days are named by a file, which nobody can put into its widget but the person.
        names = [name for name in options_of(settings) if name not in ("holidays", "day_labels")]
        fill(settings, ["counts"], names)
    else:
        now.grid, now.window, now.learn = settings.grid, settings.window, settings.learn
        fill(settings.window, ["window"], list(options_of(settings.window)))
        fill(settings.learn, ["learn", "observed", "learner"], list(options_of(settings.learn)))


def _take_over(run: Run[Sweep], result: SweepResult) -> None:
    """A way to the flows of one value: its settings are those of the pages, to be learned with."""
    opened, sweep = state().dataset, result.sweep
    kind = "counts" if sweep.of_counts else "trajectories"
    if opened is None or (opened.kind, opened.title) != (kind, run.title):
        return
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    number = left.selectbox(
        "A value to go on with", range(len(sweep.values)), format_func=sweep.labels.__getitem__,
        key="sweep.taken",
    )  # fmt: skip
    right.button(
        "Take over its settings", icon=":material/tune:", key="sweep.take",
        on_click=_take, args=(sweep.each[number],),
        help="The settings above become those of this value; its flows are there once they are "
        "learned.",
    )  # fmt: skip
