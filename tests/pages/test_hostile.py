"""Hostile text from every place that it comes from, on every page: it is shown as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1.element_tree import Block, Element

from agg_core.base.engine import ENGINES_ALLOWED
from agg_core.io.allowed import FLOWS_FOLDERS
from agg_core.lab.experiments import LabSettings
from agg_core.store.jobs import EXPERIMENT
from agg_core.study.counts import CountStudy
from agg_core.study.day_types import DayType, DayTypes
from tests.agg_core import counted, tiny
from tests.pages.visit import PAGES, Visit
from ui import shell
from ui.cached import store
from ui.two_runs import tick_key
from ui.workspace import jobs

HOSTILE = "<img src=x onerror=alert(1)> **b** [x](javascript:1) ![y](//e.org/y) :smile: $x$ `c`"
NAME = "<img src=x onerror=alert(1)> **b** :smile: `c`"
"""The same in fewer letters, which no page cuts off."""

LABEL = HOSTILE[:40]
"""Days have labels of no more letters."""

MARKED = re.compile(r"(?<!\\)(<img|\*\*b\*\*|\]\(javascript|!\[y\]|:smile:|\$x\$|`c`)")
"""What of it would act in markdown; `shell.plain` has a backslash before each."""

PLAIN = {
    "options", "value", "default", "rawValues", "setValue", "stringValue", "placeholder", "url",
    "id", "formId", "elementId", "key", "alt", "queryString", "arrowData", "userKey", "rawValue",
}  # fmt: skip
"""Fields whose texts a browser shows as they are, or not at all. Options of buttons in a row are
messages of their own and no texts."""


DRAWN_AS_TEXT = ("dataframe", "plotly_chart", "deck_gl_json_chart", "text", "code",
                 "bidi_component", "html", "imgs")  # fmt: skip
"""Elements whose content is no markdown: tables on a canvas, figures, maps, text, code."""


def elements(block: Block) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every block and element of a page: its kind, and what of it reaches the browser."""
    if getattr(block, "proto", None) is not None:
        yield "block", MessageToDict(block.proto)
    for child in block.children.values():
        if isinstance(child, Block):
            yield from elements(child)
        elif isinstance(child, Element) and hasattr(child.proto, "DESCRIPTOR"):
            yield child.type, MessageToDict(child.proto)


def texts(value: Any, name: str = "") -> Iterator[str]:
    """Texts of a message that are read as markdown, or may be."""
    if isinstance(value, str):
        if name not in PLAIN:
            yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from texts(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each, name)


def check(visit: Visit) -> int:
    """No text of the page acts; returns how many of its texts hold what is hostile."""
    n = 0
    for kind, message in elements(visit.at._tree):
        if kind in DRAWN_AS_TEXT:
            continue
        for text in texts(message):
            assert not MARKED.search(text), f"{kind}: {text}"
            n += "<img" in text
        if message.get("allowHtml"):
            assert "onerror" not in str(message)
    for table in visit.at.table:  # whose cells are markdown
        assert not MARKED.search(table.value.to_csv())
    for figure in visit.charts():
        assert "<img" not in json.dumps(figure)
    return n


def hostile_study() -> CountStudy:
    """A result with what is hostile in all that it has from a file."""
    cells = (HOSTILE, *(f"{HOSTILE} {i}" for i in range(1, 9)))
    days = counted.DAYS
    types = DayTypes((DayType("weekday", days), DayType(LABEL, days[:1], True, 2.5, 0.5)))
    settings = replace(
        counted.study().settings, day_labels=tuple((day, LABEL) for day in days)
    )  # fmt: skip
    return replace(counted.by_day(), cells=cells, typed_days=types, settings=settings)


PARTS = ("Screenlines", "Sectors", "Times of day", "Lengths and trip ends", "Checks",
         "What changed", "Report")  # fmt: skip


def part(visit: Visit, name: str) -> None:
    visit.set("evidence.part", name)


def shape(name: str, geometry: dict[str, Any]) -> bytes:
    feature = {"type": "Feature", "properties": {"name": name}, "geometry": geometry}
    return json.dumps({"type": "FeatureCollection", "features": [feature]}).encode()


LINE = {"type": "LineString", "coordinates": [[139.1, 34.9], [139.1, 35.4]]}
AREA = {"type": "Polygon", "coordinates": [
    [[139.0, 35.0], [139.2, 35.0], [139.2, 35.3], [139.0, 35.3], [139.0, 35.0]]
]}  # fmt: skip


def upload(visit: Visit, key: str, content: bytes | str) -> None:
    data = content.encode() if isinstance(content, str) else content
    name = HOSTILE.replace("/", "") + (".csv" if key.endswith("counters.file") else ".geojson")
    visit.at.file_uploader(key=key).upload(name, data, "text/plain")
    visit._run()


