from __future__ import annotations

import io
import json
import logging

import pytest

from agg_core.base import logs
from agg_core.base.logs import FLOWS_LOG, JSON_LINES, JsonLines, begin_log, note

SECRET = "Jane Doe, 139.7671, /home/jane/phones.csv"


@pytest.fixture
def stream(monkeypatch):
    """Where lines go; the loggers are as before afterwards."""
    monkeypatch.setattr(logs, "LOGGER", "flows.test")
    monkeypatch.setattr(logs, "OTHERS", ("strange",))
    yield io.StringIO()
    for name in ("flows.test", "strange"):
        logging.getLogger(name).handlers.clear()


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line(stream):
    assert begin_log({FLOWS_LOG: JSON_LINES}, stream)
    assert begin_log({FLOWS_LOG: " JSON "}, stream)
    note("page", "Flows", duration=0.12345)
    (told,) = lines(stream)
    assert told.pop("time").endswith("+00:00")
    assert told == {"level": "info", "event": "page", "code": "Flows", "duration": 0.123}


def test_a_fault_tells_its_kind_and_nothing_of_the_data(stream):
    begin_log({FLOWS_LOG: JSON_LINES}, stream)
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as first:
            raise ValueError(f"cannot read {SECRET}\nnext") from first
    except ValueError as fault:
        note("fault", "Data", fault=fault)
    assert len(stream.getvalue().splitlines()) == 1
    for part in SECRET.split(", "):
        assert part not in stream.getvalue()
    (told,) = lines(stream)
    assert (told["level"], told["kind"], told["at"]) == ("error", "ValueError", "")


def test_a_fault_tells_the_last_line_of_ours(stream):
    begin_log({FLOWS_LOG: JSON_LINES}, stream)
    with pytest.raises(AttributeError) as caught:
        begin_log(None)
    note("fault", "Data", fault=caught.value)
    assert lines(stream)[0]["at"].startswith("agg_core.base.logs:")


def test_what_others_write_is_told_without_its_words(stream):
    other = logging.getLogger("strange.server")
    other.addHandler(logging.StreamHandler(stream))
    begin_log({FLOWS_LOG: JSON_LINES}, stream)
    other.warning("no such file %s", SECRET)
    (told,) = lines(stream)
    assert (told["event"], told["code"], told["level"]) == ("other", "strange.server", "warning")
    assert "Jane" not in stream.getvalue()
    other.handlers.clear()


@pytest.mark.parametrize("said", [None, "", "plain"])
def test_without_a_choice_nothing_is_changed(said):
    before = list(logging.getLogger("flows").handlers)
    assert not begin_log({} if said is None else {FLOWS_LOG: said})
    assert logging.getLogger("flows").handlers == before
    assert not any(isinstance(handler.formatter, JsonLines) for handler in before)
