"""Pieces of pages: each takes what to show and shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from agg_core.base.durations import duration
from agg_core.base.errors import InputError
from agg_core.learn.table import AUTO, LEARNERS, PAPERS
from agg_core.plotting import charts
from agg_core.space import LatticeGrid, RectangleGrid
from agg_core.space.grid import BaseGrid
from agg_core.store.jobs import AT_WORK, Job, JobState, JobStatus
from agg_core.study.lasting import Lasting
from agg_core.study.people import SOURCE_LABELS, Progress, StudyResult, reach_words
from agg_core.study.result import FlowResult
from agg_core.study.settings import LearnSettings
from ui import cached
from ui.at_work import do
from ui.forms import edit
from ui.shell import beside, plain, tell_fault, theme
from ui.state import state
from ui.window import is_narrow
from ui.workspace import jobs

__all__ = [
    "cells",
    "choose_learner",
    "cost",
    "follow",
    "learner",
    "left_to_do",
    "papers_learner",
    "settings_and_work",
    "tell_left_out",
    "tell_unsettled",
    "used",
    "words_of_learning",
]

STATIC = {"displayModeBar": False}


MANY_CELLS = 2_500
"""From here on the learner's tables, cells times cells, outgrow time and memory."""

MUCH_MEMORY = 8_000.0
"""Megabytes that many a laptop does not have to spare."""


def cells(grid: BaseGrid, n_people: int, megabytes: float, reach_m: float | None) -> None:
    """How many cells of what size, and a warning where they are too many for the learner.

    With a reach its tables hold the moves within it alone.
    """
    a_cell = f"{n_people / grid.n_cells:,.3g} people a cell on average."
    st.caption(f"{_sizes(grid)}; {a_cell}")
    fewer = "fewer rows and columns" if isinstance(grid, RectangleGrid) else "larger or fewer cells"
    is_many = grid.n_cells > MANY_CELLS
    if is_many and reach_m is None:
        st.warning(
            f"{grid.n_cells:,} cells are many: the learner keeps tables of cells times cells "
            f"and would take about {megabytes / 1000:.1f} GB of memory, and long. Say how far "
            f"people get in a step (page Learn, under More), or take {fewer}, together "
            f"{MANY_CELLS:,} cells or fewer.",
            icon=":material/warning:",
        )
    elif is_many and reach_m is not None and megabytes > MUCH_MEMORY:
        st.warning(
            f"Moves of up to {reach_m / 1000:g} km between {grid.n_cells:,} cells would take about "
            f"{megabytes / 1000:.1f} GB of memory. Take a shorter farthest move in a step (page "
            f"Learn, under More), or {fewer}.",
            icon=":material/warning:",
        )
    elif n_people < grid.n_cells:
        st.warning(
            "There are fewer people than cells, so most flows are of one person or none. Take "
            f"{fewer} to see what people do together.",
            icon=":material/warning:",
        )


def _sizes(grid: BaseGrid) -> str:
    named = f"{grid.n_cells:,} {'cell' if grid.n_cells == 1 else 'cells'}"
    if isinstance(grid, LatticeGrid):
        width_m, height_m = grid.cell_size_m
        coded = ", numbered from the south-west" if isinstance(grid, RectangleGrid) else ""
        return f"{named} of {width_m / 1000:.2f} km x {height_m / 1000:.2f} km{coded}"
    least, median, most = np.quantile(grid.areas_m2, [0, 0.5, 1]) / 1e6
    if most < 1.5 * least:
        return f"{named} of about {median:,.3g} km²"
    return f"{named} of {least:,.3g} to {most:,.3g} km², half of them up to {median:,.3g}"


def papers_learner() -> None:
    """One click to the paper's learner, and one back to the best."""
    chosen = st.session_state.get("learner.inference", state().learn.inference)
    back = chosen == PAPERS
    to, label = (AUTO, "Back to the best learner") if back else (
        PAPERS, f"Take the paper's learner, {LEARNERS[PAPERS].short}"
    )  # fmt: skip

    def take() -> None:
        st.session_state["learner.inference"] = to

    st.button(
        label, icon=":material/swap_horiz:", type="tertiary", key="learner.paper", on_click=take
    )


def choose_learner(learn: LearnSettings) -> LearnSettings:
    """The learner as a widget; replicates go when one is chosen that cannot be calibrated."""
    chosen = edit(replace(learn, calibrate=0), "learner", ["inference"], columns=1)
    taken = LEARNERS[chosen.inference]
    added = f" Added by the package {taken.distribution}." if taken.distribution else ""
    st.caption(plain(taken.about + added))
    if taken.calibrated:
        return replace(chosen, calibrate=learn.calibrate)
    return chosen


