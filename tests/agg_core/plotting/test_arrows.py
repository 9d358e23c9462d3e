import numpy as np
import pandas as pd
import pytest
import shapely

from agg_core.plotting.arrows import arrow_rings, arrow_widths, select_flows
from tests.faults import refused


def flows(*rows):
    return pd.DataFrame(rows, columns=["origin", "dest", "count"])


def random_arrows(n=2_000):
    """Arrows from a hair's length to a hundred kilometres, some far wider than long."""
    rng = np.random.default_rng(3)
    start = rng.uniform(-5e4, 5e4, (n, 2))
    turn, length = rng.uniform(0, 2 * np.pi, n), 10 ** rng.uniform(0, 5, n)
    end = start + length[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    return start, end, 10 ** rng.uniform(0, 3, n)


def test_ring_of_an_arrow_by_hand():
    # Unit direction (1, 0), left normal (0, 1); head 4.4 long, so c = (5.6, 0); 2.2 to the right.
    ring = arrow_rings([[0, 0]], [[10, 0]], [1], inset_share=0, gap=0)

    expected = [
        (0, -2.5),
        (5.6, -3.2),
        (5.6, -4.4),
        (10, -2.2),
        (5.6, 0),
        (5.6, -1.2),
        (0, -1.9),
        (0, -2.5),
    ]
    np.testing.assert_allclose(ring, [expected], atol=1e-12)


def test_ends_lie_inside_the_cells_and_the_head_is_at_most_half():
    # Inset 1.5 at both ends leaves 7; half of it, 3.5, is less than 4.4; 2.35 to the right.
    ring = arrow_rings([[0, 0]], [[10, 0]], [1])[0]

    np.testing.assert_allclose(ring[3], [8.5, -2.35])
    np.testing.assert_allclose(ring[2], [5.0, -4.55])
    np.testing.assert_allclose(ring[0], [1.5, -2.65])


def test_the_inset_of_long_arrows_is_capped():
    ring = arrow_rings([[0, 0]], [[0, 1000]], [1], max_inset=20)[0]

    np.testing.assert_allclose(ring[3], [2.35, 980])


def test_no_ring_crosses_itself():
    rings = shapely.polygons(arrow_rings(*random_arrows()))

    assert shapely.is_valid(rings).all()
    assert (shapely.area(rings) > 0).all()


def test_arrows_there_and_back_do_not_touch():
    start, end, half = random_arrows()
    back_half = half[::-1]

    there = shapely.polygons(arrow_rings(start, end, half))
    back = shapely.polygons(arrow_rings(end, start, back_half))

    assert not shapely.intersects(there, back).any()


def test_no_arrows_give_no_rings():
    assert arrow_rings(np.empty((0, 2)), np.empty((0, 2)), []).shape == (0, 8, 2)


@pytest.mark.parametrize(
    ("origin", "dest", "half", "code"),
    [
        ([[0, 0]], [[0, 0]], [1], "arrow-without-length"),
        ([[0, 0]], [[1, 0]], [0], "malformed-widths"),
        ([[0, 0]], [[1, 0]], [np.nan], "malformed-widths"),
        ([[0, 0]], [[1, 0], [2, 0]], [1], "wrong-shape"),
    ],
)
def test_impossible_arrows_are_refused(origin, dest, half, code):
    with refused(code):
        arrow_rings(origin, dest, half)


def test_widths_are_proportional_between_the_least_and_the_greatest():
    widths = arrow_widths([1, 20, 50, 100, 400], 100, 10, 100)

    np.testing.assert_allclose(widths, [10, 20, 50, 100, 100])


def test_widths_never_fall_as_counts_rise():
    counts = np.sort(np.random.default_rng(0).exponential(40, 500))

    assert (np.diff(arrow_widths(counts, 90, 3, 60)) >= 0).all()


def test_widths_without_a_scale_are_refused():
    with refused("scale-not-positive"):
        arrow_widths([1], 0, 1, 2)


def test_selection_by_hand():
    table = flows((0, 1, 40), (1, 0, 35), (0, 0, 900), (2, 1, 34.9), (1, 2, 60), (2, 0, 30.1))

    found = select_flows(table, 35, 2)

    assert found.frame[["origin", "dest", "count"]].to_numpy().tolist() == [[1, 2, 60], [0, 1, 40]]
    assert (found.n_above, found.n_shown) == (2, 2)  # 35 does not exceed 35
    assert found.total_moves == pytest.approx(200)
    assert found.share_shown == pytest.approx(0.5)
    assert (found.n_outside, found.outside_count) == (0, 0)


def test_flows_with_the_outside_are_counted_not_drawn():
    table = flows((0, 1, 50), (3, 0, 40), (1, 3, 10), (3, 3, 700))

    found = select_flows(table, 20, n_cells=3)

    assert found.frame["count"].tolist() == [50]
    assert (found.n_above, found.n_outside, found.outside_count) == (1, 1, 50)
    assert found.total_moves == 100
    assert found.share_shown == pytest.approx(0.5)


def test_ties_are_ordered_by_origin_and_dest_whatever_the_order_of_rows():
    table = flows((2, 0, 5), (0, 2, 5), (1, 0, 5), (0, 1, 5))

    for seed in range(5):
        mixed = table.sample(frac=1, random_state=seed)
        kept = select_flows(mixed, 1, 3).frame
        assert kept[["origin", "dest"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 0]]


def test_a_threshold_of_zero_draws_no_empty_flow():
    assert select_flows(flows((0, 1, 0), (1, 0, 2)), 0).n_above == 1


def test_nobody_moves():
    found = select_flows(flows((0, 0, 10)), 0)

    assert (found.n_above, found.n_shown, found.share_shown, found.total_moves) == (0, 0, 0, 0)


def test_an_empty_table_has_no_flows():
    assert select_flows(flows(), 35, n_cells=4).n_above == 0


def test_selection_leaves_its_input_alone():
    table = flows((0, 1, 1), (1, 0, 2))
    before = table.copy()

    select_flows(table, 0)

    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize(
    ("table", "kwargs", "code", "told"),
    [
        (flows((0, 1, -1)), {}, "not-counts", ""),
        (flows((0, 1, np.nan)), {}, "not-counts", ""),
        (flows((0, 5, 1)), {"n_cells": 3}, "grid-differs", "states 0 to 3"),
        (flows((-1, 1, 1)), {"n_cells": 3}, "grid-differs", "states 0 to 3"),
        (flows((0, 1, 1)), {"top_n": -1}, "value-out-of-range", ""),
        (flows((0, 1, 1)).drop(columns="dest"), {}, "columns-missing", "dest"),
    ],
)
def test_bad_flow_tables_are_refused(table, kwargs, code, told):
    with refused(code, told):
        select_flows(table, 0, **kwargs)
