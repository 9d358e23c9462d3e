"""Sums of parts of which some are suppressed, against going through them one by one."""

from collections import Counter

import numpy as np
import pytest

from agg_core.io.counts import read_counts
from agg_core.io.counts.sums import Parts, summed
from agg_core.made.counts import docomo_csv, simulate_city
from agg_core.tables.counts import ESTIMATED, MISSING, PUBLISHED, SUPPRESSED


@pytest.mark.parametrize("seed", range(5))
def test_sums_as_by_hand(seed):
    random = np.random.default_rng(seed)
    below, expected, shape = 10.0, 3.2, (6, 5)
    kinds = random.choice([PUBLISHED, SUPPRESSED, MISSING], (*shape, 3), p=[0.45, 0.5, 0.05])
    values = random.integers(10, 30, kinds.shape).astype(float)
    parts = Parts(
        np.where(kinds == PUBLISHED, values, 0).sum(axis=-1),
        (kinds == PUBLISHED).sum(axis=-1),
        (kinds == SUPPRESSED).sum(axis=-1),
        (kinds == MISSING).sum(axis=-1),
        below, expected,
    )  # fmt: skip
    found = summed(parts)
    wholly = Counter(
        kinds[at].tolist().count(SUPPRESSED)
        for at in np.ndindex(shape) if set(kinds[at].tolist()) == {SUPPRESSED}
    )  # fmt: skip
    for at in np.ndindex(shape):
        of, n_hidden = set(kinds[at].tolist()), kinds[at].tolist().count(SUPPRESSED)
        known = sum(v for v, kind in zip(values[at], kinds[at], strict=True) if kind == PUBLISHED)
        if MISSING in of:
            assert found.status[at] == MISSING
            assert np.isnan([found.counts[at], found.least[at], found.most[at]]).all()
            continue
        assert (found.least[at], found.most[at]) == (known, known + 10 * n_hidden)
        if of == {PUBLISHED}:
            assert (found.status[at], found.counts[at]) == (PUBLISHED, known)
        elif of == {SUPPRESSED}:
            assert found.status[at] == SUPPRESSED
            assert np.isnan(found.counts[at])
        else:
            assert found.status[at] == ESTIMATED
            assert found.counts[at] == round(known + 3.2 * n_hidden)
    assert found.below == (30 if wholly else 0)


def test_suppressed_sums_of_more_parts_than_the_common_ones_are_estimated():
    one = np.array([[1, 1, 1, 2]])
    none = np.zeros_like(one)
    found = summed(Parts(none.astype(float), none, one, none, 10.0, 4.0))
    assert found.status.tolist() == [[SUPPRESSED] * 3 + [ESTIMATED]]
    assert found.counts[0, 3] == 8
    # So what is suppressed is below the bound, always.
    assert found.below == 10


def test_a_gender_that_is_suppressed_is_no_zero():
    rows = [f"2024-01-01 0{hour}:00,c,{sex},{n}" for hour, sex, n in
            [(0, "f", 30), (0, "m", 20), (1, "f", 31), (1, "m", "<10"), (2, "f", 32),
             (3, "f", 33), (3, "m", 12), (4, "f", "<10"), (4, "m", "<10"),
             (5, "m", "")]]  # fmt: skip
    text = "\n".join(["time,cell,gender,count", *rows]).encode()
    table = read_counts(text, absent="suppressed")
    assert table.status.ravel().tolist() == [
        PUBLISHED, ESTIMATED, ESTIMATED, PUBLISHED, SUPPRESSED, MISSING,
    ]  # fmt: skip
    assert table.suppressed_below == 20
    assert (table.counts[1:3, 0] > [31, 32]).all()
    assert (table.counts[1:3, 0] < [41, 42]).all()
    said = table.report.remarks["kinds"]
    assert "2 are sums of which a part is suppressed" in said
    assert "hold 63 people that are published" in said
    assert "83 at most" in said
    zero = read_counts(text, absent="zero")
    assert zero.counts[2, 0] == 32
    assert zero.status[2, 0] == PUBLISHED
    missing = read_counts(text, absent="missing")
    assert missing.status[2, 0] == MISSING


@pytest.mark.parametrize("people", [1_000, 2_500])
def test_merged_cells_hold_about_the_people_that_there_are(people):
    """Left out, suppressed parts of merged cells would lack; taken for the most, be too many."""
    city = simulate_city(10, 10, 2, people)
    number = {code: i for i, code in enumerate(city.codes)}
    lines = [line.split(",") for line in docomo_csv(city).splitlines()[1:]]
    text = "date,hour,cell,count\n" + "".join(
        f"{date},{int(clock) // 100},{number[code]},{count}\n"
        for date, clock, code, _, _, _, count in lines
    )
    box = (139.0, 35.0, 140.0, 36.0)
    table = read_counts(text.encode(), suppressed_below=10, absent="suppressed", grid_box=box,
                        grid_rows=10, grid_cols=10, coarser="1 level coarser")  # fmt: skip
    assert table.n_cells == 25
    true = city.counts.reshape(-1, 5, 2, 5, 2).sum(axis=(2, 4)).reshape(-1, 25)
    known = np.where(city.counts >= 10, city.counts, 0)
    known = known.reshape(-1, 5, 2, 5, 2).sum(axis=(2, 4)).reshape(-1, 25)
    rows = table.status == ESTIMATED
    assert rows.sum() > 100
    assert (table.counts[table.status == PUBLISHED] == true[table.status == PUBLISHED]).all()
    assert (true[table.status == SUPPRESSED] < table.suppressed_below).all()
    lacks = known[rows].sum() / true[rows].sum() - 1
    error = table.counts[rows].sum() / true[rows].sum() - 1
    assert abs(error) < abs(lacks) / 2
    assert "coarser" in table.report.guesses["merged cells"].option
