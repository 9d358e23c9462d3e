"""The Lab page: a story for a class, what aggregation hides, and the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import streamlit as st

from agg_core.base.durations import duration
from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.lab.experiments import (
    EXPERIMENTS,
    Experiment,
    LabProgress,
    LabResult,
    LabSettings,
    learners_for,
)
from agg_core.lab.memory import experiment_megabytes, teaching_megabytes
from agg_core.lab.teaching import (
    TEACHING_TIME,
    TeachingProgress,
    TeachingResult,
    TeachingSettings,
    learner_label,
)
from agg_core.lab.trends import LEARNER_LABELS, SYMBOLS
from agg_core.learn.table import PAPERS
from agg_core.plotting import lab as figures
from agg_core.plotting.flow_map import map_view
from agg_core.store.jobs import EXPERIMENT, TEACHING, Kind
from agg_core.store.shipped_lab import TEACHING as SHIPPED
from agg_core.store.shipped_lab import TEACHING_SETTINGS
from ui import cached, panels
from ui.at_work import others, whose
from ui.flow_map import flow_map, told
from ui.forms import edit
from ui.lab_results import (
    PART,
    about_kept,
    follow_address,
    show_kept,
    take_result,
    tell_address,
    was_learned_before,
)
from ui.shell import beside, entered, tell_fault, theme
from ui.state import Run, Runs, state
from ui.story import story
from ui.workspace import job, workspace

__all__ = ["show"]

Settings = TypeVar("Settings", LabSettings, TeachingSettings)

PARTS = {
    "story": "A story for a class",
    "teaching": "What does aggregation hide?",
    "experiments": "The paper's experiments",
}
"""The parts of the Lab by their names in an address."""

PRESETS = {
    "quick": "Quick",
    "full": "Full, of the paper's size",
    "own": "Own values",
}
OWN = ("n_states", "group_sizes", "n_individuals", "lengths", "n_seeds", "iterations", "seed")
TUPLES = {
    "n_states": "n_states",
    "group_sizes": "group_size",
    "n_individuals": "n_individuals",
    "lengths": "length",
}
WORDS = {
    "n_states": "States",
    "group_sizes": "group size",
    "n_individuals": "people",
    "lengths": "steps",
}
HOW_LONG = "How long it takes is told once it has begun."
FORMATS = {"png": "PNG", "svg": "SVG"}
LEARNERS = options_of(LabSettings)["learners"]
NEARLY = 0.05
"""A ratio of movement this close to 1 is called the true movement."""


def show() -> None:
    """Choose a part of the Lab, and show it; the address names it, and the result that it shows."""
    follow_address(list(PARTS))
    part = st.segmented_control(
        "Part of the Lab", list(PARTS), required=True, format_func=PARTS.__getitem__, key=PART,
        label_visibility="collapsed",
    )  # fmt: skip
    shown: Run[Any] | None = None
    begun: Run[Any] | None = None
    scene: int | None = None
    if part == "story":
        scene = story()
    elif part == "teaching":
        shown, begun = teaching(), state().views.run
    else:
        shown, begun = experiments(), state().experiments.run
    tell_address(str(part), shown, scene, begun)


def _run_and_follow(
    runs: Runs[Settings],
    kind: Kind[Settings, Any, Any],
    settings: Settings,
    key: str,
    *,
    button: str,
    title: str,
    what: str,
    preparing: str,
    first_step: str,
    describe: Callable[[Any], str],
) -> Run[Settings] | None:
    """The button, the job while it runs, or what to do first; returns the run to show, if any.

    A job that is refused, fails or is cancelled leaves what was shown.
    """
    shown = runs.finished
    again = shown is not None and shown.settings == settings and was_learned_before(shown)
    if st.button(
        "Learn it again" if again else button, type="primary", icon=":material/play_arrow:",
        key=f"{key}.start",
    ):  # fmt: skip
        if not again and show_kept(runs, kind, settings, title):
            st.rerun()  # the button is to say that it can be learned again
        try:
            key_of_work = workspace().work(
                kind, settings, title, whose(), megabytes=_megabytes(settings)
            )
            runs.run = Run(key_of_work, title, settings)
        except InputError as fault:
            tell_fault(str(fault))
    if runs.run is not None:
        panels.follow(
            job(runs.run.key), key, preparing=preparing,
            kept=f"The last finished {what} is still shown." if runs.finished else "",
            describe=describe,
        )  # fmt: skip
        take_result(runs, kind)
    elif runs.finished is None:
        st.info(first_step, icon=":material/info:")
    others((kind,), runs.run)
    return runs.finished


# ------------------------------------------------------------------------------ experiments


def experiments() -> Run[LabSettings] | None:
    """Choose, run, watch and read an experiment of the paper; returns the one that is shown."""
    experiment, preset, settings = _choose()
    st.caption(f"{_says(settings)}: {settings.n_runs:,} runs of a learner. {_how_long()}")
    shown = _run_and_follow(
        state().experiments, EXPERIMENT, settings, "lab", button="Run the experiment",
        title=f"{_titled(experiment.name)} ({PRESETS[preset].lower()})", what="experiment",
        preparing="Preparing the learners …",
        first_step="Choose one of the paper's figures and run it: its curves appear here. You can "
        "leave the page meanwhile.",
        describe=_step_of_experiment,
    )  # fmt: skip
    if shown is not None:
        _show(shown)
    return shown


def _choose() -> tuple[Experiment, str, LabSettings]:
    left, right = beside([5, 4], align="bottom")
    st.session_state.setdefault("view.lab.experiment", "fig3")
    st.session_state.setdefault("view.lab.preset", "quick")
    name = left.selectbox(
        "Experiment", list(EXPERIMENTS), format_func=_titled, key="view.lab.experiment",
        help="Random models as in the paper; the curves say how far what is learned from groups "
        "is from the model that made the data.",
    )  # fmt: skip
    preset = right.segmented_control(
        "Settings", list(PRESETS), format_func=PRESETS.__getitem__, required=True,
        key="view.lab.preset",
        help="Quick takes half a minute at most, full minutes to hours. Own values begin with "
        "the quick ones.",
    )  # fmt: skip
    experiment, preset = EXPERIMENTS[name], str(preset)
    if preset != "own":
        return experiment, preset, experiment.full if preset == "full" else experiment.quick
    own = state().own
    settings = edit(own.get(name, experiment.quick), f"lab.{name}", OWN, columns=4)
    own[name] = _choose_learners(settings, f"lab.{name}.learners")
    return experiment, preset, own[name]


def _choose_learners(settings: LabSettings, key: str) -> LabSettings:
    """Only those are offered that can do what the experiment asks."""
    chosen = st.multiselect(
        LEARNERS.label, learners_for(settings.experiment), default=list(settings.learners),
        help=LEARNERS.help, key=key, format_func=LEARNER_LABELS.__getitem__,
    )  # fmt: skip
    try:
        return replace(settings, learners=tuple(chosen))
    except InputError as fault:
        tell_fault(str(fault))
        return settings


def _titled(name: str) -> str:
    experiment = EXPERIMENTS[name]
    figure = f"Fig. {name.removeprefix('fig')}. " if experiment.of_the_paper else "Ours. "
    return figure + experiment.title


def _says(settings: LabSettings) -> str:
    values = [
        f"{WORDS[name]} {SYMBOLS[column]} = "
        + ", ".join(f"{value:,}" for value in getattr(settings, name))
        for name, column in TUPLES.items()
    ]
    learners = "; ".join(LEARNER_LABELS[name] for name in settings.learners)
    return " · ".join(
        [
            *values,
            f"{settings.n_seeds} {'seed' if settings.n_seeds == 1 else 'seeds'}",
            f"at most {settings.iterations:,} iterations",
            learners,
        ]
    )


def _step_of_experiment(step: LabProgress) -> str:
    return f"{step.done} of {step.n_runs} runs done, now {step.label}"


def _show(run: Run[LabSettings]) -> None:
    """The figure of a finished experiment, and how to read it."""
    result = cached.experiment(run.key)
    experiment = EXPERIMENTS[result.settings.experiment]
    st.header(run.title, anchor=False)
    st.caption(f"{_says(result.settings)}. It took {duration(result.wall_s)}.")
    about_kept(run)
    log, file_format = _looks(experiment)
    curves = figures.learning_curves(experiment, result.table)
    figure = figures.lab_figure(experiment, curves, theme(), log=log)
    st.plotly_chart(
        figure, theme=None, key="lab.figure", alt=f"Learning curves: {experiment.title}",
        config={
            "displaylogo": False,
            "toImageButtonOptions": {"format": file_format, "filename": result.settings.experiment},
        },
    )  # fmt: skip
    st.caption(_about_the_figure(experiment, curves, log=log))
    see, doubt = st.columns(2, gap="large")
    see.markdown(f"**What to see.** {experiment.see}")
    doubt.markdown(f"**What to doubt.** {experiment.doubt}")
    _trends(result)
    with st.expander("Where the curves end: ΔNLL in nats per person, over the seeds"):
        st.dataframe(
            figures.final_table(experiment, result.table), hide_index=True, key="lab.ends",
            column_config={
                name: st.column_config.NumberColumn(format="%.4f") for name in ("Mean", "sd")
            },
        )  # fmt: skip
    _downloads(result, run.title, curves, log=log)


def _looks(experiment: Experiment) -> tuple[bool, str]:
    st.session_state.setdefault("view.lab.format", "png")
    # Learners end apart by factors: over group sizes only a log axis shows them all.
    over_sizes = experiment.x == "group_size"
    log_key = "view.lab.log_ends" if over_sizes else "view.lab.log"
    st.session_state.setdefault(log_key, over_sizes)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        log = st.toggle(
            "Logarithmic ΔNLL", key=log_key,
            help="Shows small differences. What is 0 or less has no logarithm and is left out.",
        )  # fmt: skip
        file_format = st.segmented_control(
            "The camera on the figure saves", list(FORMATS), format_func=FORMATS.__getitem__,
            required=True, key="view.lab.format",
        )  # fmt: skip
    return log, str(file_format)


def _about_the_figure(experiment: Experiment, curves: list[figures.Curve], *, log: bool) -> str:
    n_seeds = max(curve.n_seeds for curve in curves)
    said = [
        "ΔNLL: how much less likely the learned model finds the sequences of new single people "
        "than the true model does; 0 is perfect."
    ]
    if experiment.x == "group_size":
        said.append("Each point is where the runs of a learner end.")
    if n_seeds > 1 and experiment.x == "group_size":
        said.append(f"Means over {n_seeds} seeds; the table below has their deviations.")
    elif n_seeds > 1:
        said.append(f"Lines are means over {n_seeds} seeds, bands one standard deviation each way.")
    if experiment.x == "wall_s":
        said.append(
            "Every seed ran at its own pace: the curves are interpolated at common times, and a "
            "seed that has ended keeps its last value."
        )
    infinite, below = figures.not_drawn(curves, log=log)
    if infinite:
        said.append(f"{infinite} infinite points, where a new person is ruled out, are not drawn.")
    if below:
        said.append(f"{below} points at or below 0 have no logarithm and are not drawn.")
    return " ".join(said)


def _trends(result: LabResult) -> None:
    for heading, trends in (
        ("What the paper says, held against this run", [t for t in result.trends if not t.ours]),
        ("What we say, held against this run", [t for t in result.trends if t.ours]),
    ):
        if trends:
            st.markdown(f"**{heading}**")
        for trend in trends:
            # What holds on average and not in each seed is no plain yes.
            in_all = trend.n_holding == trend.n_seeds
            icon = "cancel" if not trend.holds else "check_circle" if in_all else "contrast"
            colour = "green" if trend.holds and in_all else "orange"
            st.markdown(f":{colour}[:material/{icon}:] **{trend.claim}** {trend.sentence}")
    for note in result.notes:
        st.caption(note)


def _downloads(
    result: LabResult, title: str, curves: list[figures.Curve], *, log: bool
) -> None:  # fmt: skip
    experiment = EXPERIMENTS[result.settings.experiment]

    def page() -> str:
        figure = figures.lab_figure(experiment, curves, theme(), log=log)
        return figures.standalone_html(figure, title, theme())

    with st.container(horizontal=True):
        st.download_button(
            "All curves (CSV)", lambda: result.table.to_csv(index=False), key="lab.csv",
            file_name=f"{experiment.name}.csv", mime="text/csv", icon=":material/download:",
            on_click="ignore",
        )  # fmt: skip
        st.download_button(
            "The figure (HTML, opens without a network)", page, key="lab.html",
            file_name=f"{experiment.name}.html", mime="text/html", icon=":material/download:",
            on_click="ignore",
        )  # fmt: skip


# --------------------------------------------------------------------------------- teaching


def teaching() -> Run[TeachingSettings] | None:
    """One city, learned at every group size; then M slides. Returns what is shown."""
    now = state()
    if now.views.finished is None:
        # What comes with the app, so that there is a picture at once.
        now.views.finished = Run(SHIPPED, _people(TEACHING_SETTINGS), TEACHING_SETTINGS)
    st.markdown(
        f"One city at {TEACHING_TIME}, the same people and the same noise. Only the number M of "
        "people in a group grows, of whom nothing but the counts is kept. The paper's learner, "
        "CFB, and another see the same counts."
    )
    left, right = beside([2, 3], align="bottom")
    with left:
        now.teaching = edit(now.teaching, "teach", ["learner"], columns=1)
    with right:
        now.teaching = edit(now.teaching, "teach", ["n_people", "iterations", "seed"], columns=3)
    st.caption(_how_long())
    shown = _run_and_follow(
        now.views, TEACHING, now.teaching, "teach", button="Learn at every M",
        title=_people(now.teaching), what="view",
        preparing="Preparing: the city, noise …",
        first_step="Learn the sample city at every M first; then slide M and watch the map.",
        describe=_step_of_teaching,
    )  # fmt: skip
    if shown is not None:
        about_kept(shown)
        _slide(shown.key)
    return shown


def _people(settings: TeachingSettings) -> str:
    return f"{settings.n_people:,} people"


def _step_of_teaching(step: TeachingProgress) -> str:
    return f"Learning from groups of M = {step.group_size} by {learner_label(step.learner)}"


LAB_MAP, LAB_SENT = "lab.map", "lab.sent"
"""Key of the map of the teaching view, whose slider is the group size; the view it was given."""

FIRST_SIZE = 20


@st.fragment
def _slide(job: str) -> None:
    """The maps and figures at the chosen M; the map has all of them, so its slider is instant."""
    result = cached.teaching(job)
    group_size = chosen_size(told(LAB_MAP).get("time"), result)
    for learner in result.learners:
        st.markdown(f"**{_sees(result, learner, group_size)}**")
    if entered() or LAB_SENT not in st.session_state:
        first = map_view(
            figures.size_label(FIRST_SIZE), truth=figures.TRUTH_KEY,
            threshold=result.settings.threshold, show="all",
        )  # fmt: skip
        st.session_state[LAB_SENT] = {**first, **told(LAB_MAP)}
    packed = cached.packed_teaching(job, cached.outline_key())
    flow_map(packed, st.session_state[LAB_SENT], key=LAB_MAP, height="560px")
    st.caption(
        "The slider below the maps is the group size, M: people per group of whom only the counts "
        "are kept; 1 hides nothing. The truth is what the exact likelihood learns from the same "
        f"noisy sequences of single people. Arrows are flows above {result.settings.threshold:g} "
        "people per 30-minute step; their scale is the same on all maps and at every M."
    )
    st.plotly_chart(
        figures.movement_chart(result, group_size, theme()), theme=None, config=panels.STATIC,
        key="lab.movement", alt="Movement and common part against M",
    )  # fmt: skip


def chosen_size(time: object, result: TeachingResult) -> int:
    """The group size of a label; the first one where there is none such."""
    sizes = {figures.size_label(size): size for size in result.group_sizes}
    return sizes.get(time, FIRST_SIZE) if isinstance(time, str) else FIRST_SIZE


def _sees(result: TeachingResult, learner: str, group_size: int) -> str:
    point = result.point(learner, group_size)
    ratio = point.figures.total_ratio
    if abs(ratio - 1) <= NEARLY:
        how = "sees about the true movement"
    elif ratio > 1:
        how = f"sees {ratio:.1f} times the true movement"
    else:
        how = f"sees {ratio:.0%} of the true movement"
    who = "the paper's learner" if learner == PAPERS else f"“{learner_label(learner)}”"
    if point.taken != learner:
        who += f" (here {learner_label(point.taken)})"
    return (
        f"At M = {group_size} {who} {how}: {point.moves:,.0f} people seem to move per step, where "
        f"{result.true_moves:,.0f} do, and {point.figures.cpc:.0%} of all movement is in the right "
        "place."
    )


def _megabytes(settings: LabSettings | TeachingSettings) -> float:
    """Memory that the work takes, about."""
    if isinstance(settings, LabSettings):
        return experiment_megabytes(settings)
    return teaching_megabytes(settings)


def _how_long() -> str:
    """What is known of the time before work begins."""
    return HOW_LONG if cached.learners_are_ready() else f"{HOW_LONG} {panels.NOT_READY}"
