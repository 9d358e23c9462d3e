"""The Lab's story as scenes of a flow map: people, blocks, noise, groups, and what learners see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agg_core.lab.story import GROUP_SIZE, Morning
from agg_core.lab.teaching import TeachingResult, learner_label
from agg_core.learn.table import PAPERS
from agg_core.plotting.flow_map import MapFlows
from agg_core.plotting.lab import TRUTH_KEY, flows_of_sizes, size_label
from agg_core.plotting.scenes import MapDots, MapNumbers, MapScene

__all__ = ["flows_of_story", "scenes"]

STAGED: dict[str, Any] = {
    "show": "estimate", "cells": [], "step": None, "shade": "people", "net": False,
    "clusters": False,
}  # fmt: skip
"""What a scene sets of the view; who plays in between finds the scene as it was."""


def flows_of_story(result: TeachingResult, people: Morning) -> MapFlows:
    """Flows at every group size, and the scenes that lead to them."""
    return replace(flows_of_sizes(result), scenes=scenes(result, people))


def scenes(result: TeachingResult, people: Morning) -> list[MapScene]:
    """People, blocks, noise, groups, and what each learner sees in them beside the truth."""
    n = len(people.states)
    first, last = people.clock[0], people.clock[-1]
    return [
        MapScene(
            "People on their way",
            [
                f"A made-up morning in Tokyo: {n:,} people from {first} to {last}. Each dot is one "
                f"of {len(people.shown):,} of them. Knowing all of this, one need not guess."
            ],
            STAGED,
            MapDots(
                people.clock, people.places, people.movers,
                ("stays in a block", "goes to another block"), in_cells=False,
            ),
        ),
        MapScene(
            "Blocks",
            [
                f"Places are rounded to {people.grid.n_cells} blocks: of a person only the block "
                f"is known. Every half hour {people.moves:,.0f} of {n:,} go to another block: "
                "these are the flows that we want to know."
            ],
            STAGED,
            MapDots(
                people.clock, people.in_cells(people.states), people.movers,
                ("stays in its block", "goes to another block"),
            ),
        ),
        MapScene(
            "Noise",
            [
                f"Now {people.misclassify:.0%} of the positions are counted in a block next door. "
                f"Who jumps there and back seems to move: {people.seeming_moves:,.0f} people every "
                f"half hour, where {people.moves:,.0f} do."
            ],
            STAGED,
            MapDots(
                people.clock, people.in_cells(people.reported), people.misplaced,
                ("counted where it is", "counted next door at some time"),
            ),
        ),
        MapScene(
            "Groups",
            [
                f"Nobody may be followed. People are put into {people.n_groups:,} groups of "
                f"{GROUP_SIZE}, and of a group only the number in each block is kept. This is one "
                "group. Who went where? Many answers fit."
            ],
            STAGED,
            numbers=[
                MapNumbers(f"One group of {GROUP_SIZE} at {clock}", counts)
                for clock, counts in zip(people.clock[:2], people.group, strict=False)
            ],
        ),
        MapScene(
            "What the paper's learner sees",
            [
                f"From such counts CFB, the paper's learner, finds the likeliest flows. "
                f"{_sees(result, PAPERS, size)} Change the group size M below."
                for size in result.group_sizes
            ],
            {**STAGED, "show": "both", "truth": TRUTH_KEY, "time": size_label(GROUP_SIZE),
             "until": size_label(GROUP_SIZE)},
        ),
        *(
            MapScene(
                "What a better learner sees",
                [
                    f"The same counts, learned by “{learner_label(name)}”, in the middle. "
                    f"{_sees(result, name, size)} What the groups hide is not invented but left "
                    "open."
                    for size in result.group_sizes
                ],
                {**STAGED, "show": "all", "truth": TRUTH_KEY, "time": size_label(GROUP_SIZE),
                 "until": size_label(GROUP_SIZE)},
            )
            for name in result.learners
            if name != PAPERS
        ),
    ]  # fmt: skip


def _sees(result: TeachingResult, learner: str, group_size: int) -> str:
    point = result.point(learner, group_size)
    if group_size == 1:
        return f"At M = 1 nothing is hidden: {point.moves:,.0f} people move every half hour."
    return (
        f"At M = {group_size} it sees {point.moves:,.0f} people move every half hour, "
        f"{point.figures.total_ratio:.1f} times the true movement; {point.figures.cpc:.0%} of all "
        "movement is in the right place."
    )
