"""Counts of all and a panel of a few, held against counts alone, the panel alone, and others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from agg_core.counts.certainty import flows_by_slot
from agg_core.counts.held_out import gravity_prediction
from agg_core.counts.pairs import CountPairs, pairs_of
from agg_core.counts.panel import homes_of, panel_of
from agg_core.io.flow_tables import FlowTable
from agg_core.study.counts import CountStudy, count_study_steps, move_shape
from agg_core.study.other_evidence import OtherEvidence
from agg_core.study.settings import CountLearnSettings
from benchmarks.counts.cases import Case, bike_zones, bikes, tokyo
from benchmarks.counts.contest import figures, shown
from benchmarks.group_sizes.tables import Row, real_data

__all__ = ["FOLLOWED", "Followed", "drawn_panel", "old_matrix_rows", "panel_means", "panel_rows"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ROUNDS = 60
"""Of proportional fitting."""

LIKELIER = 3.0
"""How much likelier those who live in the western half are to be in a biased panel."""

LEAST = 1e-3
"""People of a seed who move as gravity says, so that all counts can be met."""


@dataclass(frozen=True)
class Followed:
    """A case, and the ``states`` (T, K) of everybody, -1 where somebody is not there.

    ``west`` (c,) are the cells of which people may be likelier to be in a panel.
    """

    case: Case
    states: IntArray
    west: npt.NDArray[np.bool_]


def tokyo_followed(side: int = 10) -> Followed:
    """People of Tokyo who were followed all day."""
    case = tokyo(side)
    people = pd.read_csv(real_data("tokyo_people_flow") / "tokyo_1000users_20min.csv")
    people = people.loc[people["full_day"] == 1]
    by = 20 // side
    cell = (people["row"] // by * side + people["col"] // by).to_numpy()
    when = pd.to_datetime(people["time"], utc=True).dt.floor("20min")
    _, person = np.unique(people["user_id"], return_inverse=True)
    states = np.full((len(case.table.times), int(person.max()) + 1), -1)
    states[case.table.times.get_indexer(when), person] = cell
    return _checked(Followed(case, states, np.arange(side**2) % side < side / 2))


def bikes_followed(case: Case, zone: IntArray | None = None) -> Followed:
    """Bikes of Jersey City by station, or by the zones of stations."""
    folder = real_data("jersey_city_bikes")
    counted = pd.read_csv(folder / "derived_counts_hour_station.csv")
    stations = np.sort(counted["station"].unique())
    trips = pd.read_csv(folder / "JC-201510-citibike-tripdata_nodemog.csv")
    trips["begins"] = pd.to_datetime(trips["Start Time"])
    trips["ends"] = pd.to_datetime(trips["Stop Time"])
    hours = case.table.times.tz_localize(None).to_numpy()
    states = []
    for _, mine in trips.sort_values("begins").groupby("Bike ID"):
        last = np.searchsorted(mine["begins"].to_numpy(), hours, side="right") - 1
        at = np.maximum(last, 0)
        first, then = (mine[f"{end} Station ID"].to_numpy()[at] for end in ("Start", "End"))
        on_trip = hours < mine["ends"].to_numpy()[at]
        there = np.where(last < 0, first, np.where(on_trip, -1, then))
        states.append(np.searchsorted(stations, there))
    tracks = np.stack(states, axis=1)
    places = pd.read_csv(folder / "derived_stations.csv").set_index("station").reindex(stations)
    lon = places["lon"].to_numpy()
    west = np.asarray(lon < np.nanmedian(lon))
    if zone is not None:
        tracks = zone[tracks]
        west = np.array([west[zone == number].mean() > 0.5 for number in range(zone.max() + 1)])
    return _checked(Followed(case, tracks, west))


def _zones() -> Followed:
    case, by_station = bike_zones(), bikes()
    # Which zone a station is of is told by the counts of both.
    into = np.linalg.lstsq(by_station.table.counts, case.table.counts, rcond=None)[0]
    return bikes_followed(case, into.argmax(axis=1))


def _checked(followed: Followed) -> Followed:
    """The same, if those who were followed are those who were counted."""
    table, states = followed.case.table, followed.states
    moment, person = np.nonzero(states >= 0)
    counts = np.zeros_like(table.counts)
    np.add.at(counts, (moment, states[moment, person]), 1)
    assert (counts == table.counts).all(), "those who were followed are not those who were counted"
    return followed


FOLLOWED: dict[str, Callable[[], Followed]] = {
    "tokyo 10x10": tokyo_followed,
    "bike zones": _zones,
    "bikes": lambda: bikes_followed(bikes()),
}
"""People or bikes who were followed, all of them, by name."""


def drawn_panel(
    followed: Followed, share: float, rng: np.random.Generator, *, biased: bool
) -> IntArray:
    """States (T, K) of a panel, drawn at random or by home."""
    n = followed.states.shape[1]
    homes = homes_of(followed.states, np.zeros(len(followed.states), dtype=bool))
    chances = np.where(followed.west[homes] & biased, LIKELIER, 1.0)
    size = max(round(share * n), 1)
    chosen = rng.choice(n, size=size, replace=False, p=chances / chances.sum())
    return followed.states[:, np.sort(chosen)]


def panel_rows(
    name: str, shares: tuple[float, ...], seeds: int, *, replicates: int = 0
) -> Iterator[Row]:
    """A row per way, size of the panel, way of drawing it, and seed."""
    followed = FOLLOWED[name]()
    case = followed.case
    pairs = pairs_of(case.table)
    shape = move_shape(case.table, outside=pairs.has_outside)
    gravity = gravity_prediction(pairs, shape)[0]
    base = {"case": name, "share": 0.0, "biased": False, "seed": 0}
    yield {**base, "method": "gravity", **figures(flows_by_slot(pairs, gravity[None]), case.moves)}
    for seed in range(seeds):
        settings = CountLearnSettings(replicates=replicates, seed=seed)
        base = {"case": name, "share": 0.0, "biased": False, "seed": seed}
        row, alone = _learned(case, settings, None, None)
        yield {**base, "method": "counts alone", **row}
        for share, biased in product(shares, (False, True)):
            states = drawn_panel(followed, share, np.random.default_rng(seed), biased=biased)
            base = {"case": name, "share": share, "biased": biased, "seed": seed}
            found = replace(pairs, panel=panel_of(states, _first(pairs)))
            yield {**base, "method": "panel scaled up", **_scaled(case, found)}
            yield {**base, "method": "ipf", **_fitted(case, found, gravity)}
            # What is tried of counts alone is the same.
            row, _ = _learned(case, settings, states, alone)
            yield {**base, "method": "both", **row}


def old_matrix_rows(case: Case, *, seed: int = 0) -> Iterator[Row]:
    """Counts of the second half of a period, and all moves of the first half as an old matrix.

    Beside it one that misleads: the same trips, between other cells.
    """
    assert case.by_pair is not None
    half = len(case.by_pair) // 2
    table = case.table.take(np.arange(half, len(case.table.times)))
    moves = np.zeros_like(case.moves)
    np.add.at(moves, table.slot[:-1], case.by_pair[half:])
    old = case.by_pair[:half].sum(axis=0)
    origin, dest = np.nonzero(old * ~np.eye(len(old), dtype=bool))
    trips = old[origin, dest]
    other = np.random.default_rng(seed).permutation(trips)
    for method, counts in (("counts alone", None), ("matrix", trips), ("misleading", other)):
        beside = None
        if counts is not None:
            ends = {"time": 0, "origin": origin, "dest": dest, "count": counts, "rows": 1}
            beside = OtherEvidence(matrix=FlowTable(pd.DataFrame(ends), ()))
        settings = CountLearnSettings(replicates=0, seed=seed)
        *_, done = count_study_steps(table, settings, beside=beside)
        assert isinstance(done, CountStudy)
        weight = done.known_beside.get("matrix", {}).get("weight", 0.0)
        yield {"method": method, "weight": weight, **shown(done, moves), "seconds": done.wall_s}


def panel_means(rows: pd.DataFrame) -> pd.DataFrame:
    """Means of figures over seeds, and at how many seeds both are better than either alone."""
    by = ["case", "share", "biased", "method"]
    figure = ["cpc", "cpc_by_slot", "total_ratio"]
    means = rows.groupby(by, sort=False)[figure].mean().reset_index()
    both = rows.loc[rows["method"] == "both"]
    for of, other in product(figure[:2], ("counts alone", "panel scaled up")):
        beside = ["case", "seed", *["share", "biased"] * (other == "panel scaled up")]
        held = both.merge(rows.loc[rows["method"] == other], on=beside, suffixes=("", "_other"))
        held["better"] = held[of] > held[f"{of}_other"]
        better = held.groupby(by)["better"].sum().rename(f"{of} above {other}").reset_index()
        means = means.merge(better, on=by, how="left")
    return means


def _first(pairs: CountPairs) -> IntArray:
    assert pairs.moment is not None
    return pairs.moment


def _learned(
    case: Case, settings: CountLearnSettings, states: IntArray | None, like: CountStudy | None
) -> tuple[Row, CountStudy]:
    beside = None if states is None else OtherEvidence(states)
    known = None if like is None else like.remembered
    began = time.perf_counter()
    *_, done = count_study_steps(case.table, settings, known, beside=beside)
    assert isinstance(done, CountStudy)
    told = done.known_beside.get("panel", {})
    chosen = done.candidates.loc[done.candidates["chosen"]].iloc[0]
    what = f"prior={chosen['prior']:g} hours={chosen['hours']} movement={done.movement:.3f}"
    if told:
        what += f" weight={told['weight']:g} areas={[a['weight'] for a in told['areas']]}"
    row = {**shown(done, case.moves), "what": what, "seconds": time.perf_counter() - began}
    return row, done


def _scaled(case: Case, pairs: CountPairs) -> Row:
    """The moves of the panel, as many times as people were counted for one of it."""
    assert pairs.panel is not None
    moves = pairs.panel.moves(pairs.slot, len(pairs.slots), pairs.n_states)
    return figures(moves * (case.table.counts.sum() / moves.sum()), case.moves)


def _fitted(case: Case, pairs: CountPairs, gravity: FloatArray) -> Row:
    """Proportional fitting of the panel's moves of a time of day to both counts of each pair."""
    assert pairs.panel is not None
    moves = pairs.panel.moves(pairs.slot, len(pairs.slots), pairs.n_states)
    flows = np.zeros_like(moves)
    for p, slot in enumerate(pairs.slot):
        table = moves[slot] + LEAST * gravity
        for _ in range(ROUNDS):
            for axis, counts in ((1, pairs.before[p]), (0, pairs.after[p])):
                total = table.sum(axis=axis)
                factor = np.divide(counts, total, out=np.zeros_like(total), where=total > 0)
                table = table * np.expand_dims(factor, axis)
        flows[slot] += table
    return figures(flows, case.moves)
