"""A run that its owner shares: nothing that is below its limit leaves the server for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import streamlit as st

from agg_core.evidence.limited import shared
from agg_core.exports import EXPORTS
from agg_core.store.saved_runs import SavedRun
from agg_core.study.people import StudyResult
from agg_core.study.result import FlowResult
from agg_core.study.settings import WindowSettings
from tests.agg_core import counted, tiny
from tests.agg_core.plotting.unpacked import Unpacked
from tests.pages.visit import Visit
from ui import owner
from ui.cached import store

LEAST = 2
FORMAT = "view.export.format"
PARTS = (
    "Screenlines",
    "Sectors",
    "Times of day",
    "Lengths and trip ends",
    "Checks",
    "What changed",
)


@pytest.fixture(scope="module")
def result() -> StudyResult:
    window = WindowSettings(60, 3, ("02:00", "08:00"))
    made = tiny.run(tiny.people_of_two_days(), tiny.settings(window, iterations=2))[1]
    assert isinstance(made, StudyResult)
    assert made.days
    return made


@pytest.fixture(autouse=True)
def for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that others use too."""
    monkeypatch.setattr(owner, "LOCAL", ())


@pytest.fixture
def run(result: StudyResult) -> SavedRun:
    kept = store().save(result, "shared", "somebody")
    return store().share(kept.id, True, LEAST)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Callable[[], bytes]]]:
    """Name and maker of each file that was offered."""
    offered: list[tuple[str, Callable[[], bytes]]] = []

    def button(_: str, data: Callable[[], bytes], **about: Any) -> None:
        offered.append((about["file_name"], data))

    monkeypatch.setattr(st, "download_button", button)
    return offered


def tables(of: FlowResult) -> Iterator[tuple[str, str, int | None, dict[tuple[int, int], float]]]:
    """Every table of flows that a result has, by its time, source and step."""
    for time in of.times:
        for source in of.sources:
            for step in (None, *range(of.n_steps)):
                rows = of.rows(time, source, step)
                ends = zip(rows["origin"].tolist(), rows["dest"].tolist(), strict=True)
                yield time, source, step, dict(zip(ends, rows["count"].tolist(), strict=True))


def secrets_of(result: FlowResult, least: float) -> frozenset[float]:
    """Flows of few people that no other number is likely to equal."""
    few = least * result.days_summed
    values = {n for *_, flows in tables(result) for n in flows.values() if 0 < n < few}
    return frozenset(n for n in values if round(n, 6) != n)


def of_days(result: FlowResult) -> Iterator[FlowResult]:
    yield result
    for day in result.days:
        yield result.of_days([day])


def sent(visit: Visit) -> bytes:
    """All that the server tells the browser of the page."""
    protos = (getattr(node, "proto", None) for node in visit.at._tree)
    return b"".join(p.SerializeToString() for p in protos if hasattr(p, "SerializeToString"))


def told(content: bytes, secrets: frozenset[float]) -> set[float]:
    """Those of some numbers that are in a message, as a number of eight bytes or as a text."""
    words = {n: (np.float64(n).tobytes(), repr(n).encode(), f"{n:.6g}".encode()) for n in secrets}
    return {n for n, ways in words.items() if any(way in content for way in ways[:2])}