def settings_and_work() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Places for settings and, beside them, for the button and the progress of what it starts.

    In a narrow window, where one stands under the other, the button comes first.
    """
    if is_narrow():
        work, settings = beside([5, 4])
    else:
        settings, work = beside([4, 5], gap="large")
    return settings, work


def used(learn: LearnSettings, *names: str) -> list[str]:
    """Those of the settings that the chosen learner and observations have a use for."""
    return [name for name in names if name not in learn.unused]


def cost(lasting: Lasting | None, megabytes: float | None = None) -> None:
    """What the learner will take, before it starts; no time where settings do not suit the data."""
    takes = [] if lasting is None else [f"about {lasting.words} on this machine"]
    takes += [] if megabytes is None else [f"{megabytes / 1000:.1f} GB of memory"]
    if takes:
        st.caption(
            f"Takes {', '.join(takes)}." + ("" if cached.learners_are_ready() else f" {NOT_READY}")
        )


NOT_READY = (
    "The learners are not prepared for this machine yet: the first run of each takes up to a "
    "minute more. The command agg-core warm prepares all of them at once."
)

WORDS_OF_LEARNING = """
- **Window.** People are followed for T steps from each time of day; each time has flows of its own.
- **Group size, M.** So many people share one set of counts. M = 1 hides nothing; the larger M, the
  less the counts tell of who went where, and the more of a flow is a guess.
- **Noise.** How wrong a place may be: the chance that a person is counted in a cell beside their
  own, and by how many metres a position is off. Both are added to what the file holds. The learner
  finds by itself how much noise there is, that of the file included: the chance where people are
  counted in cells, the metres where positions are observed.
- **Prior.** A pull towards "most stay, others go near or where most go", as strong as so many
  people in each cell. It steadies cells with few people, and is all you see where the data say
  nothing. How strong it is to be is found by predicting groups that are kept aside.

