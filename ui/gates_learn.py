"""Learning flows from entries and exits: settings, progress, and how it went."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pandas as pd
import streamlit as st

from agg_core.base.durations import duration
from agg_core.base.errors import InputError
from agg_core.base.report import printable
from agg_core.io.flow_tables import KnownStates, read_flow_table
from agg_core.store.jobs import GATES
from agg_core.study.gates import GateStudy
from agg_core.study.result import OUTSIDE_NAME
from agg_core.study.settings import GateLearnSettings
from agg_core.tables.gates import GateTable
from ui import cached
from ui.at_work import others
from ui.brought import MOST_TABLE_MEGABYTES, TABLES
from ui.forms import edit
from ui.learning import ended_run, start_learning
from ui.named_days import choose_holidays
from ui.panels import cost, settings_and_work
from ui.shell import plain, tell_fault
from ui.state import Dataset, state
from ui.workspace import workspace

__all__ = ["gates_progress", "how_it_went", "learn_from", "pattern_table"]

STAGES = {
    "preparing": "Preparing",
    "learning": "Learning who goes where",
    "drawing": "Scaling to each day",
    "doubting": "Finding how sure the flows are",
}
FEATURES = {"distance": "10 km more", "line": "Another line"}
MATRIX_FAULT = "gates.matrix.fault"
"""Why the last old matrix could not be used."""


def learn_from(opened: Dataset) -> None:
    """The page Learn for entries and exits."""
    st.caption(
        "Nobody was followed here: on a day on which more people than usual enter at one station, "
        "more than usual leave where these people go. Flows of each day add up to its entries and "
        "exits."
    )
    settings, work = settings_and_work()
    now = state()
    with settings:
        now.gate_learn = _form(now.gate_learn)
        _old_matrix(opened)
        able = _has_days(opened)
    with work:
        if st.button(
            "Learn the flows", type="primary", icon=":material/play_arrow:", key="start",
            disabled=not able,
        ):  # fmt: skip
            start_learning(opened)
        if able:
            cost(None, cached.megabytes_of_gates(opened, now.gate_learn))
        if now.gates.run is None:
            st.info(
                "The settings that stand there suit most files. You can leave the page while it "
                "learns.",
                icon=":material/info:",
            )
        gates_progress()
        others((GATES,), now.gates.run)
    st.caption(
        "Several values of a setting are not compared here: entries and exits tell little of which "
        "is better. Two runs beside each other are on the page Runs."
    )


def _form(learn: GateLearnSettings) -> GateLearnSettings:
    learn = edit(learn, "gate_learn", ["hour_of", "spread"], columns=1)
    learn = replace(learn, holidays=choose_holidays(learn.holidays, "gate_learn.holidays"))
    with st.expander("More"):
        return edit(learn, "gate_learn", ["minutes_per_km", "draws", "threshold", "seed"])


def _has_days(opened: Dataset) -> bool:
    """Whether there are days to learn from; why not is said."""
    try:
        cached.gate_days(opened.key)
    except InputError as fault:
        tell_fault(str(fault))
        return False
    return True


def _old_matrix(opened: Dataset) -> None:
    """An upload of trips of last week or of a survey, kept if it fits the stations."""
    table = cached.gates(opened.key)

    def take() -> None:
        upload = st.session_state.get("gates.matrix")
        st.session_state[MATRIX_FAULT] = None
        if upload is None:
            return
        try:
            keep_matrix(table, upload.name, upload.getvalue())
        except InputError as fault:
            st.session_state[MATRIX_FAULT] = str(fault)

    st.file_uploader(
        "An old matrix, if there is one", TABLES, key="gates.matrix", on_change=take,
        max_upload_size=MOST_TABLE_MEGABYTES,
        help="Trips of last week or of a survey: origin, dest and count, perhaps date and time. It "
        "takes the place of the pattern where it has people; how much it counts for is learned.",
    )  # fmt: skip
    fault = st.session_state.get(MATRIX_FAULT)
    if fault is not None:
        tell_fault(fault)
    held = workspace().matrix
    if held is not None:
        st.button(
            plain(f"Leave out {printable(held[0])}"), key="gates.matrix.drop",
            icon=":material/close:", type="tertiary", on_click=workspace().drop_matrix,
        )  # fmt: skip


def keep_matrix(table: GateTable, name: str, content: bytes) -> None:
    """Take in trips as the old matrix of the open entries and exits.

    Raises
    ------
    InputError
        If they cannot be read, or name no station.
    """
    known = KnownStates(
        table.stations, OUTSIDE_NAME, table.entries.slots, table.step_minutes, table.timezone
    )
    workspace().keep_matrix(name, read_flow_table(content, known, by_date=True))


def gates_progress() -> None:
    """The last job that learns from entries and exits: at work, or how it ended."""
    run = ended_run(
        "gates", preparing="Preparing: days of service …", stages=STAGES,
        settings=state().gate_learn,
    )  # fmt: skip
    if run is None:
        return
    study = cast("GateStudy", cached.result(run.key))
    st.markdown(f"**{plain(run.title)}**: {plain(study.basis)}.")
    how_it_went(study)
    st.caption(f"It took {duration(study.wall_s)}.")


def how_it_went(study: GateStudy) -> None:
    """What was learned of who goes where, and what was found of the days."""
    told = study.summary()
    st.markdown(
        f"**{told['trips_per_day']:,.0f} trips a day** from one station to another. "
        f"{plain(study.pattern_words)}"
    )
    if study.weights and study.learned and not study.matrix_weights:
        st.dataframe(pattern_table(study), hide_index=True, key="gates.pattern", width="stretch")
        st.caption("By how much a pair's weight is multiplied, with an interval of nine in ten.")
    if not study.learned and not study.matrix_weights:
        st.warning(
            "There were too few days alike to tell who goes where: do not trust single pairs. More "
            "days, or an old matrix, help.",
            icon=":material/warning:",
        )
    said = [
        *(["Days left out, as much is missing: " + ", ".join(study.left_out) + "."]
          if study.left_out else []),
        *(["Days that pass as a day of another kind: " + ", ".join(study.unusual) + "."]
          if study.unusual else []),
    ]  # fmt: skip
    for each in said:
        st.caption(plain(each))


def pattern_table(study: GateStudy) -> pd.DataFrame:
    """Factors by which a feature changes a pair's weight, and the pace of trips."""
    weights = study.summary()["weights"]
    rows = [
        (FEATURES[name], each["factor"], each["low"], each["high"])
        for name, each in weights.items()
    ]
    return pd.DataFrame(rows, columns=["Of a pair", "Times as much", "Low", "High"]).round(2)
