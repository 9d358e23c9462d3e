"""Pieces of the page Flows: controls, maps that answer a click, figures, and the address."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st

from agg_core.base.options import options_of
from agg_core.exports.page import html_page
from agg_core.learn.table import CALIBRATED
from agg_core.plotting.arrows import FlowSelection
from agg_core.plotting.charts import arrow_legend, difference_legend, heat_legend
from agg_core.plotting.flow_maps import (
    SHADES,
    arrow_half_widths_px,
    difference_deck,
    drawn_flows,
    flow_deck,
)
from agg_core.plotting.theme import SHADE_ALPHA
from agg_core.space.grid import Grid
from agg_core.study.people import SOURCES, Fit, StudyResult
from agg_core.study.settings import LearnSettings
from agg_core.tables.flows import (
    FlowComparison,
    cell_totals,
    flow_differences,
    net_flows,
    partners_of_cell,
)
from ui import cached
from ui.address import params_of, set_address, take_away, tell_note
from ui.flow_view import DIRECTIONS, MOST_ARROWS, SHOWS, FlowView, step_label, threshold_held
from ui.linked import linked
from ui.panels import SOURCE_NAMES, STATIC
from ui.paper import paper
from ui.scene import basemap_choice, map_size_px, scene
from ui.shell import plain, theme
from ui.state import Run
from ui.views import KEY, held_view, hold
from ui.window import is_narrow

__all__ = [
    "DIRECTION_LABELS",
    "LEGEND_ALT",
    "SHADE_LABELS",
    "cell_clicked",
    "clicked_cell",
    "show",
]

STAYS: Literal["session"] = "session"
"""Controls keep what was chosen while they are not shown."""

PLAYING, MOVED_ON = "flows.playing", "flows.moved_on"
PLAY_S = 2.0
INVENTED = 1.5
"""From this ratio of total movement on, a sentence warns."""

LEGEND_ALT = "Width and colour of the arrows by people per step"
SHOW_LABELS = {"both": "Side by side", "difference": "Difference"}
DIRECTION_LABELS = {"both": "In and out", "in": "In", "out": "Out"}
THRESHOLD_LABELS = {
    "threshold": "Arrows above",
    "difference_threshold": "Differences above",
    "cell_threshold": "Block's arrows above",
}
SHADE_LABELS = {
    "people": "people there",
    "incoming": "coming in",
    "outgoing": "going out",
    "stays": "staying",
    "change": "in minus out",
}

# ------------------------------------------------------------------------------------ page


@dataclass(frozen=True)
class _Moment:
    """What the maps of one moment are drawn from."""

    grid: Grid
    tables: Mapping[str, pd.DataFrame]
    names: Mapping[str, str]
    brief: Mapping[str, str]
    """Names for the text under the pointer and for tables, where room is small."""
    unit: str


def show(run: Run[Any]) -> None:
    """Everything about a run: controls, maps, figures."""
    playing = bool(st.session_state.get(PLAYING))
    st.fragment(_show, run_every=PLAY_S if playing else None)(run)


def _show(run: Run[Any]) -> None:
    result = cached.result(run.key)
    playing = bool(st.session_state.get(PLAYING))
    view = held_view(result)
    hold(_moved_on(view, result) if playing else view)
    view = _controls(result)
    tell_note(view)
    params = params_of(run, view.to_params(result))
    if not playing:
        set_address(params)
    figures = cached.comparison(run.key, view.anchor, "estimate", view.truth, view.threshold)
    _distrust(figures)
    moment = _moment(result, view)
    if view.show == "difference":
        _difference(run.key, moment, view)
    else:
        _side_by_side(run.key, moment, view)
    _legends(run.key, moment, view)
    if view.cell is not None:
        _block(moment, view, view.cell)
    _comparison(figures, view, SOURCE_NAMES[view.truth])
    take_away(run, result, view.anchor, params, partial(_page, run, result, view))
    paper(run, view.truth, view.threshold, view.top_n)
    _about(result, view.anchor, run.title)


def _moved_on(view: FlowView, result: StudyResult) -> FlowView:
    """The next moment, unless it is a click that asked for the maps before their time."""
    now = time.monotonic()
    if now - st.session_state.get(MOVED_ON, 0.0) < 0.8 * PLAY_S:
        return view
    st.session_state[MOVED_ON] = now
    return view.next_moment(result)


def _moment(result: StudyResult, view: FlowView) -> _Moment:
    window, group_size = result.settings.window, result.settings.learn.group_size
    return _Moment(
        grid=result.settings.grid.make(),
        tables={
            source: result.table(view.anchor, source, view.step)
            for source in ("estimate", view.truth)
        },
        names={**SOURCE_NAMES, "estimate": f"{SOURCE_NAMES['estimate']}, M = {group_size}"},
        brief={"estimate": f"M = {group_size}", "single": "M = 1", "counted": "Counted"},
        unit=f"per {window.step_minutes}-minute step",
    )


# -------------------------------------------------------------------------------- controls


def _controls(result: StudyResult) -> FlowView:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        _choose_moment(result)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        _choose_arrows(result.settings.grid.make())
    return held_view(result)


def _choose_moment(result: StudyResult) -> None:
    """When, and what stands beside what."""
    anchors = [a.anchor for a in result.anchors]
    st.segmented_control(
        "Time of day", anchors, required=True, key=f"{KEY}anchor", persist_state=STAYS,
        width="content",
    )  # fmt: skip
    if len(anchors) > 1 or st.session_state[f"{KEY}step"] is not None:
        _play_button()
    anchor = str(st.session_state[f"{KEY}anchor"])
    st.selectbox(
        "Step", range(result.n_steps), key=f"{KEY}step", persist_state=STAYS, width=170, index=None,
        placeholder="mean of all", format_func=lambda step: step_label(result, anchor, step),
    )  # fmt: skip
    st.segmented_control(
        "Show", SHOWS, format_func=SHOW_LABELS.__getitem__, required=True,
        key=f"{KEY}show", persist_state=STAYS, width="content",
    )  # fmt: skip
    st.selectbox(
        "Beside the estimate", SOURCES[1:], format_func=SOURCE_NAMES.__getitem__,
        key=f"{KEY}truth", persist_state=STAYS, width=210,
    )  # fmt: skip


def _choose_arrows(grid: Grid) -> None:
    """Which flows are arrows, and what else the maps show."""
    whole = st.session_state[f"{KEY}cell"] is None
    threshold = threshold_held(st.session_state[f"{KEY}show"], st.session_state[f"{KEY}cell"])
    st.number_input(
        THRESHOLD_LABELS[threshold], min_value=0.0, format="%g", width=170,
        step=5.0 if threshold == "threshold" else 1.0, help="People per step.",
        key=KEY + threshold, persist_state=STAYS,
    )  # fmt: skip
    st.number_input(
        "At most so many", min_value=1, max_value=MOST_ARROWS, step=50,
        key=f"{KEY}top_n", persist_state=STAYS, width=150, help="The largest are drawn.",
    )  # fmt: skip
    st.selectbox(
        "Block", range(grid.n_cells), key=f"{KEY}cell", persist_state=STAYS, width=210, index=None,
        placeholder="whole map", format_func=grid.labels.__getitem__,
        help="Or click a block or an arrow on a map; click the block again for the whole map.",
    )  # fmt: skip
    if not whole:
        st.segmented_control(
            "Its flows", DIRECTIONS, format_func=DIRECTION_LABELS.__getitem__, required=True,
            key=f"{KEY}direction", persist_state=STAYS, width="content",
        )  # fmt: skip
    if st.session_state[f"{KEY}show"] != "difference":
        st.selectbox(
            "Shade", SHADES, format_func=SHADE_LABELS.__getitem__, width=180, index=None,
            key=f"{KEY}shade", persist_state=STAYS, placeholder="none",
            help="What the shade of a block stands for.",
        )  # fmt: skip
    with st.popover("More", icon=":material/tune:", key="flows.more"):
        st.toggle(
            "Net flows", key=f"{KEY}net", persist_state=STAYS,
            help="Of each pair of blocks only the surplus of one way over the other.",
        )  # fmt: skip
        st.toggle(
            "Begin close to the chosen block",
            key=f"{KEY}close",
            persist_state=STAYS,
            disabled=whole,
        )
        basemap_choice()


def _play_button() -> None:
    """A button rather than a switch: what it does next stands on it."""
    playing = bool(st.session_state.get(PLAYING))

    def turn() -> None:
        st.session_state[PLAYING] = not playing
        st.session_state[MOVED_ON] = time.monotonic()

    pressed = st.button(
        "Pause" if playing else "Play", key="flows.play", on_click=turn,
        icon=":material/pause:" if playing else ":material/play_arrow:",
        help=f"Goes through the times of day, one every {PLAY_S:g} seconds.",
    )  # fmt: skip
    if pressed:
        st.rerun()


# ------------------------------------------------------------------------------------ maps


Spot = tuple[str, int]
"""What a map says is selected: the layer ("cells", "arrows") and the number within it."""


def clicked_cell(
    now: Spot | None, before: Spot | None, ends: tuple[int, int] | None, chosen: int | None
) -> int | None:
    """The block to show after a map has spoken: what it says ``now`` and what it said ``before``.

    A map speaks when it is clicked, and repeats itself when it is drawn anew: then all stays. A
    second click on the same block takes its selection back and tells nothing else. A click on the
    ``chosen`` block gives the whole map, one on an arrow its far end as seen from there (``ends``
    are its origin and dest).
    """
    if now == before:
        return chosen
    if now is None:
        if before is None or before[0] != "cells":
            return chosen
        return None if before[1] == chosen else before[1]
    if now[0] == "arrows" and ends is not None:
        return ends[1] if ends[0] == chosen else ends[0]
    return None if now[1] == chosen else now[1]


def cell_clicked(map_key: str, cell_key: str) -> None:
    """Callback of a map: keep the cell to show, as `clicked_cell` says, under a key."""
    selection = st.session_state[map_key]["selection"]
    now = next(
        ((layer, int(numbers[0])) for layer, numbers in selection["indices"].items() if numbers),
        None,
    )
    if now is not None and now[0] == "cells":
        # A cell of several parts stands on the map as often.
        now = ("cells", int(selection["objects"]["cells"][0]["cell"]))
    arrows = selection["objects"].get("arrows")
    ends = (int(arrows[0]["origin"]), int(arrows[0]["dest"])) if arrows else None
    memory = f"flows.clicked.{map_key}"
    st.session_state[cell_key] = clicked_cell(
        now, st.session_state.get(memory), ends, st.session_state[cell_key]
    )
    st.session_state[memory] = now


def _draw(deck: Any, height: int, key: str, alt: str) -> None:
    st.pydeck_chart(
        deck, height=height, key=key, alt=alt, on_select=partial(cell_clicked, key, f"{KEY}cell")
    )


def _map_px(moment: _Moment, view: FlowView) -> tuple[int, int]:
    alone = view.show == "difference" or is_narrow()
    return map_size_px(moment.grid.bounds, 1 if alone else 2)


def _side_by_side(run: str, moment: _Moment, view: FlowView) -> None:
    vmax, shade_vmax = cached.flow_scale(run, view.truth), None
    if view.shade is not None:
        shade_vmax = cached.total_scale(run, view.truth, view.shade)
    pair = (("estimate", view.truth), (view.truth, "estimate"))
    size = _map_px(moment, view)
    places = [st.container(), st.container()] if is_narrow() else st.columns(2, gap="small")
    for place, (source, other) in zip(places, pair, strict=True):
        with place:
            name = moment.names[source]
            st.header(name, anchor=False)
            deck = flow_deck(
                moment.grid, moment.tables[source], vmax=vmax, threshold=view.least,
                top_n=view.top_n, scene=scene(size, view.focus(moment.grid)),
                shade=view.shade, shade_vmax=shade_vmax, reference=moment.tables[other],
                names=(moment.brief[source], moment.brief[other]), net=view.net, selected=view.cell,
                direction=view.direction,
            )  # fmt: skip
            _draw(deck, size[1], f"flows.{source}", f"Map of flows: {name}")
            drawn = drawn_flows(
                moment.grid, moment.tables[source], view.least, view.top_n, net=view.net,
                selected=view.cell, direction=view.direction,
            )  # fmt: skip
            st.caption(_drawn(drawn, view, moment.unit))
    linked([f"flows.{source}" for source, _ in pair])


def _difference(run: str, moment: _Moment, view: FlowView) -> None:
    name, other = moment.names["estimate"], moment.names[view.truth]
    st.header(f"{name}, minus: {other}", anchor=False)
    estimate, truth = moment.tables["estimate"], moment.tables[view.truth]
    size = _map_px(moment, view)
    deck = difference_deck(
        moment.grid, estimate, truth, vmax=cached.difference_scale(run, view.truth),
        threshold=view.least, top_n=view.top_n, scene=scene(size, view.focus(moment.grid)),
        names=(moment.brief["estimate"], moment.brief[view.truth]), net=view.net,
        selected=view.cell, direction=view.direction,
    )  # fmt: skip
    _draw(deck, size[1], "flows.difference", f"Map of differences: {name} minus {other}")
    pair = (net_flows(estimate), net_flows(truth)) if view.net else (estimate, truth)
    drawn = drawn_flows(
        moment.grid, flow_differences(*pair), view.least, view.top_n,
        selected=view.cell, direction=view.direction,
    )  # fmt: skip
    if drawn.n_above == 0:
        st.caption(
            f"No flow differs by more than {view.least:g} people {moment.unit}: lower the "
            "threshold to see arrows."
        )
        return
    st.caption(
        "Orange: the estimate has more people on this way; blue: it has fewer. "
        f"{drawn.n_above:,} flows differ by more than {view.least:g} people {moment.unit}"
        + (f"; the {drawn.n_shown:,} largest are drawn." if drawn.n_shown < drawn.n_above else ".")
    )


def _legends(run: str, moment: _Moment, view: FlowView) -> None:
    with st.container(horizontal=True, gap="large"):
        if view.show == "difference":
            figure = difference_legend(cached.difference_scale(run, view.truth), theme())
            st.plotly_chart(
                figure, width="content", config=STATIC, key="flows.legend", alt=LEGEND_ALT
            )
            return
        drawn_in = scene(_map_px(moment, view), view.focus(moment.grid))
        widths = arrow_half_widths_px(moment.grid, drawn_in)
        figure = arrow_legend(
            cached.flow_scale(run, view.truth), view.least, theme(), half_widths_px=widths
        )
        st.plotly_chart(figure, width="content", config=STATIC, key="flows.legend", alt=LEGEND_ALT)
        if view.shade is not None:
            top = cached.total_scale(run, view.truth, view.shade)
            title = f"Shade of a block: {SHADE_LABELS[view.shade]}, people per step"
            legend = difference_legend if view.shade == "change" else heat_legend
            figure = legend(top, theme(), title=title, alpha=SHADE_ALPHA)
            st.plotly_chart(figure, width="content", config=STATIC, key="flows.shades", alt=title)


def _drawn(drawn: FlowSelection, view: FlowView, unit: str) -> str:
    whose = "people who move" if view.cell is None else "people who move in or out of this block"
    if view.cell is not None and view.direction != "both":
        way = "into" if view.direction == "in" else "out of"
        whose = f"people who move {way} this block"
    if view.net:
        whose = whose.replace("people who move", "people of net movement")
    if drawn.n_above == 0:
        return (
            f"No flow exceeds {view.least:g} people per step: lower the threshold to see arrows. "
            f"There are {drawn.total_moves:,.0f} {whose} {unit}."
        )
    said = (
        ("1 arrow" if drawn.n_shown == 1 else f"{drawn.n_shown:,} arrows")
        + (f" of {drawn.n_above:,} above the threshold" if drawn.n_shown < drawn.n_above else "")
        + f", {drawn.share_shown:.0%} of the {drawn.total_moves:,.0f} {whose} {unit}."
    )
    if drawn.outside_count >= 0.5:
        said += f" {drawn.outside_count:,.0f} of them cross the border of the grid, not drawn."
    return said


# --------------------------------------------------------------------------------- figures


def _block(moment: _Moment, view: FlowView, cell: int) -> None:
    """The chosen block in numbers."""
    estimate, truth = moment.tables["estimate"], moment.tables[view.truth]
    names = {"estimate": "Learned", "truth": moment.brief[view.truth]}
    st.markdown(f"**Block {plain(moment.grid.labels[cell])}**, people {moment.unit}")
    totals, partners = st.columns(2, gap="large")
    rows = {"in": "incoming", "out": "outgoing", "stay": "stays", "in minus out": "change"}
    sides = [cell_totals(table, moment.grid.n_cells).loc[cell] for table in (estimate, truth)]
    totals.dataframe(
        pd.DataFrame(
            {
                "": list(rows),
                **{
                    name: [side[column] for column in rows.values()]
                    for name, side in zip(names.values(), sides, strict=True)
                },
            }
        ),
        hide_index=True, key="flows.totals", column_config=_whole_numbers(names.values()),
    )  # fmt: skip
    found = partners_of_cell(estimate, truth, cell).head(20)
    ways = {"in": "from", "out": "to"}
    labels = [*moment.grid.labels, "outside the grid"]
    partners.dataframe(
        pd.DataFrame(
            {
                "": [
                    f"{ways[way]} {labels[other]}"
                    for way, other in zip(found["way"], found["cell"], strict=True)
                ],
                names["estimate"]: found["estimate"],
                names["truth"]: found["truth"],
            }
        ),
        hide_index=True, key="flows.partners", height=178,
        column_config=_whole_numbers(names.values()),
    )  # fmt: skip


def _whole_numbers(names: Any) -> dict[str, Any]:
    return {name: st.column_config.NumberColumn(format="%.0f") for name in names}


def _comparison(figures: FlowComparison, view: FlowView, truth: str) -> None:
    """The figures of an estimate against a truth, over the whole window and map."""
    st.markdown(f"**Learned from groups, against: {truth}**")
    tiles = st.container(horizontal=True, gap="large")
    for label, value, about in (
        ("Common part", figures.cpc, "Share of movement that both have (CPC): 1 is perfect."),
        ("Correlation", figures.correlation, "Over all pairs of different blocks."),
        (
            "Precision", figures.precision,
            f"Of the arrows above {view.threshold:g} that are drawn, the share that is true.",
        ),
        (
            "Recall", figures.recall,
            f"Of the true arrows above {view.threshold:g}, the share found.",
        ),
        (
            "Total movement", figures.total_ratio,
            "Estimated moves over true moves: above 1 movement is invented.",
        ),
    ):  # fmt: skip
        said = "–" if value != value else f"{value:.3f}"  # noqa: PLR0124  # nan has no meaning
        tiles.metric(label, said, help=about, width=170)


def _distrust(figures: FlowComparison) -> None:
    """Say it aloud where the estimate invents much movement."""
    if figures.total_ratio > INVENTED:
        st.warning(
            f"Learned from groups, there is {figures.total_ratio:.1f} times as much movement as "
            "there was: do not trust single arrows here. Smaller groups or more people help.",
            icon=":material/warning:",
        )


def _page(run: Run[Any], result: StudyResult, view: FlowView) -> bytes:
    size = map_size_px(result.settings.grid.make().bounds, 2)
    return html_page(
        result, view.anchor, run.title, truth=view.truth, threshold=view.threshold,
        top_n=view.top_n, scene=scene(size),
    )  # fmt: skip


def _about(result: StudyResult, anchor: str, title: str) -> None:
    """How the shown flows came about, and when not to trust them."""
    learn = result.settings.learn
    fits = result.at(anchor)
    st.caption(
        f"{plain(title)}: {fits.n_sequences:,} sequences of {result.settings.window.length} steps "
        f"in {fits.n_groups:,} groups. Learned from groups in {_ending(fits.estimate)}, from "
        f"single people in {_ending(fits.single)}. Learner: {_learner(learn, fits.estimate)}; "
        f"start: {_label(learn, 'start')}. {_noise(learn)}, seed {learn.seed}."
        + "".join(
            f" Windows left out at all times of day: {n:,} ({cause})."
            for cause, n in result.dropped.items()
        )
    )
    with st.expander("What these maps mean, and when not to trust them"):
        st.markdown(
            "An arrow is the number of people who go from one block to another in one time step, "
            "as a mean over the steps of the window unless a step is chosen. All maps of a run "
            "share one scale of colour and width.\n\n"
            "The learner sees only how many people of a group are in each block. With small "
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
    taken = _label(replace(learn, inference=fit.learner, start="distance"), "inference")
    said = f"{taken}, since {fit.choice}" if fit.choice else taken
    if learn.calibrate and fit.learner in CALIBRATED:
        said += f", calibrated on {learn.calibrate} simulated replicates"
    return said


def _label(settings: LearnSettings, name: str) -> str:
    """The chosen value of a setting as the form words it."""
    option = options_of(settings)[name]
    labels: dict[str, str] = dict(zip(option.choices, option.choice_labels, strict=True))
    return labels[getattr(settings, name)]


def _noise(learn: LearnSettings) -> str:
    if learn.observed == "positions":
        return f"Positions with noise of {learn.sigma_m:g} m"
    return f"Chance of a neighbour block {learn.misclassify:g}, position noise {learn.sigma_m:g} m"


def _ending(fit: Fit) -> str:
    said = f"{fit.iterations} iterations, " + (
        "then it stood still" if fit.converged else "the limit: more may change it"
    )
    if fit.n_unconverged:
        said += f" ({fit.n_unconverged:,} groups did not come to an agreement with their counts)"
    return said
