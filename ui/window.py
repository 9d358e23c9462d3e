"""The reader's window: how wide it is, so that maps fit it, and when its theme changes.

Maps and charts are drawn for a width and a theme by the server, which is told of neither.
"""

from __future__ import annotations

import streamlit as st

__all__ = ["ask", "content_width_px", "is_narrow"]

USUAL_PX = 1280
WIDTHS_PX = (400, 4000)
NARROW_PX = 1000
"""Below this, two maps stand one under the other."""

SIDES_PX = 160
"""What Streamlit leaves free to both sides of a page; 32 in a window below 800 px."""

KEY = "window"

ASK = """
export default function({ data, setStateValue }) {
  const width = () => Math.floor(window.innerWidth / 40) * 40;
  const theme = () => {
    const app = document.querySelector(".stApp");
    const colour = app && getComputedStyle(app).backgroundColor.match(/[0-9]+/g);
    if (!colour) return data.theme;
    return colour.slice(0, 3).reduce((sum, part) => sum + Number(part), 0) < 384 ? "dark" : "light";
  };
  const told = { width: data.width, theme: data.theme };
  const tell = () => {
    for (const [name, now] of [["width", width()], ["theme", theme()]]) {
      if (now !== told[name]) { told[name] = now; setStateValue(name, now); }
    }
  };
  tell();
  const watching = setInterval(tell, 700);
  return () => clearInterval(watching);
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


def ask() -> None:
    """Ask the browser; it answers when the width or the theme is not the one that is known."""
    component = st.components.v2.component("window", js=ASK, html="<span></span>")
    known = {"width": _width_px(), "theme": st.context.theme.type or "light"}
    component(
        key=KEY, data=known, width=1, height=1,
        on_width_change=lambda: None, on_theme_change=lambda: None,
    )  # fmt: skip
