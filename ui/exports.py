"""Flows, matrices, maps and parameters as files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.evidence.attack import attack_on
from agg_core.evidence.limited import SharedResult, limited
from agg_core.evidence.privacy import BASES, LEAST_PEOPLE, Limit
from agg_core.exports import EXPORTS, Export, ExportInput, days_in, export_file_name
from agg_core.study.result import ESTIMATE, WHOLE_DAY, FlowResult
from ui.shell import plain, tell_fault

__all__ = ["Picture", "exports", "who_is_found"]

KEY = "view.export."

STAYS: Literal["session"] = "session"
"""The limit stays what was chosen where a format shows none."""

Picture = Callable[[FlowResult | None], bytes]
"""Makes the page of the picture that is shown, or the same of a limited result."""


@st.fragment
def exports(title: str, result: FlowResult, moment: str, picture: Picture) -> None:
    """A choice of formats, what opens each, and the file; it is made when it is asked for.

    ``picture`` makes the page of the picture that is shown; every other format holds the whole
    moment. Of people who were followed flows of few are withheld unless one chooses otherwise.
    """
    with st.popover("Download", icon=":material/download:", key="flows.download"):
        offered = {
            key: export for key, export in EXPORTS.items()
            if export.available(result) and (export.limitable or not result.limit_words)
        }  # fmt: skip
        if st.session_state.get(f"{KEY}format") not in offered:
            st.session_state[f"{KEY}format"] = next(iter(offered))
        chosen = offered[
            st.selectbox(
                "Format", list(offered), format_func=lambda key: offered[key].label,
                key=f"{KEY}format",
            )
        ]  # fmt: skip
        known = result.sources_of_draws if chosen.of_draws else result.sources
        source = ESTIMATE
        if chosen.one_source and len(known) > 1:
            source = st.selectbox(
                "Flows", known, format_func=result.source_label, key=f"{KEY}source"
            )
        limit = _limit(result, chosen)
        whole = "the whole day" if moment == WHOLE_DAY else moment
        times = "all times of day" if chosen.of_all_times else whole
        days = days_in(chosen, ExportInput(result, moment, title, source))
        of_days = f", what happened on {', '.join(days)}" if days else ""
        st.caption(f"{chosen.about} Of {times}{of_days}.")
        if chosen.limitable:
            who_is_found(result, moment, limit, "flows.found")
        least = limit.least_people or None
        st.download_button(
            "Make the file", partial(_made, chosen, title, result, moment, source, limit, picture),
            file_name=export_file_name(chosen, moment, days, least), mime=chosen.mime,
            key="flows.export", icon=":material/download:", type="primary", on_click="ignore",
        )  # fmt: skip


def _limit(result: FlowResult, chosen: Export) -> Limit:
    """What is withheld from the file, and how its numbers are rounded."""
    least, base = f"{KEY}least", f"{KEY}round"
    if not chosen.limitable:
        st.caption("It holds what was learned of everybody: flows of few people are in it, too.")
        return Limit(0)
    set_by_owner = result.least_people
    if set_by_owner is None:
        st.session_state.setdefault(least, LEAST_PEOPLE if result.truths else 0)
        st.number_input(
            "Withhold flows of fewer people per step than", 0, 1_000_000, step=1, key=least,
            persist_state=STAYS,
            help="Before a file is given away: flows of few people may tell where one of them "
            "went. Those are left out, and others from which they could be worked out. 0 leaves "
            "out nothing.",
        )  # fmt: skip
    else:
        st.caption(
            f"Flows of fewer people per step than {set_by_owner:,g} are withheld from it, as "
            "whoever shares this run has set."
        )
    st.selectbox(
        "Round people to multiples of", BASES, key=base, persist_state=STAYS,
        format_func=lambda number: str(number) if number else "not rounded",
    )  # fmt: skip
    people = st.session_state[least] if set_by_owner is None else set_by_owner
    return Limit(int(people), int(st.session_state[base]))


def who_is_found(result: FlowResult, moment: str, limit: Limit, key: str) -> None:
    """A button that says how many of the people who were followed these flows give away."""
    if not result.truths or isinstance(result, SharedResult):
        return
    asked = st.button(
        "Who could be followed?", key=key, type="tertiary", icon=":material/person_search:",
        help="Follows the people whom these flows were learned from through what would be "
        "published, as somebody could who knows where each of them is.",
    )  # fmt: skip
    if not asked:
        return
    try:
        with st.spinner("Following people …"):
            st.caption(plain(f"{moment}: {attack_on(result, moment, limit).words}"))
    except InputError as fault:
        tell_fault(str(fault))


def _made(
    chosen: Export,
    title: str,
    result: FlowResult,
    moment: str,
    source: str,
    limit: Limit,
    picture: Picture,
) -> bytes:
    shown = limited(result, limit)
    if chosen.key == "html":
        return picture(shown if limit.words else None)
    return chosen.make(ExportInput(shown, moment, title, source))
