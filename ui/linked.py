"""Maps that move together: what a person does to one of them is done to the others."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st

__all__ = ["linked"]

# Streamlit's maps tell nobody where they look. So their input is repeated, by the browser: wheel,
# drag and pinch of one map go to the others, at the same place as seen from the middle. Repeated
# events are marked as such by the browser (isTrusted), and a drag has a pointer's number of its
# own, so nothing goes in a circle. What would move one map further than another moves none apart:
# - A drag is repeated from its first move on, since a map begins to move where it first sees one.
#   A click alone is not repeated: it chooses a cell. Where an unsteady hand moved the map with it,
#   the others make that move with a detour too long for a click.
# - A map glides when a key is pressed, and a glide that is broken off ends elsewhere on each map.
#   So plus and minus act as the wheel does, at once, and arrows scroll the page.
LINK = """
const FAR = 12;
const STEP = 400;
const ZOOMS = { "+": -STEP, "=": -STEP, "-": STEP };
const OWN_POINTERS = 1000;

export default function({ data }) {
  const frames = () => data.frames.map((name) => document.querySelector("." + name));
  const canvasOf = (frame) => frame?.querySelector("[data-testid=stDeckGlJsonChart] canvas");
  const frameOf = (target) => frames().find((frame) => canvasOf(frame) && frame.contains(target));
  const onMap = (target) => target instanceof Element && !target.closest("button");

  const middle = (frame) => {
    const { left, top, width, height } = canvasOf(frame).getBoundingClientRect();
    return [left + width / 2, top + height / 2];
  };
  const others = (from) => {
    const here = middle(from);
    return frames().filter((frame) => frame !== from && canvasOf(frame)).map((frame) => {
      const [x, y] = middle(frame);
      return { canvas: canvasOf(frame), dx: x - here[0], dy: y - here[1] };
    });
  };
  const shared = (event) => ({
    bubbles: true, cancelable: true, composed: true, view: window,
    ctrlKey: event.ctrlKey, shiftKey: event.shiftKey, altKey: event.altKey, metaKey: event.metaKey,
  });

  const repeatWheel = (event) => {
    const from = event.isTrusted && onMap(event.target) && frameOf(event.target);
    if (!from) return;
    for (const { canvas, dx, dy } of others(from)) {
      canvas.dispatchEvent(new WheelEvent("wheel", {
        ...shared(event), clientX: event.clientX + dx, clientY: event.clientY + dy,
        deltaX: event.deltaX, deltaY: event.deltaY, deltaMode: event.deltaMode,
      }));
    }
  };

  const held = new Map();
  let dragging = false;
  const repeatPointer = (event, from, type, detour = 0) => {
    for (const { canvas, dx, dy } of others(from)) {
      canvas.dispatchEvent(new PointerEvent(type, {
        ...shared(event), clientX: event.clientX + dx + detour, clientY: event.clientY + dy,
        pointerId: event.pointerId + OWN_POINTERS, pointerType: event.pointerType,
        isPrimary: event.isPrimary, button: event.button, buttons: event.buttons,
      }));
    }
  };
  const repeatSoFar = ({ from, start, moves }) => {
    repeatPointer(start, from, "pointerdown");
    for (const each of moves) repeatPointer(each, from, "pointermove");
  };
  const down = (event) => {
    const from = event.isTrusted && onMap(event.target) && frameOf(event.target);
    if (!from) return;
    held.set(event.pointerId, { from, start: event, moves: [] });
    if (dragging) repeatPointer(event, from, "pointerdown");
  };
  const move = (event) => {
    const pointer = event.isTrusted && held.get(event.pointerId);
    if (!pointer || !canvasOf(pointer.from)) return;
    const { from, start, moves } = pointer;
    if (dragging) {
      repeatPointer(event, from, "pointermove");
      return;
    }
    moves.push(event);
    if (Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > FAR) {
      dragging = true;
      for (const each of held.values()) repeatSoFar(each);
    }
  };
  const up = (event) => {
    const pointer = event.isTrusted && held.get(event.pointerId);
    if (!pointer) return;
    if (canvasOf(pointer.from)) {
      if (!dragging && pointer.moves.length) {
        repeatSoFar(pointer);
        const last = pointer.moves[pointer.moves.length - 1];
        repeatPointer(last, pointer.from, "pointermove", 3 * FAR);
        repeatPointer(last, pointer.from, "pointermove");
        repeatPointer(event, pointer.from, event.type);
      } else if (dragging) {
        repeatPointer(event, pointer.from, event.type);
      }
    }
    held.delete(event.pointerId);
    if (!held.size) dragging = false;
  };

  const takeKey = (event) => {
    const frame = event.isTrusted && event.target instanceof Element
      && event.target.matches(".deck-events-root") && frameOf(event.target);
    const known = event.key in ZOOMS || /^(Minus|Equal|Arrow.*)$/.test(event.code);
    if (!frame || !known) return;
    event.stopPropagation();
    if (!(event.key in ZOOMS) || event.ctrlKey || event.metaKey || event.altKey) return;
    for (const each of frames().filter(canvasOf)) {
      const [clientX, clientY] = middle(each);
      canvasOf(each).dispatchEvent(new WheelEvent("wheel", {
        bubbles: true, cancelable: true, composed: true, view: window,
        clientX, clientY, deltaY: ZOOMS[event.key],
      }));
    }
  };

  const listeners = {
    wheel: repeatWheel, pointerdown: down, pointermove: move, pointerup: up, pointercancel: up,
    keydown: takeKey,
  };
  const how = { capture: true, passive: true };
  for (const [type, listener] of Object.entries(listeners)) {
    document.addEventListener(type, listener, how);
  }
  return () => {
    for (const [type, listener] of Object.entries(listeners)) {
      document.removeEventListener(type, listener, how);
    }
  };
}
"""


def linked(keys: Sequence[str]) -> None:
    """Let the maps with these element keys move together, if all of them are on the page."""
    frames = ["st-key-" + re.sub(r"[^\w-]", "-", key) for key in keys]
    component = st.components.v2.component("linked_maps", js=LINK, html="<span></span>")
    component(key="linked", data={"frames": frames}, height=1)
