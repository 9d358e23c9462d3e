"""How wide the reader's window is, so that maps fit it: the one thing a server cannot know."""

from __future__ import annotations

import streamlit as st

__all__ = ["ask_width", "content_width_px", "is_narrow"]

USUAL_PX = 1280
WIDTHS_PX = (400, 4000)
NARROW_PX = 1000
"""Below this, two maps stand one under the other."""

SIDES_PX = 160
"""What Streamlit leaves free to both sides of a page; 32 in a window below 800 px."""

KEY = "window"

ASK = """
export default function({ data, setStateValue }) {
  const whole = () => Math.floor(window.innerWidth / 40) * 40;
  const tell = () => { if (whole() !== data.known) setStateValue("width", whole()); };
  let waiting;
  const later = () => { clearTimeout(waiting); waiting = setTimeout(tell, 400); };
  window.addEventListener("resize", later);
  tell();
  return () => { clearTimeout(waiting); window.removeEventListener("resize", later); };
}
"""


def _width_px() -> int:
    told = st.session_state.get(KEY)
    width = None if told is None else told.get("width")
    least, most = WIDTHS_PX
    return min(max(int(width), least), most) if isinstance(width, int | float) else USUAL_PX


def content_width_px() -> int:
    """Width of what stands on a page: that of the window less the sides."""
    width = _width_px()
    return width - (SIDES_PX if width >= 800 else 32)


def is_narrow() -> bool:
    """Whether two maps side by side would be too small to read."""
    return _width_px() < NARROW_PX


def ask_width() -> None:
    """Ask the browser; it answers only if the width is not the one that is known."""
    ask = st.components.v2.component("window_width", js=ASK, html="<span></span>")
    ask(key=KEY, data={"known": _width_px()}, on_width_change=lambda: None, width=1, height=1)
