import csv
import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from agg_core.io import read_trajectories
from agg_core.space.build import Grid
from agg_core.tables import sequences as sequences_module
from agg_core.tables.sequences import cell_counts, to_sequences
from tests.faults import refused

GRID = Grid.from_bbox(0, 0, 4, 1, 1, 4)
"""Four cells in a row: the cell is the whole part of the longitude."""
OUT = 9.5
"""A longitude outside the grid."""


def tracks(rows, tz="UTC"):
    """Trajectories of (person, UTC time, longitude)."""
    users, times, lons = zip(*rows, strict=True)
    frame = pd.DataFrame(
        {"user_id": users, "time": pd.to_datetime(list(times), utc=True), "lon": lons, "lat": 0.5}
    )
    return read_trajectories(frame, tz=tz)


def day(rows, tz="UTC"):
    """Trajectories of one person on one day from (clock, longitude)."""
    return tracks([("a", f"2024-05-01T{clock}Z", lon) for clock, lon in rows], tz)


def listed(sequences):
    """Every sequence as (person, date, time) -> states."""
    windows = sequences.windows
    return {
        (
            sequences.user_ids[sequences.individual[i]],
            windows["local_date"].iloc[sequences.window[i]],
            windows["time"].iloc[sequences.window[i]],
        ): tuple(sequences.states[i].tolist())
        for i in range(len(sequences))
    }


def test_the_last_fix_of_a_bin_is_its_state():
    trajectories = day([("08:01", 0.5), ("08:29", 1.5), ("08:30", 2.5), ("09:29", 3.5)])
    sequences = to_sequences(trajectories, GRID, "30min", 3, start="08:00")
    assert sequences.states.tolist() == [[1, 2, 3]]
    assert sequences.weights.tolist() == [1.0]
    assert sequences.windows.to_dict("records") == [
        {
            "start_utc": pd.Timestamp("2024-05-01T08:00Z"),
            "local_date": "2024-05-01",
            "time": "08:00",
        }
    ]
    assert (sequences.n_states, sequences.has_outside, sequences.dropped) == (4, False, {})


def test_an_empty_bin_is_bridged_only_within_max_gap():
    trajectories = day([("08:10", 0.5), ("09:10", 1.5)])
    bridged = to_sequences(trajectories, GRID, "30min", 3, start="08:00")
    assert bridged.states.tolist() == [[0, 0, 1]]
    with refused("no-window", "fills 1 bin"):
        to_sequences(trajectories, GRID, "30min", 3, start="08:00", max_gap="59min")


def test_nothing_is_carried_beyond_the_last_fix():
    trajectories = day([("08:10", 0.5), ("08:40", 1.5), ("15:00", 1.5)])
    sequences = to_sequences(trajectories, GRID, "30min", 2)
    assert listed(sequences) == {("a", "2024-05-01", "08:00"): (0, 1)}
    assert sequences.dropped == {"track does not cover the window": 1}


def test_neighbouring_bins_of_two_tracks_do_not_join():
    trajectories = day([("08:02", 0.5), ("08:58", 1.5), ("09:02", 2.5)])
    with refused("no-window", "No track covers"):
        to_sequences(trajectories, GRID, "30min", 3, start="08:00", max_gap="40min")
    joined = to_sequences(trajectories, GRID, "30min", 3, start="08:00", max_gap="56min")
    assert joined.states.tolist() == [[0, 1, 2]]


def test_no_flow_is_made_between_two_people():
    trajectories = tracks([("a", "2024-05-01T08:10Z", 0.5), ("b", "2024-05-01T08:40Z", 1.5)])
    with refused("no-window", "No track covers"):
        to_sequences(trajectories, GRID, "30min", 2)


def test_leaving_the_grid_leads_to_the_outside_cell():
    trajectories = tracks(
        [
            ("a", "2024-05-01T08:10Z", 0.5),
            ("a", "2024-05-01T08:40Z", OUT),
            ("b", "2024-05-01T08:10Z", OUT),
            ("b", "2024-05-01T08:40Z", OUT),
        ]
    )
    sequences = to_sequences(trajectories, GRID, "30min", 2)
    assert sequences.states.tolist() == [[0, 4]]
    assert (sequences.n_cells, sequences.n_states, sequences.has_outside) == (4, 5, True)
    assert sequences.user_ids.tolist() == ["a"]
    assert sequences.dropped == {"outside the grid throughout": 1}


