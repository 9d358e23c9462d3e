"""Starting the learner, and going on to the flows when it has finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.store.jobs import AT_WORK, COUNTS, GATES, STUDY
from agg_core.store.shipped_runs import SHIPPED_RUNS
from ui import cached, panels
from ui.at_work import tell_address, whose
from ui.engines import engine_of_choice
from ui.shell import go_on, plain, tell_fault
from ui.shipped_run import open_shipped
from ui.state import Dataset, Run, Runs, state
from ui.views import take_finished_run
from ui.workspace import job, workspace

__all__ = [
    "ended_run",
    "go_on_to_flows",
    "megabytes",
    "need_flows",
    "people_progress",
    "show_me_the_flows",
    "start_learning",
    "ways_on",
]

SHOW = "Show me the flows"


def start_learning(opened: Dataset, *, onward: bool = False) -> bool:
    """Start the learner on the open data, with the settings as they stand.

    With ``onward`` the page Learn goes on to the flows when they are there, if it is still shown.
    Returns whether it has begun: one that runs already is told, and what the page shows goes on.
    """
    now, own, engine = state(), workspace(), engine_of_choice()
    try:
        if opened.kind == "counts":
            lasting = cached.lasting_of_counts(opened, now.count_learn)
            key = own.work(
                COUNTS, now.count_learn, opened.title, whose(), own.counts[opened.key], engine,
                cached.megabytes_of_counts(opened, now.count_learn), lasting,
            )  # fmt: skip
            now.counts.run = Run(key, opened.title, now.count_learn, lasting=lasting)
        elif opened.kind == "gates":
            key = own.work(
                GATES, now.gate_learn, opened.title, whose(), own.gates[opened.key],
                megabytes=cached.megabytes_of_gates(opened, now.gate_learn),
                matrix=None if own.matrix is None else own.matrix[1],
            )  # fmt: skip
            now.gates.run = Run(key, opened.title, now.gate_learn)
        else:
            told, data = cached.lasting_of_people(opened, now.settings), own.datasets[opened.key]
            key = own.work(
                STUDY, now.settings, opened.title, whose(), data, engine, megabytes(opened), told
            )
            now.study.run = Run(key, opened.title, now.settings, lasting=told)
    except InputError as fault:
        tell_fault(str(fault))
        return False
    now.onward = key if onward else None
    return True


def megabytes(opened: Dataset) -> float:
    """Memory that learning from the open trajectories takes, about, with the settings as chosen."""
    return cached.megabytes(opened, state().settings)


def people_progress() -> None:
    """The last job that learns from people: at work, or how it ended."""
    now = state()
    run = now.study.run
    if run is None:
        return
    tell_address(run)
    # What is shown at work is taken by the run that shows its end: a warning stays there.
    if not panels.learner(job(run.key), run.lasting):
        take_finished_run()
    go_on_to_flows(now.study)
    if now.study.finished == run:
        go_on("pages/4_Flows.py", "See the flows")
        panels.tell_unsettled(cached.result(run.key))
        panels.tell_left_out(cached.result(run.key))


def ended_run(
    kind: str, *, preparing: str, stages: Mapping[str, str], settings: object
) -> Run[Any] | None:
    """The last job of a kind of data, at work or how it ended; its run if there is one to tell of.

    ``preparing`` says what comes before the first step, ``stages`` what each stage is called, and
    ``settings`` are those that the page would learn with now.
    """
    now = state()
    runs = now.learned[kind]
    run = runs.run
    if run is None:
        return None
    tell_address(run)
    kept = "The flows of the last finished run are still on the Flows page."
    working = panels.follow(
        job(run.key), kind, preparing=preparing, kept=kept if runs.finished is not None else "",
        describe=lambda step: plain(f"{stages.get(step.stage, step.stage)}: {step.message}"),
        lasting=run.lasting,
    )  # fmt: skip
    if working:
        return None
    take_finished_run()
    go_on_to_flows(runs)
    if runs.finished != run:
        return None
    if st.button(
        "See the flows", type="primary", icon=":material/arrow_forward:", key=f"to.{kind}.flows"
    ):
        now.show(kind)
        st.switch_page("pages/4_Flows.py")
    if now.dataset is not None and run.settings != settings:
        st.caption("The settings have changed since this run began; learn again to use them.")
    return run


def show_me_the_flows(opened: Dataset) -> None:
    """A button that learns with what the pages have at first, or were set to, and shows it.

    What comes with the app learned just so is shown at once.
    """
    if not st.button(SHOW, type="primary", icon=":material/moving:", key="show.flows"):
        return
    now = state()
    settings: Any = {"counts": now.count_learn, "gates": now.gate_learn}.get(
        opened.kind, now.settings
    )
    if opened.shipped is not None and cached.result(opened.shipped).settings == settings:
        open_shipped(opened.shipped)
    if start_learning(opened, onward=True):
        st.switch_page("pages/3_Learn.py")


def ways_on(opened: Dataset) -> None:
    """From data that was just read: to its flows at once, or step by step."""
    with st.container(horizontal=True, gap="small"):
        show_me_the_flows(opened)
        if opened.kind == "gates":  # the stations are the cells
            go_on("pages/3_Learn.py", "Next: learn", leads=False)
        else:
            go_on("pages/2_Grid.py", "Next: the grid", leads=False)


def go_on_to_flows(runs: Runs[Any]) -> None:
    """Show the flows of a run that has just ended well, if they were asked for when it began."""
    now = state()
    if runs.run is not None and now.onward == runs.run.key and runs.finished == runs.run:
        now.onward = None
        st.switch_page("pages/4_Flows.py")


def need_flows() -> Run[Any]:
    """The run whose flows are shown; without one the page offers ways to flows and ends."""
    finished = state().shown.finished
    if finished is None:
        _offer_flows(state().dataset)
        st.stop()
    return finished


def _offer_flows(opened: Dataset | None) -> None:
    """Of a sample, of the data that are open, or of those that are being learned from."""
    if opened is None:
        st.info(
            "There are no flows yet. Look at those of a sample, or open data of your own.",
            icon=":material/info:",
        )
        for key, run in SHIPPED_RUNS.items():
            if st.button(f"Flows of the sample: {run.title}", key=f"flows.{key}"):
                open_shipped(key)
        go_on("pages/1_Data.py", "Go to Data")
    elif _at_work():
        st.info(
            "The learner is at work: its flows appear here when it has finished.",
            icon=":material/info:",
        )
        go_on("pages/3_Learn.py", "Go to Learn")
    else:
        st.info(
            f"There are no flows of {plain(opened.title)} yet. The settings on Grid and Learn "
            "suit most data, and can be changed afterwards.",
            icon=":material/info:",
        )
        show_me_the_flows(opened)
        go_on("pages/3_Learn.py", "Go to Learn", leads=False)


def _at_work() -> bool:
    """Whether the learner of the open data, or of the data before, is running."""
    now = state()
    found = [job(runs.run.key) for runs in now.learned.values() if runs.run is not None]
    return any(each is not None and each.state in AT_WORK for each in found)
