"""A report on flows as one page: what they are, how sure, what they were checked by.

It opens without a network, holds no script, and prints on white paper. Whoever reads it has only
this file, so that it says in words what each figure is.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from agg_core.base.moves import entries
from agg_core.base.version import __version__
from agg_core.evidence.lengths import bins_with_people
from agg_core.evidence.sums import cell_flows, hourly
from agg_core.evidence.tables import corrected
from agg_core.exports.svg import Series, histogram, profile, xy_plot
from agg_core.learn.table import LEARNERS
from agg_core.study.result import WHOLE_DAY, FlowResult

if TYPE_CHECKING:
    from agg_core.evidence.changes import Changes
    from agg_core.evidence.examine import Evidence
    from agg_core.evidence.presets import Preset, Verdict
    from agg_core.evidence.profiles import Profile

__all__ = ["ABOUT_CRITERIA", "digest_of", "report_page"]

MOST_ROWS = 40
"""Rows of a table; what is more is told, and found in the files."""

MOST_TIMES = 400
"""Those of a table with figures at every time of day."""

MOST_SECTORS = 12
"""Sectors whose flows are a table from each to each."""

FEW, NOBODY = 10, 0.05
"""People below which tenths are told, and below which there are none."""

ABOUT_CRITERIA = (
    "These criteria were written for vehicles on roads, and of models that were fitted to counts. "
    "Met, they do not say that flows are right: GEH forgives large errors of large volumes and "
    "looks at single places, so that a matrix may pass at most counters and be far off elsewhere. "
    "Hold it against the lengths of moves, the sectors and counts that it has not seen, too."
)
"""What is to be known before anybody reads a verdict."""

STYLE = """
:root{color-scheme:light dark;--text:#1b1f24;--pale:#667079;--line:#d5dadf;--paper:#fff;
--a:#1f5fa8;--b:#c4651a;--mark:#1b1f24;--good:#1a6b3c;--bad:#a3261d}
@media (prefers-color-scheme:dark){:root{--text:#e6e8ea;--pale:#a2abb3;--line:#3a424a;
--paper:#14181c;--a:#7db3ee;--b:#f0a35e;--mark:#fff;--good:#7fd19f;--bad:#f19a92}}
@media print{:root{color-scheme:light;--text:#000;--pale:#444;--line:#bbb;--paper:#fff;
--a:#1f5fa8;--b:#c4651a;--mark:#000;--good:#1a6b3c;--bad:#a3261d}
body{max-width:none;margin:0;font-size:10pt}}
@page{size:A4;margin:18mm 16mm}
body{font:15px/1.5 system-ui,'Segoe UI',Roboto,'Noto Sans','Noto Sans CJK JP',sans-serif;
color:var(--text);background:var(--paper);max-width:54rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}
h3{font-size:1rem;margin:1.2rem 0 .3rem}h1,h2,h3{break-after:avoid;overflow-wrap:anywhere}
p,li{max-width:46rem}.pale,caption{color:var(--pale)}section{break-inside:auto}
table{border-collapse:collapse;margin:.5rem 0 1rem;font-variant-numeric:tabular-nums;width:100%}
thead{display:table-header-group}tr,figure,svg{break-inside:avoid}
th,td{border-bottom:1px solid var(--line);padding:.22rem .5rem;text-align:left;
vertical-align:top;overflow-wrap:anywhere}td.n,th.n{text-align:right;white-space:nowrap}
caption{text-align:left;padding:.2rem 0;caption-side:top}.wide{overflow-x:auto}
svg{width:100%;height:auto;display:block}svg text{font-size:11px;fill:var(--pale)}
svg .grid{stroke:var(--line)}.s0{fill:var(--a);stroke:var(--a)}.s1{fill:var(--b);stroke:var(--b)}
svg .pale{fill-opacity:.35;stroke:none}svg .thin{fill:none;stroke-width:1;stroke-opacity:.5}
svg .day{fill:none;stroke-width:.8;stroke-opacity:.45}svg .mean{fill:none;stroke-width:2.5}
svg .s1.day,svg .s1.mean{stroke-dasharray:5 2}
svg .thick{fill:none;stroke-width:1.5}svg .point{fill-opacity:.45;stroke:none}
svg .counted{fill:none;stroke:var(--mark);stroke-width:2}
svg .same{stroke:var(--pale);stroke-dasharray:4 3}
.legend{margin:.1rem 0 .8rem;color:var(--pale);font-size:.9em}.legend span{margin-right:1.2rem}
.legend i{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.35em}
.legend i.s0{background:var(--a)}.legend i.s1{background:var(--b)}
.pass{color:var(--good);font-weight:600}.fail{color:var(--bad);font-weight:600}
.told{font-weight:600;white-space:nowrap}.note{border-left:3px solid var(--line);padding-left:.8rem}
"""


def report_page(
    result: FlowResult,
    evidence: Evidence,
    title: str,
    changes: Changes | None = None,
    *,
    profiles: Sequence[Profile] = (),
    preset: Preset | None = None,
    notes: Sequence[str] = (),
    made: str = "",
) -> bytes:
    """The report as an HTML page: data, method, settings, all figures, verdicts and doubts.

    ``profiles`` are shown over the times of day beside those of the lines of the evidence.
    ``preset`` is the one that `evidence` was asked by, whose source is named; ``notes`` are said
    beside those of the evidence, and ``made`` is when it was made. Text is escaped.
    """
    heading = escape(title or "Population flows")
    parts = [
        f"<h1>{heading}</h1>",
        f'<p class="pale">{escape(" · ".join(_heads(result, evidence, made)))}</p>',
        *_verdicts(evidence, preset),
        *_data(result, evidence),
        *_volumes(evidence),
        *_lengths(result, evidence),
        *_ends(result, evidence),
        *_sectors(result, evidence),
        *_profiles(profiles),
        *_fits(evidence),
        *([] if changes is None else _changes(changes, result)),
        *_doubts(result),
        *_notes([*evidence.notes, *notes]),
        *_made_with(result),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>{heading}</title><style>{STYLE}</style></head><body>"
        f"{''.join(parts)}</body></html>"
    ).encode()


def digest_of(result: FlowResult) -> str:
    """SHA-256 of all flows of the estimate in hexadecimal, to know the same result by again."""
    found = hashlib.sha256()
    for name in result.states.names:
        found.update(name.encode("utf-8") + b"\n")
    for time in result.times:
        found.update(time.encode("utf-8") + b"\n")
        flows = np.ascontiguousarray(entries(result.matrix(time)), dtype="<f8")
        found.update(flows.tobytes())
    return found.hexdigest()


# Words and tables


def _people(value: Any) -> str:
    if pd.isna(value):
        return "–"
    few = NOBODY < abs(value) < FEW
    return f"{value:,.1f}" if few else f"{round(value):,}"


def _of(digits: int) -> Callable[[Any], str]:
    # What is rounded to 0 has no sign.
    return lambda value: "–" if pd.isna(value) else f"{round(value, digits) + 0.0:,.{digits}f}"


def _interval(row: Mapping[Any, Any], words: Callable[[Any], str] = _people, of: str = "") -> str:
    """The interval of a row, and the corrected figure where it does not hold the estimate.

    A dash where none is known; ``of`` begins the names of its columns.
    """
    low, high = row[f"{of}low"], row[f"{of}high"]
    if pd.isna(low):
        return "–"
    middle = row.get(f"{of}corrected", np.nan)
    more = "" if pd.isna(middle) else f", corrected {words(middle)}"
    return f"{words(low)} – {words(high)}{more}"


def _table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    texts: int = 1,
    most: int = MOST_ROWS,
) -> str:
    """Up to ``most`` rows of text; columns after the first ``texts`` are of numbers."""
    if not rows:
        return ""

    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(
            f"<{tag}{'' if at < texts else ' class=n'}>{escape(cell)}</{tag}>"
            for at, cell in enumerate(cells)
        )

    more = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows[:most])
    left = len(rows) - most
    rest = f'<p class="pale">{left:,} rows more are not printed here.</p>' if left > 0 else ""
    return (
        f'<div class="wide"><table>{more}<thead><tr>{line(names, "th")}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{rest}"
    )


def _p(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def _times(evidence: Evidence) -> list[str]:
    """Times of day in order, without the mean of the day."""
    return [time for time in evidence.times if time != WHOLE_DAY] or list(evidence.times)


# Sections


def _heads(result: FlowResult, evidence: Evidence, made: str) -> Iterator[str]:
    yield result.basis
    yield f"flows: {evidence.about['source']}"
    if "reference" in evidence.about:
        yield f"held against {evidence.about['reference']}"
    if result.chosen_days:
        yield result.days_words
    if made:
        yield made


def _verdicts(evidence: Evidence, preset: Preset | None) -> Iterator[str]:
    if not (evidence.verdicts or evidence.not_asked):
        return
    name = evidence.about.get("preset", "")
    yield f"<h2>Checks: {escape(name)}</h2>"
    if preset is not None:
        yield _p(f"Source: {preset.source}.", "pale")
    rows = []
    for verdict in evidence.verdicts:
        kind = verdict.answer if verdict.answer in ("pass", "fail") else "told"
        rows.append(
            f'<tr><td class="{kind}">{escape(verdict.answer)}</td>'
            f"<td>{escape(verdict.criterion.words)}</td><td class=n>{verdict.n:,}</td>"
            f"<td class=n>{_within(verdict)}</td></tr>"
        )
    if rows:
        yield (
            '<div class="wide"><table><thead><tr><th>Answer</th><th>Criterion</th><th class=n>'
            "Values</th><th class=n>Within, as estimated</th></tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table></div>"
        )
    if evidence.not_asked:
        asked = "".join(f"<li>{escape(words)}</li>" for words in evidence.not_asked)
        yield f"<p>Nothing was counted for these, so that they were not asked:</p><ul>{asked}</ul>"
    yield _p(ABOUT_CRITERIA, "note")


def _within(verdict: Verdict) -> str:
    if verdict.criterion.is_fit:
        return "met" if verdict.met else "not met"
    return f"{verdict.share:.0%}"


def _data(result: FlowResult, evidence: Evidence) -> Iterator[str]:
    yield "<h2>Data and method</h2>"
    states = result.states
    outside = " and the outside" if states.has_outside else ""
    minutes = "" if result.step_minutes is None else f" of {result.step_minutes:g} minutes"
    times = _times(evidence)
    hours = times[0] if len(times) == 1 else f"{len(times)} times from {times[0]} to {times[-1]}"
    yield _p(
        f"{result.basis[:1].upper()}{result.basis[1:]}. {states.n_cells:,} cells{outside}, steps"
        f"{minutes}, {hours}. All counts here are {evidence.unit}."
    )
    learner = LEARNERS.get(result.learner)
    if learner is not None:
        yield _p(f"Learner: {learner.label}. {learner.about}")
    else:
        yield _p(f"Learner: {result.learner}.")
    # Of counts alone, where somebody named days.
    for sentence in result.summary().get("day_sentences") or ():
        yield _p(sentence)
    yield _p(result.about_intervals, "note")
    totals = _totals(result, evidence, times)
    yield "<h3>People who move, over the day</h3>"
    if len(times) > 1:
        yield profile(times, [totals], ("People who move, by time", "time", evidence.unit))
    rows = [
        [
            time,
            _people(value),
            _interval({"low": low, "high": high, "corrected": float(corrected(value, low, high))}),
        ]
        for time, value, low, high in zip(
            times, totals.values, totals.low, totals.high, strict=True
        )
    ]
    yield _table(["Time", evidence.unit, "Interval"], rows, most=MOST_TIMES)


def _totals(result: FlowResult, evidence: Evidence, times: Sequence[str]) -> Series:
    """All moves between cells at each time."""
    factor, _ = hourly(result)
    labels = {result.source_label(source): source for source in result.sources}
    source = labels[evidence.about["source"]]
    values, lows, highs = [], [], []
    for time in times:
        flows = cell_flows(result, [time], source, factor, ())
        moved = flows.summed(flows.moves.astype(float))
        nothing = np.full(1, np.nan)
        low, high = moved.interval() or (nothing, nothing)
        values.append(float(moved.estimate[0]))
        lows.append(float(low[0]))
        highs.append(float(high[0]))
    return Series("as estimated", values, lows, highs)


MOST_TEXT = 200


def _listed(value: Any) -> str:
    """A value of a list: a date and its label, or one by itself."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _settings(result: FlowResult) -> Iterator[tuple[str, str]]:
    """Names and values of all settings, one below the other."""

    def walk(values: Mapping[str, Any], before: str) -> Iterator[tuple[str, str]]:
        for name, value in values.items():
            words = f"{before}{name.replace('_', ' ')}"
            if isinstance(value, Mapping):
                yield from walk(value, f"{words}: ")
                continue
            text = ", ".join(map(_listed, value)) if isinstance(value, list | tuple) else str(value)
            text = "not set" if value is None else text
            yield words, text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"

    yield from walk(result.settings.to_dict(), "")


def _volumes(evidence: Evidence) -> Iterator[str]:
    table = evidence.volumes
    if table.empty:
        return
    yield "<h2>Screenlines and cordons</h2>"
    yield _p(
        "People whose straight way from the middle of one cell to that of another crosses a line, "
        "by direction. In and out of a cordon are those who end on its other side, or pass through."
    )
    times = _times(evidence)
    for line, rows in table.groupby("line", sort=False):
        yield f"<h3>{escape(str(line))}</h3>"
        series = []
        for direction, some in rows.groupby("direction", sort=False):
            by_time = some.set_index("time").reindex(times)
            columns = {name: by_time[name].astype(float).tolist()
                       for name in ("count", "low", "high", "counted")}  # fmt: skip
            series.append(
                Series(str(direction), columns["count"], columns["low"], columns["high"],
                       columns["counted"], _days(evidence.by_day, str(line), str(direction), times))
            )  # fmt: skip
        yield profile(times, series, (f"Volumes across {line}", "time", evidence.unit))
        yield _table(
            ["Time", "Direction", evidence.unit, "Interval", "Reference", "Counted", "GEH", "SQV"],
            [
                [row["time"], row["direction"], _people(row["count"]),
                 _interval(row), _people(row["reference"]),
                 _people(row["counted"]), _of(1)(row["geh"]), _of(2)(row["sqv"])]
                for row in rows.to_dict("records")
            ],
            texts=2, most=MOST_TIMES,
        )  # fmt: skip


def _days(by_day: pd.DataFrame, line: str, direction: str, times: list[str]) -> list[list[float]]:
    """Volumes of each day at all times; nan at those at which nothing was seen on it."""
    rows = by_day.loc[(by_day["line"] == line) & (by_day["direction"] == direction)]
    return [
        some.set_index("time")["count"].reindex(times).astype(float).tolist()
        for _, some in rows.groupby("day", sort=False)
    ]


def _profiles(profiles: Sequence[Profile]) -> Iterator[str]:
    if profiles:
        yield "<h2>Times of day</h2>"
    for one in profiles:
        yield f"<h3>{escape(one.name)}</h3>"
        times = one.rows["time"].drop_duplicates().tolist()
        days, series = one.days.assign(line=one.name), []
        for direction, some in one.rows.groupby("direction", sort=False):
            by_time = some.set_index("time").reindex(times)
            mean, low, high = (
                by_time[name].astype(float).tolist() for name in ("count", "low", "high")
            )
            of_days = _days(days, one.name, str(direction), times)
            series.append(Series(str(direction), mean, low, high, days=of_days))
        yield profile(times, series, (f"{one.name} over the times of day", "time", one.unit))
        yield _table(
            ["Time", "Direction", one.unit, "Interval", "Reference"],
            [
                [row["time"], str(row["direction"]), _people(row["count"]),
                 _interval(row), _people(row["reference"])]
                for row in one.rows.to_dict("records")
            ],
            texts=2, most=MOST_TIMES,
        )  # fmt: skip


LENGTHS = {
    "mean_km": ("Mean length of moves, km", 2),
    "sd_km": ("Spread (standard deviation), km", 2),
    "share_within": ("Share of people who stay in their cell", 3),
    "coincidence": ("Coincidence ratio with the reference", 3),
}


def _lengths(result: FlowResult, evidence: Evidence) -> Iterator[str]:
    if evidence.lengths.empty:
        return
    yield "<h2>Lengths of moves</h2>"
    time = result.busiest
    bins = bins_with_people(evidence.histogram.loc[evidence.histogram["time"] == time])
    beside = bins["reference"].astype(float).tolist()
    counts, low, high = (bins[name].astype(float).tolist() for name in ("count", "low", "high"))
    shown = Series("as estimated", counts, low, high)
    edges = [*bins["from_km"].tolist(), *bins["to_km"].tolist()[-1:]]
    yield histogram(edges, shown, beside, (f"Lengths of moves, {time}", "km", evidence.unit))
    rows = []
    for row in evidence.lengths.to_dict("records"):
        words, digits = LENGTHS[row["figure"]]
        number = _of(digits)
        rows.append([
            row["time"], words, number(row["value"]),
            _interval(row, number), number(row["reference"]),
        ])  # fmt: skip
    rows.sort(key=lambda row: row[0] != time)
    yield _table(
        ["Time", "Figure", "Value", "Interval", "Reference"], rows, texts=2, most=MOST_TIMES
    )


def _ends(result: FlowResult, evidence: Evidence) -> Iterator[str]:
    yield "<h2>Trip ends</h2>"
    time = result.busiest
    rows = evidence.trip_ends.loc[evidence.trip_ends["time"] == time]
    yield _p(f"People who leave a cell for another, and who come to it from others, {time}.")
    if rows["reference"].notna().any():
        yield xy_plot(
            rows["reference"].astype(float).tolist(), rows["count"].astype(float).tolist(),
            (f"Trip ends against the reference, {time}", f"reference, {evidence.unit}",
             f"estimate, {evidence.unit}"),
        )  # fmt: skip
    words = {"out": "leave", "in": "come"}
    largest = rows.sort_values("count", ascending=False, kind="stable")
    yield _table(
        ["Cell", "Who", evidence.unit, "Interval", "Reference"],
        [
            [str(row["place"]), words[row["end"]], _people(row["count"]),
             _interval(row), _people(row["reference"])]
            for row in largest.to_dict("records")
        ],
        "The largest first", texts=2,
    )  # fmt: skip


def _sectors(result: FlowResult, evidence: Evidence) -> Iterator[str]:
    table = evidence.sector_flows
    if table.empty:
        return
    time = result.busiest
    yield "<h2>Flows between sectors</h2>"
    yield _p(f"Moves from cell to cell by the sectors of both ends, {time}, {evidence.unit}.")
    rows = table.loc[table["time"] == time]
    names = list(dict.fromkeys(rows["origin"]))
    if len(names) <= MOST_SECTORS:
        by_pair = rows.set_index(["origin", "dest"])
        lines = []
        for origin in names:
            cells = []
            for dest in names:
                row = by_pair.loc[(origin, dest)]
                ends = "" if pd.isna(row["low"]) else f" ({_interval(row)})"
                cells.append(f"{_people(row['count'])}{ends}")
            lines.append([str(origin), *cells])
        yield _table(["From, to", *map(str, names)], lines)
    largest = rows.sort_values("count", ascending=False, kind="stable")
    yield _table(
        ["From", "To", evidence.unit, "Interval", "Reference"],
        [
            [str(row["origin"]), str(row["dest"]), _people(row["count"]),
             _interval(row), _people(row["reference"])]
            for row in largest.to_dict("records")
        ],
        "The largest first", texts=2,
    )  # fmt: skip


FIT_FIGURES = (
    ("slope", "slope", 3), ("intercept", "intercept", 1), ("r2", "R²", 3),
    ("rmse", "RMSE", 1), ("percent_rmse", "RMSE in %", 0),
)  # fmt: skip


def _fits(evidence: Evidence) -> Iterator[str]:
    if evidence.fits.empty:
        return
    yield "<h2>Fits</h2>"
    yield _p("The straight line of all values against those counted, over all times of day.")
    rows = []
    for row in evidence.fits.to_dict("records"):
        for name, words, digits in FIT_FIGURES:
            number = _of(digits)
            ends = _interval(row, number, f"{name}_")
            rows.append([str(row["of"]), f"{row['n']:,}", words, number(row[name]), ends])
    yield _table(["Of", "Values", "Figure", "Value", "Interval"], rows, texts=3)


def _changes(changes: Changes, result: FlowResult) -> Iterator[str]:
    yield "<h2>What changed</h2>"
    yield _p(changes.sentence)
    names = np.array(result.states.names, dtype=object)
    before, after = changes.labels
    for table, columns in (
        (changes.volumes, ("line", "direction")),
        (changes.sector_flows, ("origin", "dest")),
        (changes.flows, ("origin", "dest")),
        (changes.trip_ends, ("place", "end")),
    ):
        rows = []
        for row in table.head(MOST_ROWS).to_dict("records"):
            words = [row[name] for name in columns]
            if table is changes.flows:
                words = [names[int(number)] for number in words]
            called = "changed" if row["changed"] else ""
            rows.append([
                *map(str, words), called, _people(row["before"]), _people(row["after"]),
                _people(row["difference"]), _interval(row),
            ])  # fmt: skip
        heads = [*(name.capitalize() for name in columns), "Called", before, after, "Difference"]
        yield _table([*heads, "Interval"], rows, texts=3)


def _doubts(result: FlowResult) -> Iterator[str]:
    summary = result.summary()
    said = [str(doubt["sentence"]) for doubt in summary.get("doubts") or ()]
    first = summary.get("doubt_of_counts")
    if isinstance(first, str) and first:
        said = [first, *said]
    if not said:
        return
    yield "<h2>What speaks against these flows</h2>"
    yield f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in said)}</ul>"


def _notes(notes: Sequence[str]) -> Iterator[str]:
    if notes:
        yield "<h2>Notes</h2>"
        yield f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"


def _made_with(result: FlowResult) -> Iterator[str]:
    yield "<h2>Settings</h2>"
    settings = [list(row) for row in _settings(result)]
    yield _table(["Setting", "Value"], settings, texts=2, most=MOST_TIMES)
    yield "<h2>Made with</h2>"
    python = ".".join(map(str, sys.version_info[:3]))
    rows = [["agg-core", __version__], ["Python", python]]
    rows += [[name, version(name)] for name in ("numpy", "scipy", "pandas", "numba")]
    rows.append(["SHA-256 of the flows", digest_of(result)])
    yield _table(["What", "Which"], rows, texts=2)