def test_windows_follow_the_local_clock_and_may_pass_midnight():
    rows = [("14:30", 0.5), ("14:50", 1.5), ("15:10", 2.5)]  # 23:30, 23:50, 00:10 in Tokyo
    for zone in ("Asia/Tokyo", "UTC+09:00"):
        trajectories = day(rows, zone)
        anchored = to_sequences(trajectories, GRID, "20min", 3, start=["23:20"])
        assert listed(anchored) == {("a", "2024-05-01", "23:20"): (0, 1, 2)}
        assert anchored.windows["start_utc"].iloc[0] == pd.Timestamp("2024-05-01T14:20Z")
        whole_day = to_sequences(trajectories, GRID, "20min", 2)
        assert listed(whole_day) == {("a", "2024-05-01", "23:20"): (0, 1)}


def test_overlapping_times_and_the_choice_of_one():
    trajectories = day([("08:10", 0.5), ("08:40", 1.5), ("09:10", 2.5)])
    sequences = to_sequences(trajectories, GRID, "30min", 2, start=["08:30", "08:00"])
    assert sequences.times == ("08:00", "08:30")
    assert sequences.at_time("8:30").states.tolist() == [[1, 2]]
    assert sequences.at_time("08:00").states.tolist() == [[0, 1]]
    assert sequences.at_time("08:00").windows["time"].tolist() == ["08:00"]
    with refused("unknown-start-time", "09:00; choose one of 08:00, 08:30"):
        sequences.at_time("09:00")


@pytest.mark.parametrize(
    ("settings", "code", "told"),
    [
        ({"step": "7min"}, "step-not-dividing-day", "7min"),
        ({"step": "soon"}, "malformed-duration", "soon"),
        ({"step": "-30min"}, "value-out-of-range", ""),
        ({"step": "1ms"}, "step-not-dividing-day", "1ms"),
        ({"max_gap": "0min"}, "value-out-of-range", ""),
        ({"length": 0}, "value-out-of-range", ""),
        ({"length": 49}, "window-too-long", "49"),
        ({"start": "08:10"}, "start-off-border", "30 min"),
        ({"start": "25:00"}, "malformed-clock-time", "25:00"),
        ({"start": []}, "no-start-given", ""),
        ({"start": "17:00"}, "no-window", "08:10 and 09:10 (UTC)"),
    ],
)
def test_settings_that_do_not_fit_are_named(settings, code, told):
    trajectories = day([("08:10", 0.5), ("08:40", 1.5), ("09:10", 2.5)])
    with refused(code, told):
        to_sequences(trajectories, GRID, **settings)


def test_more_bins_than_fit_are_refused_before_they_are_made(monkeypatch):
    trajectories = day([("08:10", 0.5), ("09:10", 1.5)])
    monkeypatch.setattr(sequences_module, "MAX_FILLED_BINS", 1000)
    with refused("too-many-bins", "3,601"):
        to_sequences(trajectories, GRID, "1s", 2, max_gap="1h")


def test_no_fix_inside_names_both_extents():
    with refused("nothing-in-extent", "0, 0, 4, 1; the data span 9.5, 0.5"):
        to_sequences(day([("08:10", OUT)]), GRID)


def test_a_skipped_hour_makes_no_flow_and_is_counted():
    # 01:10, 01:40, 03:10, 03:40, 04:10 on the clock of Copenhagen, half an hour apart in truth
    hours = ["00:10", "00:40", "01:10", "01:40", "02:10"]
    rows = [("a", f"2018-03-25T{t}Z", i % 4 + 0.5) for i, t in enumerate(hours)]
    trajectories = tracks(rows, "Europe/Copenhagen")
    starts = [f"{h:02d}:{m}" for h in range(6) for m in ("00", "30")]
    sequences = to_sequences(trajectories, GRID, "30min", 2, start=starts)
    assert listed(sequences) == {
        ("a", "2018-03-25", "01:00"): (0, 1),
        ("a", "2018-03-25", "03:00"): (2, 3),
        ("a", "2018-03-25", "03:30"): (3, 0),
    }
    assert sequences.dropped == {
        "clock moved within the window": 3,  # 01:30 and 02:00 and 02:30 hold missing bins
        "track does not cover the window": 2,  # 00:30 and 04:00
    }
    counts = cell_counts(trajectories, GRID, "30min")
    assert [str(t)[11:16] for t in counts["time"]] == ["01:00", "01:30", "03:00", "03:30", "04:00"]


