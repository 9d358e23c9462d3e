"""Maps as one page that any browser opens without a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files

import pydeck as pdk

from agg_core.plotting.charts import LEGEND_HEIGHT_PX, arrow_legend
from agg_core.plotting.deck import MAP_SIZE_PX
from agg_core.plotting.theme import LIGHT, Theme, css

__all__ = ["NamedDecks", "arrow_legend_svg", "standalone_map"]

NamedDecks = Sequence[tuple[str, pdk.Deck]]
"""Maps that stand on one page, each with its heading."""

DRAW = """
"use strict";
(() => {
  const decks = [];
  const place = ({longitude, latitude, zoom, pitch, bearing}) =>
    ({longitude, latitude, zoom, pitch, bearing, transitionDuration: 0});
  const boxes = [...document.querySelectorAll(".map")];
  for (const box of boxes) {
    const {deck, tooltip, fitted} = JSON.parse(box.nextElementSibling.textContent);
    const scale = Math.min(box.clientWidth / fitted[0], box.clientHeight / fitted[1]);
    deck.initialViewState.zoom += Math.log2(scale);
    const drawn = createDeck({container: box, jsonInput: deck, tooltip});
    const told = drawn.props.getTooltip;
    drawn.setProps({
      getTooltip: (picked) => {
        const tip = told && told(picked);
        const side = picked.x > box.clientWidth / 2 ? "-100%" : "0%";
        const height = picked.y > box.clientHeight / 2 ? "-100%" : "0%";
        return tip && {...tip, style: {...tip.style, translate: `${side} ${height}`}};
      },
      onViewStateChange: ({viewState}) => {
        for (const other of decks) {
          other.setProps({viewState: other === drawn ? viewState : place(viewState)});
        }
      },
    });
    decks.push(drawn);
  }
})();
"""
"""Draws each map from the JSON that follows its box; whoever moves one moves all.

The text under the pointer opens towards the middle of the map, where there is room for it.
"""

STYLE = """
body {{ margin: 0 auto; padding: 16px 20px; max-width: 2000px; background: {paper}; color: {text};
  font: 15px/1.5 system-ui, sans-serif; }}
h1 {{ font-size: 22px; margin: 0 0 12px; overflow-wrap: anywhere; }}
h2 {{ font-size: 16px; margin: 0 0 6px; overflow-wrap: anywhere; }}
.maps {{ display: grid; gap: 16px; align-items: end;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); }}
.map {{ position: relative; height: {height}px; border: 1px solid {outline}; border-radius: 4px; }}
.map .deck-tooltip {{ box-sizing: border-box; width: max-content; max-width: 49%; }}
.legend {{ margin-top: 12px; }}
p {{ margin: 6px 0; max-width: 80em; overflow-wrap: anywhere; }}
"""


def standalone_map(
    decks: NamedDecks,
    title: str,
    notes: Sequence[str] = (),
    legend_svg: str | None = None,
    theme: Theme = LIGHT,
    *,
    size_px: tuple[int, int] = MAP_SIZE_PX,
) -> str:
    """One HTML page with named maps side by side that share their view, a legend and notes.

    pydeck's own script is within the page, once, and the page forbids the browser any request.
    `title`, the names and `notes` are plain text. `size_px` is what the decks were fitted to: the
    first view is fitted anew to the room that the reader's window leaves. `legend_svg` goes in as
    it is; see `arrow_legend_svg`.
    """
    library = _library()
    style = STYLE.format(
        paper=css(theme.paper),
        text=css(theme.text),
        outline=css(theme.outline),
        height=size_px[1],
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(library, style)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f"<h1>{escape(title)}</h1>",
            '<div class="maps">',
            *(_map(name, deck, size_px) for name, deck in decks),
            "</div>",
            "<noscript><p>The maps need JavaScript, which is off here.</p></noscript>",
            f'<div class="legend">{legend_svg}</div>' if legend_svg else "",
            *(f"<p>{escape(note)}</p>" for note in notes),
            f"<script>{library}</script>",
            f"<script>{DRAW}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def arrow_legend_svg(
    vmax: float,
    threshold: float,
    theme: Theme = LIGHT,
    *,
    half_widths_px: tuple[float, float] = (0.6, 3.5),
    title: str = "People per step",
    width_px: int = 300,
) -> str:
    """The arrows, values and unit of `agg_core.plotting.charts.arrow_legend` as an SVG element."""
    figure = arrow_legend(
        vmax, threshold, theme, half_widths_px=half_widths_px, title=title, width_px=width_px
    )
    arrows = [
        f'<path d="M{" ".join(f"{x:.2f},{LEGEND_HEIGHT_PX - y:.2f}" for x, y in ring)}Z" '
        f'fill="{trace.fillcolor}"/>'
        for trace in figure.data
        for ring in [zip(trace.x, trace.y, strict=True)]
    ]
    words = [
        f'<text x="{word.x:.2f}" y="{LEGEND_HEIGHT_PX - word.y:.2f}" dominant-baseline="hanging" '
        f'font-size="{word.font.size}" fill="{word.font.color}">{escape(word.text)}</text>'
        for word in figure.layout.annotations
    ]
    label = escape(f"{title}: {', '.join(word.text for word in figure.layout.annotations[:-1])}")
    return (
        f'<svg role="img" aria-label="{label}" width="{width_px}" height="{LEGEND_HEIGHT_PX}" '
        f'viewBox="0 0 {width_px} {LEGEND_HEIGHT_PX}" font-family="system-ui, sans-serif">'
        f"{''.join(arrows)}{''.join(words)}</svg>"
    )


def _map(name: str, deck: pdk.Deck, size_px: tuple[int, int]) -> str:
    tooltip = json.dumps(deck._tooltip)  # pydeck keeps it out of the JSON
    content = f'{{"deck":{deck.to_json()},"tooltip":{tooltip},"fitted":{json.dumps(size_px)}}}'
    # A "<" in JSON can only stand in text, where its number means the same and ends no script.
    safe = content.replace("<", "\\u003c")
    return (
        f'<section><h2>{escape(name)}</h2><div class="map" role="img" '
        f'aria-label="{escape(f"Map: {name}")}"></div>'
        f'<script type="application/json">{safe}</script></section>'
    )


@cache
def _library() -> str:
    """The script of deck.gl that pydeck ships; it holds no end of a script element."""
    return (files("pydeck") / "nbextension" / "static" / "index.js").read_text(encoding="utf-8")


def _policy(library: str, style: str) -> str:
    """Only these two scripts and this style act, and nothing is asked of any server."""
    scripts = " ".join(_hash(script) for script in (library, DRAW))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {_hash(style)}; "
        "img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