**When not to trust the result.** Flows of a few people; cells that few people leave; groups so
large that every cell is always full; CFB at any M above 1, which invents movement; a learner that
was ended by its limit of iterations while much still changed (how much is said when it has ended).
The Flows page shows single people beside the groups: with counts from the street there is no such
check.
"""


def words_of_learning(*, open_at_first: bool) -> None:
    """What a newcomer needs to know before choosing, and when not to trust what comes out."""
    with st.expander(
        "What M, noise and the prior mean", expanded=open_at_first and not is_narrow()
    ):
        st.markdown(WORDS_OF_LEARNING)


LOOKS_S: Mapping[JobState, float] = {"running": 1.0, "queued": 3.0}
"""How often a job is looked at. Whose turn is next is a question to all jobs of the server."""


def follow(
    job: Job[Any] | None, key: str, *, preparing: str, kept: str,
    describe: Callable[[Any], str], beneath: Callable[[], None] | None = None,
    lasting: Lasting | None = None,
) -> bool:  # fmt: skip
    """Live progress of a job, with cancel; looks at the files, never blocks.

    Returns whether it is shown at work, or waiting: the page runs anew as soon as it has ended.

    ``describe`` says a step of the work in words, ``kept`` what a cancelled job leaves as it was;
    ``beneath`` shows more with each look. ``lasting`` is what was told before it began.
    """
    if job is None:
        st.info(
            "The server does not keep this work any more; flows that were finished are on the "
            "page Runs.",
            icon=":material/info:",
        )
        return False
    first = job.state
    at_work = first in AT_WORK

    @st.fragment(run_every=LOOKS_S.get(first))
    def show() -> None:
        if jobs().find(job.id) is None:
            st.rerun()  # somebody has deleted it meanwhile
        with suppress(InputError):  # or it has been deleted since
            jobs().look(job.id)
        status = job.status()
        if at_work and status.state != first:
            st.rerun()  # it has ended, or its turn has come: then it is looked at more often
        if status.state in AT_WORK:
            if status.state == "queued":
                _waiting(jobs().ahead(job.id))
            else:
                _running(status, preparing, describe, lasting)
            if st.button("Cancel", icon=":material/stop_circle:", key=f"{key}.cancel"):
                do(jobs().cancel, job.id)
        elif status.state == "interrupted":
            _interrupted(job, status, key)
        elif status.state == "failed":
            tell_fault(status.message)
        elif status.state == "cancelled":
            st.warning(f"Cancelled. {kept or 'Nothing of it is kept.'}")
        else:
            st.success(f"Done in {duration(status.elapsed_s)}.", icon=":material/check_circle:")
        if beneath is not None:
            beneath()

    show()
    return at_work


def _waiting(ahead: int) -> None:
    first = "It is the next to begin" if not ahead else f"Waiting: {ahead:,} before it"
    st.info(
        f"{first}. As much runs on this server as may; it begins by itself, whether or not this "
        "page is open.",
        icon=":material/hourglass_empty:",
    )


def _interrupted(job: Job[Any], status: JobStatus[Any], key: str) -> None:
    """What to do with work whose process has died."""
    share = "" if status.progress is None else f" when {min(status.progress.share, 1):.0%} was done"
    st.warning(
        f"This work was interrupted{share}: its process ended before it had a result, with the "
        "machine, or for want of memory or of room on the disk. It can go on.",
        icon=":material/pause_circle:",
    )
    with st.container(horizontal=True, gap="small"):
        if st.button("Go on", type="primary", icon=":material/resume:", key=f"{key}.resume"):
            do(jobs().resume, job.id)
        if st.button("Give it up", icon=":material/stop_circle:", key=f"{key}.drop"):
            do(jobs().cancel, job.id)


EARLY = 0.1
"""Share of all work below which its pace says less than what was told before it began."""


def _running(
    status: JobStatus[Any],
    preparing: str,
    describe: Callable[[Any], str],
    lasting: Lasting | None,
) -> None:
    if status.progress is None:
        st.progress(0.0, preparing)
        return
    share = min(status.progress.share, 1.0)
    st.progress(share, describe(status.progress) + left_to_do(share, status.remaining_s, lasting))


def left_to_do(share: float, remaining_s: float | None, lasting: Lasting | None) -> str:
    """How long it still takes, or in all where little is done; nothing where that is not known."""
    if lasting is not None and share < EARLY:
        return f", about {lasting.words} in all"
    return "" if remaining_s is None else f", about {duration(remaining_s)} left"


def learner(job: Job[Progress] | None, lasting: Lasting | None = None) -> bool:
    """Live progress of a learner and its curves; whether it is shown at work."""
    kept = "The flows of the last finished run are still on the Flows page."
    return follow(
        job, "learner", preparing="Preparing: gridding, noise, groups …",
        kept=kept if state().study.finished is not None else "",
        describe=_step_of_learning,
        beneath=None if job is None else lambda: _energies(job), lasting=lasting,
    )  # fmt: skip


def tell_unsettled(result: FlowResult) -> None:
    """Say what more iterations may change, where the limit ended the learning from groups."""
    assert isinstance(result, StudyResult), "no other is learned from groups"
    open_ends = {at.time: at.estimate.unsettled for at in result.by_time if at.estimate.unsettled}
    if open_ends:
        shares = ", ".join(f"{time}: {share:.1%}" for time, share in open_ends.items())
        st.caption(
            f"The limit of iterations ended it before it stood still. More of them (under More) "
            f"may change where so many of the people go: {plain(shares)}."
        )


def tell_left_out(result: FlowResult) -> None:
    """Say how many sequences are left out as somebody moved farther than the farthest move."""
    if isinstance(result, StudyResult):
        learn = result.settings.learn
        said = reach_words(result.beyond_reach, result.n_sequences, learn.reach_m)
        if said:
            st.warning(said, icon=":material/warning:")


def _step_of_learning(step: Progress) -> str:
    if step.stage == "doubting":
        return f"{step.time}: how sure flows are, simulation {step.iteration} of {step.n_iter}"
    what = {
        "noise": f"learning the noise, {step.iteration} of at most {step.n_iter}",
        "choosing": f"choosing the prior, {step.iteration} of {step.n_iter}",
        "learning": f"iteration {step.iteration} of at most {step.n_iter}",
    }[step.stage]
    fit = f"fit {step.fit + 1} of {step.n_fits}"
    return f"{step.time}, {SOURCE_LABELS[step.source].lower()}: {what}, {fit}"


def _energies(job: Job[Progress]) -> None:
    history = job.history()
    if not len(history):
        return
    time = history["time"].iloc[-1]
    lines = {
        SOURCE_LABELS[source]: rows["energy"].tolist()
        for source, rows in history.loc[history["time"] == time].groupby("source", sort=False)
    }
    with st.expander("How the misfit falls", icon=":material/trending_down:"):
        st.plotly_chart(
            charts.free_energy_chart(lines, theme()), theme=None, config=STATIC,
            key="learner.energy",
            alt=f"Free energy of the learners ({time}) against the iteration",
        )  # fmt: skip
        st.caption(
            f"Free energy ({time}) is the misfit that each learner makes small. Its curve falls "
            "until the model fits its own observations, and wavers where people are sampled. A "
            "flat end is a good end. The two curves are of different observations: do not compare "
            "them."
        )