def on_maps(visit: Visit, secrets: frozenset[float]) -> set[float]:
    """Those that are on a map, whose numbers have four bytes."""
    few = {float(np.float32(n)) for n in secrets}
    found: set[float] = set()
    for packed in visit.maps:
        body = packed.body[: len(packed.body) // 4 * 4]
        found |= few & set(np.frombuffer(body, "<f4").tolist())
    return found


def has(packed: Unpacked, result: FlowResult, least: float) -> bool:
    """Whether a map has just the moves of a result."""
    for time, source, step, flows in tables(result):
        shown = packed.flows(source, time, step)
        moves = {pair: n for pair, n in flows.items() if pair[0] != pair[1] and n >= least}
        if shown.keys() != moves.keys():
            return False
    return True


def test_all_that_the_page_flows_sends_to_others_is_within_the_limit(
    run: SavedRun, result: StudyResult
) -> None:
    secrets = secrets_of(result, LEAST)
    assert len(secrets) > 20
    visit = Visit("Flows", run=run.id, at="08:00")
    assert not visit.errors
    assert has(visit.maps[0], shared(result, LEAST), 0.0)
    assert told(sent(visit), secrets) == on_maps(visit, secrets) == set()
    assert visit.at.dataframe[0].value["People"].min() >= LEAST * result.days_summed
    assert visit.figures == {}, "figures of all flows together cannot be limited"
    assert "flows.days" not in visit.keys("multiselect")
    assert "flows.found" not in visit.keys("button")
    assert [f"{LEAST} people" in info.value for info in visit.at.info] == [True]
    for choice in ({"cells": [4]}, {"step": 1}, {"show": "difference"}, {"truth": "counted"}):
        visit.tell(**choice)
        assert told(sent(visit), secrets) == on_maps(visit, secrets) == set()


def test_its_owner_sees_all(result: StudyResult) -> None:
    mine = Visit("Runs")
    kept = store().save(result, "mine", mine.at.session_state["owner"])
    store().share(kept.id, True, LEAST)
    mine.go("Runs").press(f"runs.{kept.id}.open")
    assert has(mine.maps[0], result, 0.02)
    assert on_maps(mine, secrets_of(result, LEAST))
    assert len(mine.figures) == 5
    assert "flows.days" in mine.keys("multiselect")
    assert not mine.at.info
    assert not mine.go("Flows").errors


@pytest.mark.parametrize("day", [0, 1])
def test_single_days_are_not_told_to_others(run: SavedRun, result: StudyResult, day: int) -> None:
    visit = Visit("Flows", run=run.id, at="08:00", day=result.days[day])
    alone = secrets_of(result.of_days([result.days[day]]), LEAST)
    assert len(alone) > 5
    assert ["day" in error for error in visit.errors] == [True]
    assert told(sent(visit), alone) == on_maps(visit, alone) == set()


def test_files_for_others_are_within_the_limit(
    run: SavedRun,
    result: StudyResult,
    made: list[tuple[str, Callable[[], bytes]]],
) -> None:
    secrets = secrets_of(result, LEAST)
    visit = Visit("Flows", run=run.id, at="08:00")
    offered = {
        key for key, export in EXPORTS.items() if export.available(result) and export.limitable
    }
    assert set(visit._widget(FORMAT).options) == {EXPORTS[key].label for key in offered}
    assert "view.export.least" not in visit.keys("number_input")
    contents = {}
    for key in sorted(offered):
        visit.set(FORMAT, key)
        name, maker = made[-1]
        assert f"at-least-{LEAST}-people" in name
        contents[key] = maker()
        assert contents[key]
        assert told(contents[key], secrets) == set(), key
    last = max(offered)
    visit.set("view.export.round", 5)
    assert told(made[-1][1](), secrets) == set()
    assert made[-1][1]() != contents[last]


def test_evidence_for_others_is_of_what_is_shown(run: SavedRun, result: StudyResult) -> None:
    secrets = secrets_of(result, LEAST)
    visit = Visit("Flows", run=run.id, at="08:00").go("Evidence")
    assert "Report" not in visit._widget("evidence.part").options
    visit.press("evidence.line.add")
    for part in PARTS:
        visit.set("evidence.part", part)
        assert not visit.errors
        assert told(sent(visit), secrets) == set(), part
        assert "evidence.found" not in visit.keys("button")
        for table in visit.at.dataframe:
            if "Estimate" in table.value:
                assert table.value["Estimate"].notna().all()


def test_two_runs_of_others_are_within_their_limits(run: SavedRun, result: StudyResult) -> None:
    again = store().save(result, "again", "somebody")
    store().share(again.id, True, 2 * LEAST)
    visit = Visit("Runs", a=run.id, b=again.id)
    assert not visit.errors
    first, second = (shared(result, least) for least in (LEAST, 2 * LEAST))
    (packed,) = visit.maps
    secrets = secrets_of(result, LEAST)
    assert told(sent(visit), secrets) == on_maps(visit, secrets) == set()
    for source, limited in (("estimate", first), ("other", second)):
        rows = limited.rows("08:00")
        assert len(packed.flows(source, "08:00")) == (rows["origin"] != rows["dest"]).sum()
    assert not [t for t in visit.at.table if "Learned from groups" in t.value.columns]


def test_the_least_number_is_set_where_a_run_is_shared(result: StudyResult) -> None:
    mine = Visit("Runs")
    people = store().save(result, "people", mine.at.session_state["owner"])
    counts = store().save(counted.study(), "counts", mine.at.session_state["owner"])
    assert (people.least_people, counts.least_people) == (10, 0)
    mine.go("Runs").press(f"runs.{people.id}.manage")
    assert mine.value(f"runs.{people.id}.least") == 10
    mine.at.toggle(key=f"runs.{people.id}.shared").set_value(True).run()
    mine.set(f"runs.{people.id}.least", 3)
    kept = store().about(people.id)
    assert (kept.shared, kept.least_people) == (True, 3)
    mine.press(f"runs.{people.id}.manage").press(f"runs.{people.id}.manage")
    assert mine.value(f"runs.{people.id}.least") == 3
    mine.press(f"runs.{counts.id}.manage")
    assert mine.value(f"runs.{counts.id}.least") == 0
    mine.at.toggle(key=f"runs.{counts.id}.shared").set_value(True).run()
    other = Visit("Flows", run=counts.id)
    assert not other.errors
    assert has(other.maps[0], counted.study(), 0.02)


def test_counts_within_a_limit_are_shown_like_others() -> None:
    result = counted.both()
    kept = store().save(result, "counts", "somebody")
    store().share(kept.id, True, 3)
    visit = Visit("Flows", run=kept.id)
    assert not visit.errors
    assert not visit.go("Evidence").errors
    assert not visit.go("Learn").errors


def test_runs_that_were_shared_before_there_were_limits_have_that_of_their_kind(
    result: StudyResult,
) -> None:
    kept = store().save(result, "nobody's")
    visit = Visit("Flows", run=kept.id, at="08:00")
    assert not visit.errors
    assert has(visit.maps[0], shared(result, 10), 0.0)