def test_a_saved_run_on_every_page() -> None:
    run = store().save(hostile_study(), HOSTILE)
    other = store().save(replace(hostile_study(), choice="other"), f"{HOSTILE} other")
    visit = Visit("Flows", run=run.id, cell="0,1")
    assert check(visit) > 0
    visit.set("flows.days", list(counted.DAYS[:1]))
    check(visit)
    for page in PAGES:
        check(visit.go(page))
    visit.go("Runs").press(f"runs.{run.id}.manage")
    for each in (run, other):
        visit.at.checkbox(key=tick_key(each.id)).check()
    assert check(visit.go("Runs")) > 0


def test_all_parts_of_the_evidence_with_what_one_brings() -> None:
    run = store().save(hostile_study(), HOSTILE)
    store().save(hostile_study(), f"{HOSTILE} other")
    visit = Visit("Flows", run=run.id).go("Evidence")
    upload(visit, "evidence.lines.file", shape(NAME, LINE))
    assert not visit.errors
    assert check(visit) > 0
    part(visit, "Sectors")
    upload(visit, "evidence.areas.file", shape(NAME, AREA))
    assert not visit.errors
    assert check(visit) > 0
    part(visit, "Checks")
    upload(visit, "evidence.counters.file", f"line,direction,time,count\n{NAME},E,08:00,12\n")
    assert not visit.errors
    check(visit)
    visit.set("evidence.reference", "usual")
    for name in PARTS:
        part(visit, name)
        check(visit)
    part(visit, "What changed")
    for kind in ("days", "runs"):
        visit.set("evidence.kind", kind)
        assert not visit.errors
        check(visit)
    part(visit, "Times of day")
    for kind in ("line", "sector", "cell", "pair"):
        visit.set("evidence.profile.kind", kind)
        assert not visit.errors
        check(visit)


def test_files_whose_names_columns_and_values_are_hostile() -> None:
    people = tiny.frame(tiny.day_states())
    people["user_id"] = people["user_id"].astype(str) + HOSTILE
    people[HOSTILE] = HOSTILE
    visit = Visit("Data").upload(f"{HOSTILE.replace('/', '')}.csv", people.to_csv(index=False))
    assert not visit.errors
    assert check(visit) > 0
    for page in ("Grid", "Learn", "Flows", "Runs", "Evidence", "Home"):
        check(visit.go(page))
    visit.go("Data").upload("broken.csv", f"{HOSTILE},b\n{HOSTILE},1\n{HOSTILE},2\n")
    assert visit.errors
    check(visit)


def test_counts_whose_cells_are_hostile() -> None:
    rows = ["time,cell,count"]
    for day in range(1, 5):
        for hour in range(24):
            for cell in ("", "2 ", "3 "):
                rows.append(f'2024-05-0{day}T{hour:02d}:00,"{cell}{HOSTILE}",{50 + hour + day}')
    visit = Visit("Data").upload("counts.csv", "\n".join(rows))
    assert not visit.errors
    check(visit)
    for page in ("Grid", "Learn", "Flows"):
        check(visit.go(page))


def test_work_of_a_hostile_title(monkeypatch: pytest.MonkeyPatch) -> None:
    long = LabSettings(n_states=(10,), n_seeds=100, iterations=5000)
    jobs().add(EXPERIMENT, long, title=HOSTILE, owner="")
    for page in ("Learn", "Lab"):
        visit = Visit("Data").press("data.tokyo_commuters").go(page)
        if page == "Lab":
            visit.set("view.lab.part", "experiments")
        assert check(visit) > 0
    (job,) = jobs().all()
    # Once it is damaged nobody can tell that it is at work.
    jobs().cancel(job.id)
    (Path(jobs().folder) / job.id / "about.json").write_text(HOSTILE)
    check(visit.go("Learn"))


def test_folders_and_engines_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = HOSTILE.replace("/", "")
    (tmp_path / name / name).mkdir(parents=True)
    monkeypatch.setenv(FLOWS_FOLDERS, str(tmp_path / name))
    for engines in (HOSTILE, f"dask,dask://{HOSTILE.replace(' ', '')}:1"):
        monkeypatch.setenv(ENGINES_ALLOWED, engines)
        visit = Visit("Data").press("data.tokyo_commuters")
        check(visit)
        check(visit.go("Learn"))


def test_a_hostile_address_is_told_as_text() -> None:
    for page in PAGES:
        for name in ("run", "job", "a", "b", "at", "cell", "part", "result"):
            check(Visit(page, **{name: HOSTILE, **({"a": HOSTILE} if name == "b" else {})}))


def test_the_check_finds_what_is_not_plain() -> None:
    assert MARKED.search(HOSTILE)
    assert not MARKED.search(shell.plain(HOSTILE))