def test_a_repeated_hour_makes_no_flow_and_is_counted():
    # 01:40, 02:10, 02:40, 02:10 again, 02:40 again, 03:10, 03:40
    start = pd.Timestamp("2018-10-27T23:40Z")
    rows = [("a", str(start + i * pd.Timedelta("30min")), i % 4 + 0.5) for i in range(7)]
    trajectories = tracks(rows, "Europe/Copenhagen")
    starts = [f"{h:02d}:{m}" for h in range(1, 4) for m in ("00", "30")]
    sequences = to_sequences(trajectories, GRID, "30min", 2, start=starts)
    assert listed(sequences) == {("a", "2018-10-28", "03:00"): (1, 2)}
    assert sequences.dropped == {
        "clock moved within the window": 3,  # 01:30, 02:00, 02:30
        "track does not cover the window": 2,  # 01:00 and 03:30
    }


def brute_force(trajectories, grid, step, length, times, max_gap):
    """Windows cut by hand: person by person, bin by bin; kept states and causes of the rest."""
    zone = ZoneInfo(trajectories.timezone)
    people = {}
    for row in trajectories.table.itertuples():
        cell = int(grid.assign([row.lon], [row.lat])[0])
        fix = (row.time.to_pydatetime(), grid.n_cells if cell < 0 else cell)
        people.setdefault(row.user_id, []).append(fix)
    kept, causes = {}, Counter()
    for user, fixes in people.items():
        track_of, track = [], 0
        for i, (time, _) in enumerate(fixes):
            track += i > 0 and time - fixes[i - 1][0] > max_gap
            track_of.append(track)
        date = fixes[0][0].astimezone(zone).date() - timedelta(days=2)
        while date <= fixes[-1][0].astimezone(zone).date():
            for hour, minute in times:
                local = datetime(date.year, date.month, date.day, hour, minute)
                edges = [local + k * step for k in range(length + 1)]
                early, late = (
                    [e.replace(tzinfo=zone, fold=f).astimezone(UTC) for e in edges] for f in (0, 1)
                )
                shown = [
                    edges[0] <= t.astimezone(zone).replace(tzinfo=None) < edges[-1]
                    for t, _ in fixes
                ]
                states = []
                for begin in early[:-1]:
                    inside = [i for i, (t, _) in enumerate(fixes) if begin <= t < begin + step]
                    before = [i for i, (t, _) in enumerate(fixes) if t < begin]
                    after = [i for i, (t, _) in enumerate(fixes) if t >= begin + step]
                    if inside:
                        states.append((fixes[inside[-1]][1], track_of[inside[-1]]))
                    elif (
                        before and after and (fixes[after[0]][0] - fixes[before[-1]][0] <= max_gap)
                    ):
                        states.append((fixes[before[-1]][1], track_of[before[-1]]))
                cells = tuple(cell for cell, _ in states)
                full = len(states) == length and len({t for _, t in states}) == 1
                steady = early[:-1] == late[:-1] and all(
                    b - a == step for a, b in itertools.pairwise(early)
                )
                if full and steady and set(cells) != {grid.n_cells}:
                    kept[user, str(date), f"{hour:02d}:{minute:02d}"] = cells
                elif full and steady:
                    causes["outside the grid throughout"] += 1
                elif steady and any(shown):
                    causes["track does not cover the window"] += 1
            date += timedelta(days=1)
    return kept, causes


@pytest.mark.parametrize("seed", range(12))
def test_random_tracks_agree_with_windows_cut_by_hand(seed):
    rng = np.random.default_rng(seed)
    zone = ["UTC", "Asia/Kolkata", "America/New_York", "Europe/Copenhagen"][seed % 4]
    minutes = [20, 30, 60][seed % 3]
    length = int(rng.integers(1, 5))
    max_gap = pd.Timedelta(minutes=int(rng.integers(20, 150)))
    rows = []
    for person in range(6):  # the nights on which both clocks move lie within the data
        day_one = ["2024-03-09", "2024-11-02", "2024-03-30", "2024-10-26"][person % 4]
        at = pd.Timestamp(day_one, tz="UTC") + pd.Timedelta(minutes=int(rng.integers(0, 900)))
        for _ in range(90):
            at += pd.Timedelta(seconds=int(rng.exponential(15 * 60)) + 1)
            rows.append((f"p{person}", str(at), float(rng.uniform(-1, 5))))
    trajectories = tracks(rows, zone)
    step = timedelta(minutes=minutes)
    per_day = 24 * 60 // minutes
    if seed % 2:
        bins, start = range(0, per_day - length + 1, length), None
    else:
        bins = sorted(rng.choice(per_day, size=7, replace=False).tolist())
        start = [f"{b * minutes // 60:02d}:{b * minutes % 60:02d}" for b in bins]
    times = [divmod(b * minutes, 60) for b in bins]
    expected, causes = brute_force(
        trajectories, GRID, step, length, times, max_gap.to_pytimedelta()
    )
    sequences = to_sequences(trajectories, GRID, f"{minutes}min", length, start, max_gap)
    assert len(expected) > 3
    assert listed(sequences) == expected
    for cause, count in causes.items():
        assert sequences.dropped[cause] == count
    assert set(sequences.dropped) - set(causes) <= {"clock moved within the window"}


