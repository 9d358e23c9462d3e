"""Words for people who go in and who go out, in names of columns and in columns of ways."""

from __future__ import annotations

__all__ = ["ENTRY_NAMES", "EXIT_NAMES"]

ENTRY_NAMES = (
    *("entries", "entry", "in", "ins", "boardings", "boarding", "ons", "tapins", "tapin"),
    *("enters", "entered", "inflow", "entradas", "entrees", "entrées", "ingress", "入場", "乗車"),
    *("boarded", "checkins", "subidas", "einsteiger", "tap_in", "board"),
)
EXIT_NAMES = (
    *("exits", "exit", "out", "outs", "alightings", "alighting", "offs", "tapouts", "tapout"),
    *("leaves", "exited", "outflow", "salidas", "sorties", "egress", "出場", "降車"),
    *("alighted", "checkouts", "bajadas", "aussteiger", "alight"),
)
