"""What was learned in a few figures: for programs as plain values, for people as lines."""

from __future__ import annotations

from typing import Any

from agg_core.base.report import printable
from agg_core.counts.contradictions import Contradiction
from agg_core.counts.mixing import SETTLED
from agg_core.counts.pair_tables import MOST_ENTRIES
from agg_core.study.crossings import contradiction_words
from agg_core.study.day_types import apart_words
from agg_core.study.people import reach_words

__all__ = ["counts_text", "gates_text", "people_text"]

LONGEST_LINE = 500
MOST_GATES = 20
OF_REACH = ("beyond_reach", "n_sequences", "reach_m")
FEATURES = {"distance": "10 km more", "line": "another line"}


def people_text(summary: dict[str, Any]) -> str:
    """The lines of `StudyResult.summary`."""
    reason = summary["learner_reason"]
    lines = [
        f"{summary['n_individuals']:,} people, {summary['n_sequences']:,} sequences in "
        f"{summary['n_groups']:,} groups, {summary['n_states']} states",
        *filter(None, [reach_words(*(summary[name] for name in OF_REACH))]),
        f"learner: {summary['learner']}" + (f", since {reason}" if reason else ""),
        *_noise(summary["noise"]),
        *_prior(summary),
        f"{summary['iterations']} iterations in {summary['wall_s']:.1f} s, "
        + ("converged" if summary["converged"] else _at_the_limit(summary["unsettled"])),
    ]
    lines.append(
        f"{summary['movers']:,.1f} people {_sure(summary)}move per {summary['step']}, at all times "
        "of day together"
    )
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
    return "\n".join([*lines, *_reference(summary)])


def _at_the_limit(unsettled: float) -> str:
    """What is to be thought of a learner that did not stand still."""
    return f"ended by the limit: more may change where {unsettled:.1%} of the people go"


def _noise(noise: dict[str, Any] | None) -> list[str]:
    """What noise of fixes was allowed for, and what is wrong with it."""
    if noise is None:
        return []
    metres = noise["unit"] == "metres"
    groups, single = (
        f"{noise[of]:,.0f} m" if metres else f"{noise[of]:.1%}" for of in ("groups", "single")
    )
    allowed = f"{groups} in positions" if metres else f"{groups} of fixes in a neighbour cell"
    if noise["learned"]:
        allowed += f" by groups, {single} by single people: learned"
    return [f"noise allowed for: {allowed}", *([noise["told"]] if noise["told"] else [])]


def _prior(summary: dict[str, Any]) -> list[str]:
    """The weight of the prior, where there is one, at each time of day."""
    if summary["prior"] is None:
        return []
    found = dict.fromkeys(f"{at['prior']:g}" for at in summary["times"])
    reason = summary["prior_reason"]
    since = f", since {reason}" if reason and len(found) == 1 else ""
    return [f"prior of {' and '.join(found)} people per cell{since}"]


def counts_text(summary: dict[str, Any]) -> str:
    """The lines of `CountStudy.summary`."""
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
            *filter(None, [summary["doubt_of_counts"]]),
            f"prior of {summary['prior']:g} people per cell, "
            + (f"times of day tied by {summary['hours']:g}" if summary["by_time"] else
               "the same chances all day")
            + ("" if not summary["day_types"] else
               f", {printable(apart_words(summary['types_apart']), LONGEST_LINE)}")
            + ("" if summary["own"] is None else f", rows of their own by {summary['own']:g}"),
            *(printable(sentence, LONGEST_LINE) for sentence in summary["day_sentences"]),
            *summary["beside_sentences"],
            summary["identifiability"],
            *_gates_beside(summary),
            f"mean error of counts kept aside: {errors}",
            f"{summary['movers']:,.1f} people {_sure(summary)}{_tense(summary)} per "
            f"{summary['step']}; "
            f"{_number_of(summary['n_flows'], 'flow')} above {summary['threshold']:g}"
            + ("" if resolved is None else f", {resolved:,} of them resolved"),
            *_draws(summary),
            *_days(summary),
            *_reference(summary),
            f"learned in {summary['wall_s']:.1f} s",
            *(f"doubt: {doubt['sentence']}" for doubt in summary["doubts"]),
        ]
    )  # fmt: skip


