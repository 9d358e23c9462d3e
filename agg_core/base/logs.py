"""What a server writes down of its work: events as lines of JSON, nothing of anybody's data."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TextIO

__all__ = ["FLOWS_LOG", "JSON_LINES", "JsonLines", "begin_log", "note"]

FLOWS_LOG = "FLOWS_LOG"
"""The variable that chooses how events are written: `JSON_LINES`, or as Python's logging does."""

JSON_LINES = "json"

LOGGER = "flows"
OURS = ("agg_core", "ui", "pages", "app")
OTHERS = ("streamlit", "uvicorn")
"""Loggers of the server, whose sentences may quote what a visitor sent."""


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time (UTC), level, event, code, and a duration in seconds.

    The message of a record and of an exception is left out, since it may quote data; of an
    exception its kind is told and the line of our code that it came through last.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", "other"),
            "code": getattr(record, "code", record.name),
        }
        duration = getattr(record, "duration", None)
        if duration is not None:
            told["duration"] = round(float(duration), 3)
        kind, _, trace = record.exc_info or (None, None, None)
        if kind is not None:
            told |= {"kind": kind.__name__, "at": _last_of_ours(trace)}
        return json.dumps(told)


def _last_of_ours(trace: TracebackType | None) -> str:
    """Module and line, such as ``ui.flows:120``; empty where none of our code took part."""
    found = ""
    while trace is not None:
        name = str(trace.tb_frame.f_globals.get("__name__", ""))
        if name.split(".", maxsplit=1)[0] in OURS:
            found = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def begin_log(environment: Mapping[str, str], stream: TextIO | None = None) -> bool:
    """Write events as `FLOWS_LOG` says, to standard error if no ``stream`` is given.

    Returns whether that is lines of JSON. What is called again changes nothing.
    """
    if environment.get(FLOWS_LOG, "").strip().lower() != JSON_LINES:
        return False
    log = logging.getLogger(LOGGER)
    if not any(isinstance(handler.formatter, JsonLines) for handler in log.handlers):
        lines = logging.StreamHandler(stream or sys.stderr)
        lines.setFormatter(JsonLines())
        log.addHandler(lines)
        log.setLevel(logging.INFO)
        log.propagate = False
    for name, other in list(logging.root.manager.loggerDict.items()):
        if name.split(".", maxsplit=1)[0] in OTHERS and isinstance(other, logging.Logger):
            for handler in other.handlers:
                handler.setFormatter(JsonLines())
    return True


def note(
    event: str,
    code: str,
    *,
    duration: float | None = None,
    fault: BaseException | None = None,
) -> None:
    """Write down an event: ``event`` and ``code`` are words of ours, never text from data.

    ``duration`` is in seconds; with a ``fault`` it is an error.
    """
    logging.getLogger(LOGGER).log(
        logging.INFO if fault is None else logging.ERROR,
        "%s %s", event, code,
        exc_info=fault,
        extra={"event": event, "code": code, "duration": duration},
    )  # fmt: skip
