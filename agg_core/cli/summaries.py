"""What was learned in a few figures: for programs as plain values, for people as lines."""

from __future__ import annotations

import math
from typing import Any

from agg_core.study.counts import CountStudy

__all__ = ["counts_summary", "counts_text", "people_text"]


def people_text(summary: dict[str, Any]) -> str:
    """The lines of `StudyResult.summary`."""
    reason = summary["learner_reason"]
    lines = [
        f"{summary['n_individuals']:,} people, {summary['n_sequences']:,} sequences in "
        f"{summary['n_groups']:,} groups, {summary['n_states']} states",
        f"learner: {summary['learner']}" + (f", since {reason}" if reason else ""),
        f"{summary['iterations']} iterations in {summary['wall_s']:.1f} s, "
        + ("converged" if summary["converged"] else "not converged: the limit ended it"),
    ]
    if summary["n_unconverged"]:
        lines.append(
            f"{summary['n_unconverged']:,} groups did not come to an agreement with their counts"
        )
    for name, title in (("vs_single", "against M = 1"), ("vs_counted", "against counted flows")):
        figures = ", ".join(
            f"{k} {'no meaning' if v is None else format(v, '.3f')}"
            for k, v in summary[name].items()
        )
        lines.append(f"{title}: {figures}")
    return "\n".join(lines)


def counts_summary(result: CountStudy) -> dict[str, Any]:
    """Figures of flows from counts in plain JSON types; None where a figure has no meaning.

    ``movers`` are people per step who change their cell, in the mean over a day; ``n_flows`` the
    moves above the threshold, ``n_resolved`` those of them that their interval tells from nothing.
    """
    moves = result.day_flows.loc[result.day_flows["origin"] != result.day_flows["dest"]]
    large = moves.loc[moves["count"] > result.settings.threshold]
    chosen = result.candidates.loc[result.candidates["chosen"]].iloc[0]
    known = result.people.any(axis=1)
    return {
        "n_days": result.n_days,
        "n_pairs": result.n_pairs,
        "n_left_out": result.n_left_out,
        "n_filled": result.n_filled,
        "n_cells": result.n_cells,
        "has_outside": bool(result.has_outside),
        "people": float(result.people[known].sum(axis=1).mean()) if known.any() else None,
        "step": result.step_name,
        "learner": result.learner,
        "learner_reason": result.choice,
        "prior": _number(chosen["prior"]),
        "by_time": len(result.transmats) > 1,
        "hours": _number(chosen["hours"]),
        "own": _number(chosen["own"]),
        "identified": result.identifiability.identified,
        "identifiability": result.identifiability.sentence,
        "held_out": {
            row["method"]: {name: _number(row[name]) for name in ("mae", "rmse", "score")}
            for row in result.held_out.to_dict("records")
        },
        "threshold": result.settings.threshold,
        "movers": float(moves["count"].sum()),
        "n_flows": len(large),
        "n_resolved": int(large["resolved"].sum()) if result.settings.replicates else None,
        "wall_s": round(result.wall_s, 3),
    }


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def counts_text(summary: dict[str, Any]) -> str:
    """The lines of `counts_summary`."""
    people = summary["people"]
    resolved = summary["n_resolved"]
    errors = ", ".join(
        f"{method} {'no meaning' if at['mae'] is None else format(at['mae'], '.3f')}"
        for method, at in summary["held_out"].items()
    )
    return "\n".join(
        [
            f"{_number_of(summary['n_days'], 'day')}, "
            f"{_number_of(summary['n_pairs'], 'pair')} of successive counts, "
            + _number_of(summary["n_cells"], "cell")
            + (" and outside" if summary["has_outside"] else "")
            + ("" if people is None else f", {people:,.1f} people at a time"),
            f"{_number_of(summary['n_left_out'], 'pair')} left out, since a count is missing; "
            f"{_number_of(summary['n_filled'], 'suppressed count')} filled in",
            f"learner: {summary['learner']}, since {summary['learner_reason']}",
            f"prior of {summary['prior']:g} people per cell, "
            + (f"times of day tied by {summary['hours']:g}" if summary["by_time"] else
               "the same chances all day")
            + ("" if summary["own"] is None else f", rows of their own by {summary['own']:g}"),
            summary["identifiability"],
            f"mean error of counts kept aside: {errors}",
            f"{summary['movers']:,.1f} people move per {summary['step']}; "
            f"{_number_of(summary['n_flows'], 'flow')} above {summary['threshold']:g}"
            + ("" if resolved is None else f", {resolved:,} of them resolved"),
            f"learned in {summary['wall_s']:.1f} s",
        ]
    )  # fmt: skip


def _number_of(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