def _gates_beside(summary: dict[str, Any]) -> list[str]:
    """Gates beside the counts, what was set aside of them, and what each contradicts."""
    gates = summary["gates"]
    if gates is None:
        return []
    how = "learned" if gates["error_learned"] else "given"
    errors = ", ".join(
        f"{' '.join((gate['gate'], gate['direction']))} {gate['error']:.1%}"
        for gate in gates["gates"][:MOST_GATES]
    ) + (", ..." if gates["n_gates"] > MOST_GATES else "")  # fmt: skip
    aside = ", ".join(f"{cause} ({n:,})" for cause, n in gates["set_aside"].items())
    contradicted = [
        f"gate contradicts the counts: {contradiction_words(Contradiction(**found))}"
        for found in gates["contradictions"]
    ]
    lines = [
        f"{_number_of(gates['n_used'], 'count')} of {_number_of(gates['n_gates'], 'gate')}, "
        f"errors {how}: {errors}",
        *([f"rows of gates left out: {aside}"] if aside else []),
        *contradicted[:MOST_GATES],
    ]
    if len(contradicted) > MOST_GATES:
        lines.append(f"and {len(contradicted) - MOST_GATES:,} more: see --json")
    return [printable(line, LONGEST_LINE) for line in lines]


def gates_text(summary: dict[str, Any]) -> str:
    """The lines of `GateStudy.summary`."""
    resolved = summary["n_resolved"]
    never = summary["never_left"]
    balance = f"{abs(never):.2%} {'never left' if never >= 0 else 'left without an entry'}"
    weights = [
        f"{FEATURES[name]} x {at['factor']:.2f} ({at['low']:.2f} to {at['high']:.2f})"
        for name, at in summary["weights"].items()
    ]
    pace = summary["minutes_per_km"]
    learned = "; ".join([*weights, *([f"{pace:g} minutes a km"] if pace is not None else [])])
    told = learned if summary["learned"] else "too few days alike to learn who goes where"
    lists = {
        "days left out, since much is missing": summary["days_left_out"],
        "days that pass as another kind": summary["days_unusual"],
        "closed on some days": list(summary["closed"]),
    }
    return "\n".join(
        [
            f"{_number_of(summary['n_days'], 'day')}, {_number_of(summary['n_cells'], 'station')}, "
            f"{summary['n_entered']:,.0f} entries and {summary['n_left']:,.0f} exits: {balance}",
            *(printable(note, LONGEST_LINE) for note in summary["notes"]),
            *(
                printable(f"{what}: {', '.join(names)}", LONGEST_LINE)
                for what, names in lists.items()
                if names
            ),
            f"pattern: {told}",
            f"{summary['trips_per_day']:,.0f} trips a day; "
            f"{_number_of(summary['n_flows'], 'flow')} above {summary['threshold']:g} per "
            f"{summary['step']}" + ("" if resolved is None else f", {resolved:,} of them resolved"),
            *_reference(summary),
            f"learned in {summary['wall_s']:.1f} s",
        ]
    )


def _sure(summary: dict[str, Any]) -> str:
    """The interval of all who move, where there is one."""
    low, high = summary["movers_low"], summary["movers_high"]
    return "" if low is None else f"({low:,.1f} to {high:,.1f}) "


def _tense(summary: dict[str, Any]) -> str:
    """Whether who moves is what happened, and what is usual beside it."""
    if summary["happened"] is None:
        return "usually move"
    return f"moved, {summary['usual_movers']:,.1f} usually do,"


def _draws(summary: dict[str, Any]) -> list[str]:
    """What to do where draws of what happened have not mixed; nothing where they have."""
    r_hat, n_eff = summary["rhat"], summary["n_eff"]
    if r_hat is None or r_hat <= SETTLED:
        return []
    worth = "" if n_eff is None else f", worth {n_eff:,.0f} independent draws"
    return [
        f"draws of what happened have not mixed (R-hat {r_hat:.2f}, to be {SETTLED:g} at most"
        f"{worth}): use the usual flows (--source usual), or learn with larger cells"
    ]


def _days(summary: dict[str, Any]) -> list[str]:
    """That single days were not kept, if what happened on them was too much."""
    if summary["happened"] is None or summary["n_days_kept"]:
        return []
    return [
        f"what happened is not kept by day: these are more than {MOST_ENTRIES:,} flows; larger "
        "cells have fewer"
    ]


def _reference(summary: dict[str, Any]) -> list[str]:
    """How the flows meet those of a reference, where there is one."""
    found = summary.get("vs_reference")
    if found is None:
        return []
    figures = ", ".join(
        f"{name} {'no meaning' if found[name] is None else format(found[name], '.3f')}"
        for name in ("cpc", "cpc_by_time", "total_ratio", "coverage_90")
    )
    aside = ", ".join(f"{cause} {n:,}" for cause, n in found["set_aside"].items())
    return [
        f"against the reference: {figures} of {_number_of(found['n_flows'], 'flow')}"
        + (f"; rows left out: {aside}" if aside else "")
    ]


def _number_of(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