def test_every_state_names_the_fix_that_it_comes_from():
    people = day([("08:05", 0.5), ("08:20", 1.5), ("09:10", 2.5), ("09:50", 0.5)])
    found = to_sequences(people, GRID, step="30min", length=4, start="08:00", max_gap="2h")
    assert found.fixes.tolist() == [[1, 1, 2, 3]]
    cells = GRID.assign(people.table["lon"], people.table["lat"])
    assert cells[found.fixes].tolist() == found.states.tolist()
    assert found.at_time("08:00").fixes.tolist() == [[1, 1, 2, 3]]


def test_cell_counts_follow_the_same_rule_as_sequences_of_one_bin():
    rng = np.random.default_rng(5)
    rows = [
        (f"p{p}", f"2024-05-01T{h:02d}:{rng.integers(60):02d}Z", float(rng.uniform(-1, 5)))
        for p in range(20)
        for h in range(24)
        if rng.random() < 0.7
    ]
    trajectories = tracks(rows)
    counts = cell_counts(trajectories, GRID, "30min")
    sequences = to_sequences(trajectories, GRID, "30min", 1)
    inside = Counter(
        (sequences.windows["time"].iloc[w], int(s))
        for w, s in zip(sequences.window, sequences.states[:, 0], strict=True)
    )
    found = {
        (f"{time:%H:%M}", int(cell)): int(n)
        for time, cell, n in counts.itertuples(index=False)
        if cell != GRID.n_cells
    }
    assert found == dict(inside)
    outside = counts.loc[counts["cell"] == GRID.n_cells, "count"].sum()
    assert outside == sequences.dropped["outside the grid throughout"]


@pytest.fixture(scope="module")
def tokyo(shared_data):
    return shared_data / "tokyo_people_flow"


def test_tokyo_full_days_give_the_known_sequences_and_moves(tokyo):
    trajectories = read_trajectories(tokyo / "tokyo_1000users_20min.csv", where={"full_day": "1"})
    grid = Grid.from_bbox(139.68, 35.65, 139.80, 35.75, 10, 10)
    sequences = to_sequences(trajectories, grid, "20min", 3)
    assert trajectories.report.set_aside["not full_day=1"].count == 30_000 - 546 * 30
    assert (sequences.n_individuals, len(sequences)) == (546, 5460)
    moves = sequences.states[:, 1:] != sequences.states[:, :-1]
    assert moves.sum() == 1520
    assert (sequences.has_outside, sequences.dropped) == (False, {})


def test_tokyo_stitched_days_give_only_true_flows(tokyo):
    with (tokyo / "derived_true_flows_date_slot_from_to.csv").open() as file:
        truth = {
            (r["date"], int(r["slot"]), int(r["from"]), int(r["to"])): int(r["n"])
            for r in csv.DictReader(file)
        }
    trajectories = read_trajectories(tokyo / "tokyo_1000users_20min.csv")
    grid = Grid.from_bbox(139.68, 35.65, 139.80, 35.75, 20, 20)
    starts = [f"{9 + s // 3:02d}:{s % 3 * 20:02d}" for s in range(29)]
    sequences = to_sequences(trajectories, grid, "20min", 2, start=starts, max_gap="25min")
    date = sequences.windows["local_date"].to_numpy()[sequences.window]
    time = sequences.windows["time"].to_numpy()[sequences.window]
    slot = [(int(a[:2]) - 9) * 3 + int(a[3:]) // 20 for a in time]
    found = Counter(zip(date, slot, *sequences.states.T.tolist(), strict=True))
    assert found == truth
    assert sum(truth.values()) == 28_405
