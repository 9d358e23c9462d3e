"""Measure: ``python -m benchmarks [WHAT] [--help]``.

``speed`` (also without a word) lets learners and their peers take turns at the same work.
``group-sizes`` tells of the learners' accuracy at every group size.
``counts`` tells of flows learned from counts alone.
``local-counts`` learns from counts of thousands of cells, whose flows stay within a reach.
``flow-map`` tells how fast the flow map draws in a browser.
``lasting`` times whole studies, by which the app tells how long learning takes.
``evidence`` tells who is followed through counts that are published.
``memory`` holds what learning from counts is told to take against what it takes.
``gates`` tells of flows learned from entries and exits, beside what others make of them.
``load`` lets many people use one server at once.
``big-files`` counts files larger than memory, beside DuckDB.
"""

from __future__ import annotations

import sys

from benchmarks.big_files import command as big_files
from benchmarks.counts import command as counts
from benchmarks.evidence import command as evidence
from benchmarks.flow_map import command as flow_map
from benchmarks.gates import main as gates
from benchmarks.group_sizes import command as group_sizes
from benchmarks.lasting import command as lasting
from benchmarks.load import main as load
from benchmarks.local_counts import main as local_counts
from benchmarks.memory import main as memory
from benchmarks.speed import command as speed

COMMANDS = {
    "speed": speed.main,
    "group-sizes": group_sizes.main,
    "counts": counts.main,
    "local-counts": local_counts,
    "evidence": evidence.main,
    "lasting": lasting.main,
    "big-files": big_files.main,
    "gates": gates,
    "load": load,
    "memory": memory,
}


def main(words: list[str]) -> int:
    """Run what is asked for, without a word that of speed."""
    if not words:
        return speed.main([])
    what, *options = words
    if what == "flow-map":
        flow_map()
        return 0
    if what not in COMMANDS:
        print(__doc__)
        return 0 if what in ("-h", "--help") else 2
    return int(COMMANDS[what](options) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
