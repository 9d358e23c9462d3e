"""Maps that move together: what a person does to one of them is done to the others."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st

__all__ = ["linked"]

# Streamlit's maps tell nobody where they look. So their input is repeated, by the browser: wheel,
# drag, pinch and keys of one map go to the others, moved by what lies between the two. A click
# alone is not repeated: it chooses a block. Repeated events are marked as such by the browser
# (isTrusted), and a drag has a pointer's number of its own, so nothing goes in a circle.
LINK = """
const FAR = 5;
const OWN_POINTERS = 1000;

export default function({ data }) {
  const frames = () => data.frames.map((name) => document.querySelector("." + name));
  const canvasOf = (frame) => frame?.querySelector("[data-testid=stDeckGlJsonChart] canvas");
  const frameOf = (target) => frames().find((frame) => canvasOf(frame) && frame.contains(target));
  const onMap = (target) => target instanceof Element && !target.closest("button");

  const others = (from) => {
    const here = canvasOf(from).getBoundingClientRect();
    return frames().filter((frame) => frame !== from && canvasOf(frame)).map((frame) => {
      const there = canvasOf(frame).getBoundingClientRect();
      const [dx, dy] = [there.left - here.left, there.top - here.top];
      return { frame, canvas: canvasOf(frame), dx, dy };
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
  const repeatPointer = (event, from, type) => {
    for (const { canvas, dx, dy } of others(from)) {
      canvas.dispatchEvent(new PointerEvent(type, {
        ...shared(event), clientX: event.clientX + dx, clientY: event.clientY + dy,
        pointerId: event.pointerId + OWN_POINTERS, pointerType: event.pointerType,
        isPrimary: event.isPrimary, button: event.button, buttons: event.buttons,
      }));
    }
  };
  const down = (event) => {
    const from = event.isTrusted && onMap(event.target) && frameOf(event.target);
    if (from) held.set(event.pointerId, { from, start: event });
  };
  const move = (event) => {
    const pointer = event.isTrusted && held.get(event.pointerId);
    if (!pointer || !canvasOf(pointer.from)) return;
    const { start } = pointer;
    const far = Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > FAR;
    if (!dragging && far) {
      dragging = true;
      for (const each of held.values()) repeatPointer(each.start, each.from, "pointerdown");
    }
    if (dragging) repeatPointer(event, pointer.from, "pointermove");
  };
  const up = (event) => {
    const pointer = event.isTrusted && held.get(event.pointerId);
    if (!pointer) return;
    if (dragging && canvasOf(pointer.from)) repeatPointer(event, pointer.from, event.type);
    held.delete(event.pointerId);
    if (!held.size) dragging = false;
  };

  const repeatKey = (event) => {
    const from = event.isTrusted && event.target instanceof Element
      && event.target.matches(".deck-events-root") && frameOf(event.target);
    if (!from) return;
    for (const { frame } of others(from)) {
      frame.querySelector(".deck-events-root")?.dispatchEvent(new KeyboardEvent(event.type, {
        ...shared(event), key: event.key, code: event.code, repeat: event.repeat,
      }));
    }
  };

  const listeners = {
    wheel: repeatWheel, pointerdown: down, pointermove: move, pointerup: up, pointercancel: up,
    keydown: repeatKey, keyup: repeatKey,
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
