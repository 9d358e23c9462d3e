"""The Lab's story for a class: scenes on a map, from people on their way to flows again."""

from __future__ import annotations

import streamlit as st

from agg_core.io.ground import ATTRIBUTION
from agg_core.lab.story import GROUP_SIZE
from agg_core.plotting.flow_map import map_view, page
from agg_core.plotting.lab import TRUTH_KEY, size_label
from agg_core.store.shipped_lab import TEACHING_SETTINGS
from ui import cached
from ui.flow_map import flow_map, told
from ui.shell import entered, theme

__all__ = ["story"]

STORY_MAP, STORY_SENT = "lab.story", "lab.story.sent"
"""Key of the map that tells the story; the view it was given."""


def story() -> int | None:
    """Six scenes, stepped through in the browser; at each one may stop and play with the map.

    Returns the scene that is told, None while somebody plays. It begins with that of the address.
    """
    packed = cached.packed_story(cached.outline_key())
    first = map_view(
        size_label(GROUP_SIZE), truth=TRUTH_KEY, threshold=TEACHING_SETTINGS.threshold,
        scene=0, show="estimate",
    )  # fmt: skip
    scenes = packed.header["story"]
    asked = st.query_params.get("scene", "")
    if STORY_SENT not in st.session_state and asked in map(str, range(1, len(scenes) + 1)):
        scene = int(asked) - 1
        st.session_state[STORY_SENT] = {**first, **scenes[scene]["view"], "scene": scene}
    elif entered() or STORY_SENT not in st.session_state:
        st.session_state[STORY_SENT] = {**first, **told(STORY_MAP)}
    flow_map(packed, st.session_state[STORY_SENT], key=STORY_MAP)
    notes = [f"{ATTRIBUTION}."] if packed.header["ground"] else []
    colours = theme()
    st.download_button(
        "The story as a page (HTML, opens without a network)",
        lambda: page(packed.showing(first), "What does aggregation hide?", notes, colours),
        file_name="aggregation-story.html", mime="text/html", icon=":material/download:",
        on_click="ignore", key="lab.story.page",
    )  # fmt: skip
    now = {**st.session_state[STORY_SENT], **told(STORY_MAP)}["scene"]
    return now if isinstance(now, int) and 0 <= now < len(scenes) else None
