"""Pieces of the page Flows beside the maps: figures, tables, and how the flows came about."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from agg_core.base.options import options_of
from agg_core.counts.pair_tables import MOST_ENTRIES
from agg_core.evidence.limited import SharedResult
from agg_core.learn.table import LEARNERS
from agg_core.study.counts import CountStudy
from agg_core.study.gates import GateStudy
from agg_core.study.people import AllowedNoise, Fit, StudyResult
from agg_core.study.result import ESTIMATE, OUTSIDE_NAME, WHOLE_DAY, FlowResult
from agg_core.study.settings import LearnSettings
from agg_core.tables.flows import FlowComparison, counts_of
from ui.counts_learn import alike, not_settled, who_learned
from ui.flow_view import FlowView
from ui.gates_learn import how_it_went
from ui.panels import tell_left_out
from ui.shell import plain

__all__ = ["about", "comparison", "distrust", "numbers", "tell_limit", "unsettled"]

INVENTED = 1.5
"""From this ratio of total movement on, a sentence warns."""

MOST_ROWS = 1_000


def comparison(figures: FlowComparison, view: FlowView, result: FlowResult) -> None:
    """The figures of an estimate against a truth, over the whole window and map."""
    threshold, truth = view.threshold, result.source_label(str(view.truth))
    st.markdown(f"**Learned from groups, against: {truth}**, at {view.time}")
    tiles = st.container(horizontal=True, gap="large")
    for label, value, about in (
        ("Common part", figures.cpc, "Share of movement that both have (CPC): 1 is perfect."),
        ("Correlation", figures.correlation, "Over all pairs of different cells."),
        (
            "Precision", figures.precision,
            f"Of the arrows above {threshold:g} that are drawn, the share that is true.",
        ),
        (
            "Recall", figures.recall,
            f"Of the true arrows above {threshold:g}, the share found.",
        ),
        (
            "Total movement", figures.total_ratio,
            "Estimated moves over true moves: above 1 movement is invented.",
        ),
    ):  # fmt: skip
        said = "–" if value != value else f"{value:.3f}"  # noqa: PLR0124  # nan has no meaning
        tiles.metric(label, said, help=about, width=170)


def distrust(figures: FlowComparison) -> None:
    """Say it aloud where the estimate invents much movement."""
    if figures.total_ratio > INVENTED:
        st.warning(
            f"Learned from groups, there is {figures.total_ratio:.1f} times as much movement as "
            "there was: do not trust single arrows here. Smaller groups or more people help.",
            icon=":material/warning:",
        )


def unsettled(result: FlowResult) -> None:
    """Say it aloud where draws of what happened have not mixed."""
    said = not_settled(result) if isinstance(result, CountStudy) else ""
    if said:
        st.warning(said, icon=":material/warning:")


def tell_limit(result: FlowResult) -> None:
    """What is withheld of a run that another shares, and that figures of all flows are not told."""
    if isinstance(result, SharedResult):
        st.info(
            f"{plain(result.limit_words)} Whoever shares this run sees all of it; here there are "
            "neither single days nor figures of all flows together.",
            icon=":material/shield_person:",
        )


def numbers(
    result: FlowResult, tables: Mapping[str, pd.DataFrame], view: FlowView, cells: Sequence[str]
) -> None:
    """The flows as a table, the largest first, with their intervals where there are some.

    Those of the estimate, and how many people usually go that way, or truly did, if the tables of
    all sources have that beside them. ``cells`` are the names of the cells.
    """
    names = dict(enumerate([*cells, OUTSIDE_NAME]))
    flows = tables[ESTIMATE]
    if view.resolved and result.has_intervals:
        flows = flows.loc[flows["resolved"]]
    moves = flows.loc[flows["origin"] != flows["dest"]]
    if view.cells:
        from_them, to_them = moves["origin"].isin(view.cells), moves["dest"].isin(view.cells)
        ways = {"in": to_them & ~from_them, "out": from_them & ~to_them}
        moves = moves.loc[ways.get(view.direction, to_them | from_them)]
    moves = moves.head(MOST_ROWS)
    columns: dict[str, Any] = {
        "From": moves["origin"].map(names),
        "To": moves["dest"].map(names),
        "People": moves["count"],
    }
    if result.has_intervals:
        columns |= {
            "Low": moves["low"],
            "High": moves["high"],
            "Resolved": moves["resolved"].astype(bool),
        }
    beside = "Usually"
    if view.truth is not None:
        if view.truth in result.truths:
            name = result.source_name(view.truth)
            beside = name[0].upper() + name[1:]
        columns[beside] = counts_of(tables[view.truth], moves["origin"], moves["dest"])
    st.dataframe(
        pd.DataFrame(columns), hide_index=True, key="flows.table", height=320, width="stretch",
        column_config={
            name: st.column_config.NumberColumn(format=_people_format(moves["count"].max()))
            for name in ("People", "Low", "High", beside)
        },
    )  # fmt: skip
    sure = (
        "the ends of a 90 % interval found by simulating such data and learning from them again"
        if result.has_intervals
        else "no intervals, since no worlds were simulated: how sure they are is not known"
    )
    if isinstance(result, GateStudy) and result.has_intervals:
        sure = (
            "the ends of a 90 % interval over patterns that may be as well, each scaled to every "
            "day's entries and exits"
        )
    elif result.chosen_days and result.has_intervals:
        sure = (
            "the ends of a 90 % interval from errors of flows of like size on as many days of "
            "simulated worlds"
        )
    usual = ""
    if view.truth is not None and view.truth not in result.truths:
        usual = " Usually: by the learned chances of moves alone."
    days = " on an average day" if WHOLE_DAY in result.times else " of all days together"
    days = "" if result.chosen_days else days
    st.caption(
        f"People per {result.step_name}{days}: "
        f"{result.source_label(ESTIMATE).lower()}, with {sure}.{usual} "
        f"The {MOST_ROWS:,} largest at most."
    )


def _people_format(largest: float) -> str:
    """How people are written so that the largest has three figures, one decimal at the least."""
    decimals = 2 - math.floor(math.log10(largest)) if largest > 0 else 1
    return f"%.{min(max(decimals, 1), 6)}f"


def about(result: FlowResult, time: str, title: str) -> None:
    """How the shown flows came about, and when not to trust them."""
    tell = ABOUT.get(result.kind)
    if tell is None:
        st.caption(plain(f"{title}: {result.basis}. {result.evidence}"))
    else:
        tell(result, time, title)


TOO_MANY_DAYS = (
    f"Days cannot be chosen: what happened on single ones is more than {MOST_ENTRIES:,} flows, "
    "which is too much to keep; larger cells have fewer."
)


def _about_counts(study: CountStudy, time: str, title: str) -> None:  # noqa: ARG001  # of all times
    st.caption(
        f"{plain(title)}: {study.basis}, {who_learned(study)}. "
        f"{plain(study.identifiability.sentence)}"
    )
    pairs = alike(study.identifiability, study.cells)
    if pairs:
        st.caption(pairs)
    if study.chosen_days:
        sums = "" if study.times_of_draws else " Sums of chosen days have no interval in this run."
        st.caption(
            "What happened is that of the chosen days, a mean over their steps; what usually "
            f"happens is that of an average day, as always.{sums}"
        )
    elif study.happened is not None and study.happened.by_day is not None and not study.days:
        st.caption(TOO_MANY_DAYS)
    if study.happened is None:
        st.caption(
            "Shown is what usually happens: this run was saved before what happened on the days "
            "themselves was found. Learn again to see that, too."
        )
        return
    with st.expander("What happened, and what usually happens"):
        st.markdown(f"{WORDS_OF_SOURCES} {HOW_FOUND.get(study.happened.method, '')}")


def _about_gates(study: GateStudy, time: str, title: str) -> None:  # noqa: ARG001  # of all times
    ends = "entry" if study.settings.hour_of == "entry" else "exit"
    st.caption(
        f"{plain(title)}: {study.basis}. A trip counts at the time of its {ends}. Nothing stands "
        "beside these flows, since nobody was followed: on the page Evidence they can be held "
        "against a table of trips. As shade of cells, people there are those who enter."
    )
    if study.chosen_days:
        st.caption(
            "Flows are those of the chosen days, a mean over their steps. Of each day they add up "
            "to its entries and exits."
        )
    elif study.happened.by_day is not None and not study.days:
        st.caption(TOO_MANY_DAYS)
    with st.expander("How these flows were found, and how sure they are"):
        how_it_went(study)
        st.markdown(WORDS_OF_GATES)


WORDS_OF_GATES = """
Entries and exits of an hour can be met by very many tables of pairs. Which of them is likely is
told by how the counts stray: on a day on which more people than usual enter at one station, more
than usual leave where these people go. So **sums that the gates fix are sure**: all who enter or
leave a station, on every day. **Single pairs are not**: how far they stray from the pattern is told
by few counts, so their intervals rest on the spread that was set on the page Learn. Hold the flows
against trips that are known, wherever there are some.
"""

WORDS_OF_SOURCES = """
**What usually happens** are the learned chances of moves, times the people who were there: flows to
expect on any such day. **What happened** are flows on the very days that were counted, as they are
expected given the counts before *and after* each step: whoever turns up in a cell must have come
from somewhere. So they meet both counts, and a day that was unlike others shows. Neither was seen:
both are estimates from counts alone, each with intervals of its own. Take what usually happens for
plans and forecasts, and what happened to look back; where the two differ much, these days were
unlike what is usual at that time, or the counts err.
"""

HOW_FOUND = {
    "drawn": "Who went where was drawn at random among all ways that meet both counts, by their "
    "chances, and averaged.",
    "normal": "Cells hold too many people to draw who went where, so flows were taken for normal.",
}
"""How what happened was found."""


def _about_people(result: StudyResult, time: str, title: str) -> None:
    learn = result.settings.learn
    fits = result.at(time)
    st.caption(
        f"{plain(title)}: {fits.n_sequences:,} sequences of {result.settings.window.length} steps "
        f"in {fits.n_groups:,} groups. Learned from groups in {_ending(fits.estimate)}, from "
        f"single people in {_ending(fits.single)}. Learner: {_learner(learn, fits.estimate)}; "
        f"start: {_label(learn, 'start')}. {_noise(result)}, seed {learn.seed}."
        + ("" if learn.reach_m is None else f" Moves of up to {learn.reach_m / 1000:g} km a step.")
        + "".join(
            f" Windows left out at all times of day: {n:,} ({cause})."
            for cause, n in result.dropped.items()
        )
    )
    if result.chosen_days:
        st.caption(
            f"Shown is what happened on {result.days_words}, as the groups of these days tell it; "
            f"single people and counted ones are of the same days{result.no_sums}. Steps are not "
            "told apart there."
        )
    elif result.by_day is not None and not result.days:
        st.caption(TOO_MANY_DAYS)
    tell_left_out(result)
    if result.noise is not None and result.noise.told:
        st.warning(plain(result.noise.told), icon=":material/warning:")
    with st.expander("What these maps mean, and when not to trust them"):
        st.markdown(
            "An arrow is the number of people who go from one cell to another in one time step, "
            "as a mean over the steps of the window unless a step is chosen. All maps of a run "
            "share one scale of colour and width.\n\n"
            "The learner sees only how many people of a group are in each cell. With small "
            "groups that is nearly as good as following people; with growing M the same counts "
            "can come from ever more different movements, and single arrows grow unsure, most of "
            "all near the threshold. The paper's learner moreover fills the gap with movement "
            "that never was: **total movement** above 1 says how much. The best learner keeps it "
            "near 1.\n\n"
            "One chain of chances holds for the whole window, so the steps of an estimate differ "
            "only by where people are; the counted ones may differ by more."
        )


def _learner(learn: LearnSettings, fit: Fit) -> str:
    """Who learned, why if it was chosen by itself, and with what help."""
    taken = LEARNERS[fit.learner]
    said = f"{taken.label}, since {fit.choice}" if fit.choice else taken.label
    if fit.prior is not None:
        since = f", since {fit.prior_choice}" if fit.prior_choice else ""
        said += f"; prior of {fit.prior:g} people per cell{since}"
    if learn.calibrate and taken.calibrated:
        said += f", calibrated on {learn.calibrate} simulated replicates"
    return said


def _label(settings: LearnSettings, name: str) -> str:
    """The chosen value of a setting as the form words it."""
    option = options_of(settings)[name]
    labels: dict[str, str] = dict(zip(option.choices, option.choice_labels, strict=True))
    return labels[getattr(settings, name)]


def _noise(result: StudyResult) -> str:
    """The noise that was added, and what was allowed for."""
    learn, noise = result.settings.learn, result.noise
    if learn.observed == "positions":
        added = f"Positions with noise of {learn.sigma_m:g} m added"
    else:
        added = (
            f"Chance of being counted next door {learn.misclassify:g}, position noise "
            f"{learn.sigma_m:g} m"
        )
    if noise is None:
        return added
    if not noise.learned:
        return f"{added}; {_amount(noise, 'estimate')} was allowed for"
    alone = f" (from single people {_amount(noise, 'single')})" if learn.group_size > 1 else ""
    return f"{added}; {_amount(noise, 'estimate')} was learned and allowed for{alone}"


def _amount(noise: AllowedNoise, source: str) -> str:
    amount = noise.of(source)
    return f"noise of {amount:,.0f} m" if noise.unit == "metres" else f"a chance of {amount:.3g}"


def _ending(fit: Fit) -> str:
    said = f"{fit.iterations} iterations, " + (
        "then it stood still"
        if fit.converged
        else f"the limit: more may change where {fit.unsettled:.1%} of the people go"
    )
    if fit.n_unconverged:
        said += f" ({fit.n_unconverged:,} groups did not come to an agreement with their counts)"
    return said


ABOUT: Mapping[str, Callable[[Any, str, str], None]] = {
    StudyResult.kind: _about_people,
    CountStudy.kind: _about_counts,
    GateStudy.kind: _about_gates,
}
"""What tells how flows of a kind came about."""
