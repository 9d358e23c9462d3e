import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from agg_core.base.moves import ends_of, places_of, table_of_pairs
from agg_core.made.people import random_hmm
from agg_core.model.hmm import sample_states
from agg_core.space.build import Grid
from agg_core.tables.flows import (
    cell_totals,
    compare_flows,
    count_matrix,
    count_matrix_at,
    counts_of,
    filled_like,
    flow_differences,
    flow_matrix,
    flow_matrix_at,
    flow_table,
    matrix_rows,
)
from agg_core.tables.sequences import Sequences
from tests.faults import refused

TWO = Grid.from_bbox(0, 0, 2, 1, rows=1, cols=2)
COLUMNS = ["origin", "dest", "count", "origin_lon", "origin_lat", "dest_lon", "dest_lat"]


def sequences(states, n_cells, weights=None):
    states = np.asarray(states)
    n = len(states)
    windows = pd.DataFrame(
        {
            "start_utc": pd.to_datetime(["2024-05-01T08:00Z"]),
            "local_date": ["2024-05-01"],
            "time": ["08:00"],
        }
    )
    return Sequences(
        states=states,
        fixes=np.zeros_like(states),
        weights=np.ones(n) if weights is None else np.asarray(weights, dtype=float),
        individual=np.arange(n),
        window=np.zeros(n, dtype=np.int64),
        user_ids=np.array([f"p{i}" for i in range(n)], dtype=object),
        windows=windows,
        n_cells=n_cells,
        step=pd.Timedelta("30min"),
        timezone="UTC",
        dropped={},
    )


def listed(frame):
    return {
        (row.origin, row.dest): row.count_
        for row in frame.rename(columns={"count": "count_"}).itertuples()
    }


def dense(frame, d):
    counts = np.zeros((d, d))
    counts[frame["origin"], frame["dest"]] = frame["count"]
    return counts


# ---------------------------------------------------------------- tables


def test_flow_table_by_hand():
    """Start (3/4, 1/4); after one step 3/4 x 0.8 + 1/4 x 0.4 = 0.7 are in cell 0."""
    matrix = flow_matrix([0.75, 0.25], [[0.8, 0.2], [0.4, 0.6]], population=1000, length=3)
    found = flow_table(matrix, TWO)
    assert list(found.columns) == COLUMNS
    mean_at_origin = np.array([(0.75 + 0.7) / 2, (0.25 + 0.3) / 2])
    assert listed(found) == pytest.approx(
        {
            (0, 0): 1000 * mean_at_origin[0] * 0.8,  # 580
            (0, 1): 1000 * mean_at_origin[0] * 0.2,  # 145
            (1, 0): 1000 * mean_at_origin[1] * 0.4,  # 110
            (1, 1): 1000 * mean_at_origin[1] * 0.6,  # 165
        }
    )
    assert found["count"].tolist() == pytest.approx([580, 165, 145, 110])
    first = found.iloc[2]
    assert (first["origin"], first["dest"]) == (0, 1)
    assert first[COLUMNS[3:]].tolist() == [0.5, 0.5, 1.5, 0.5]


def test_flow_table_of_two_steps_leaves_zeros_out():
    matrix = flow_matrix([1.0, 0.0], [[0.5, 0.5], [1.0, 0.0]], population=10, length=2)
    for least in (-1.0, 0.0, 5.0):
        assert listed(flow_table(matrix, TWO, least)) == {(0, 0): 5.0, (0, 1): 5.0}
    assert len(flow_table(matrix, TWO, 5.1)) == 0


@pytest.mark.parametrize("least", [0.0, 0.25, 0.5, 3.0])
def test_a_table_lists_flows_of_so_many_people_or_more(least):
    counts = [[0.0, 0.2, 0.5], [3.0, 0.0, 0.25], [0.49, 0.0, 7.0]]
    found = flow_table(counts, TWO, least)
    assert found["count"].tolist() == [
        count for count in (7.0, 3.0, 0.5, 0.49, 0.25, 0.2) if count >= least
    ]
    assert all(counts[a][b] == count for (a, b), count in listed(found).items())


def test_flow_table_total_is_the_population():
    start, trans, _ = random_hmm(6, random_state=0)
    grid = Grid.from_bbox(0, 0, 3, 2, 2, 3)
    for length in (2, 3, 10):
        found = flow_table(flow_matrix(start, trans, population=500, length=length), grid)
        assert found["count"].sum() == pytest.approx(500)
        assert (found["count"].diff().dropna() <= 0).all()


def test_the_outside_state_has_no_place():
    trans = [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    found = flow_table(flow_matrix([0.5, 0.0, 0.5], trans, population=8, length=2), TWO)
    assert listed(found) == {(0, 0): 2.0, (0, 1): 1.0, (0, 2): 1.0, (2, 0): 4.0}
    back = found[found["origin"] == 2].iloc[0]
    assert back[["dest_lon", "dest_lat"]].tolist() == [0.5, 0.5]
    assert back[["origin_lon", "origin_lat"]].isna().all()
    out = found[found["dest"] == 2].iloc[0]
    assert out[["dest_lon", "dest_lat"]].isna().all()


def test_count_flows_by_hand():
    states = [[0, 0, 1], [0, 1, 1], [1, 2, 0], [0, 0, 1]]
    found = flow_table(count_matrix(sequences(states, n_cells=2)), TWO)
    # Eight moves in two steps: 0-0 twice, 0-1 three times, 1-1, 1-outside and outside-0 once.
    assert listed(found) == {(0, 1): 1.5, (0, 0): 1.0, (1, 1): 0.5, (1, 2): 0.5, (2, 0): 0.5}
    assert list(found.columns) == COLUMNS
    assert found.iloc[0]["count"] == 1.5
    assert found[found["dest"] == 2][["dest_lon", "dest_lat"]].isna().all(axis=None)


def test_count_flows_weighs_people():
    people = sequences([[0, 1], [1, 1], [0, 1]], 2, weights=[2.5, 1.0, 0.5])
    found = flow_table(count_matrix(people), TWO)
    assert listed(found) == {(0, 1): 3.0, (1, 1): 1.0}


def test_the_chain_that_made_the_people_predicts_their_flows():
    n, length = 100_000, 4
    start, trans, _ = random_hmm(6, random_state=3)
    states = sample_states(start, trans, n, length, 5)
    counted = count_matrix(sequences(states, 6)) * (length - 1)
    predicted = flow_matrix(start, trans, n, length) * (length - 1)
    # A person makes at most `length - 1` such moves, so this bounds the variance.
    sigma = np.sqrt(predicted * (length - 1))
    assert (np.abs(counted - predicted) <= 5 * sigma).all()
    assert counted.sum() == pytest.approx(predicted.sum())


def test_the_mean_of_the_steps_is_the_flow_table():
    start, trans, _ = random_hmm(6, random_state=4)
    steps = [flow_matrix_at(start, trans, 500, step) for step in range(3)]
    np.testing.assert_allclose(np.mean(steps, axis=0), flow_matrix(start, trans, 500, 4))
    # The first step by hand, and a later one by the power of the matrix.
    np.testing.assert_allclose(steps[0], 500 * start[:, None] * trans)
    at = start @ np.linalg.matrix_power(trans, 2)
    np.testing.assert_allclose(steps[2], 500 * at[:, None] * trans)


def test_counted_steps_by_hand():
    people = sequences([[0, 0, 1], [0, 1, 1], [1, 0, 2]], n_cells=2, weights=[1, 1, 3])
    first, second = (count_matrix_at(people, step) for step in (0, 1))
    assert first.tolist() == [[1, 1, 0], [3, 0, 0], [0, 0, 0]]
    assert second.tolist() == [[0, 1, 3], [0, 1, 0], [0, 0, 0]]
    np.testing.assert_allclose(count_matrix(people), (first + second) / 2)


# --------------------------------------------------------------- parts of tables


def flows(*rows):
    return pd.DataFrame(rows, columns=["origin", "dest", "count"])


def test_totals_of_cells_by_hand():
    # Cell 2 is the outside: it counts for the cell at the other end, and has no row.
    totals = cell_totals(flows((0, 0, 5), (0, 1, 3), (1, 0, 2), (2, 0, 4), (1, 2, 1), (2, 2, 9)), 2)
    assert totals.to_dict("list") == {
        "people": [8, 3],
        "incoming": [6, 3],
        "outgoing": [3, 3],
        "stays": [5, 0],
        "change": [3, 0],
    }
    assert cell_totals(flows(), 2).to_numpy().sum() == 0


def test_counts_of_pairs():
    table = flows((0, 1, 30), (1, 0, 10))
    assert counts_of(table, [1, 0, 2], [0, 1, 0]).tolist() == [10, 30, 0]
    assert counts_of(flows(), [1], [0]).tolist() == [0]


def test_differences_keep_flows_that_only_one_table_has():
    found = flow_differences(flows((0, 1, 10), (1, 0, 3)), flows((0, 1, 4), (2, 0, 7)))

    columns = ["origin", "dest", "estimate", "truth", "difference", "count"]
    assert sorted(found[columns].to_numpy().tolist()) == [
        [0, 1, 10, 4, 6, 6],
        [1, 0, 3, 0, 3, 3],
        [2, 0, 0, 7, -7, 7],
    ]


# ---------------------------------------------------------------- comparison


def test_comparison_by_hand():
    estimate = np.array([[900, 40, 0], [10, 500, 60], [0, 0, 7]])
    truth = np.array([[100, 50, 5], [36, 3, 30], [0, 20, 0]])
    found = compare_flows(estimate, truth, threshold=35)
    # Moves: estimate 40 10 60, truth 50 36 30 and 5 and 20 that the estimate lacks.
    assert found.cpc == pytest.approx(2 * (40 + 10 + 30) / (110 + 141))
    assert found.total_ratio == pytest.approx(110 / 141)
    # Arrows above 35: estimate 0-1 and 1-2, truth 0-1 and 1-0.
    assert found.precision == pytest.approx(1 / 2)
    assert found.recall == pytest.approx(1 / 2)
    pairs = np.array([[40, 50], [0, 5], [10, 36], [60, 30], [0, 0], [0, 20]])
    assert found.correlation == pytest.approx(np.corrcoef(pairs.T)[0, 1], rel=1e-12)
    assert set(found.to_dict()) == {"cpc", "correlation", "precision", "recall", "total_ratio"}
    assert found.to_dict()["cpc"] == found.cpc


@pytest.mark.parametrize("seed", range(3))
def test_correlation_is_that_of_the_full_matrix(seed):
    rng = np.random.default_rng(seed)
    estimate, truth = rng.gamma(0.3, 100, (2, 12, 12)) * (rng.random((2, 12, 12)) < 0.3)
    for counts in (estimate, truth):
        np.fill_diagonal(counts, 5000.0)  # everybody stays somewhere: every cell occurs
    off = ~np.eye(12, dtype=bool)
    found = compare_flows(np.array(estimate), np.array(truth), 35)
    assert found.correlation == pytest.approx(
        np.corrcoef(estimate[off], truth[off])[0, 1], rel=1e-9
    )
    common = np.minimum(estimate[off], truth[off]).sum()
    assert found.cpc == pytest.approx(2 * common / (estimate[off].sum() + truth[off].sum()))
    arrows, real = estimate[off] > 35, truth[off] > 35
    assert found.precision == pytest.approx((arrows & real).sum() / arrows.sum())
    assert found.recall == pytest.approx((arrows & real).sum() / real.sum())


def test_a_table_meets_itself():
    truth = np.array(np.random.default_rng(0).gamma(1, 30, (5, 5)))
    found = compare_flows(truth, truth, 35)
    for name, value in found.to_dict().items():
        assert value == pytest.approx(1.0), name


def test_the_threshold_is_exceeded_not_met():
    arrow = np.array([[0, 35.0], [0, 1.0]])
    found = compare_flows(arrow, np.array([[0, 36.0], [0, 1.0]]), 35)
    assert np.isnan(found.precision)
    assert found.recall == 0


def test_times_are_compared_each_on_its_own():
    morning, evening = [[0, 50], [2, 9]], [[0, 4], [60, 9]]
    truth, swapped = [morning, evening], [evening, morning]
    assert compare_flows(truth, truth, 35).cpc == 1
    found = compare_flows(swapped, truth, 35)
    assert found.cpc == pytest.approx(2 * (4 + 2 + 4 + 2) / (2 * 116))
    assert found.precision == 0
    e, t = [4, 60, 50, 2], [50, 2, 4, 60]
    assert found.correlation == pytest.approx(np.corrcoef(e, t)[0, 1])


def test_figures_without_a_meaning_are_none():
    nobody = np.array(np.zeros((2, 2)))
    stays = np.array([[30, 0], [0, 40]])
    moves = np.array([[0, 60], [0, 5]])
    assert set(compare_flows(nobody, nobody).to_dict().values()) == {None}
    assert set(compare_flows(stays, stays).to_dict().values()) == {None}
    found = compare_flows(stays, moves, 35).to_dict()
    assert found["cpc"] == 0
    assert found["precision"] is None
    assert found["recall"] == 0
    assert found["total_ratio"] == 0
    assert found["correlation"] is None  # the estimate is the same, nothing, for every pair
    found = compare_flows(moves, stays, 35).to_dict()
    assert found["total_ratio"] is None
    assert found["recall"] is None


def test_equal_flows_everywhere_have_no_correlation():
    """0.1 is no binary number: a variance left over from rounding must not pass for one."""
    truth = np.array(np.random.default_rng(0).random((7, 7)))
    assert compare_flows(np.array(np.full((7, 7), 0.1)), truth).to_dict()["correlation"] is None


@pytest.mark.parametrize("shapes", [((2, 2), (3, 3)), ((2, 3), (2, 3)), ((2, 2, 2), (2, 2))])
def test_flows_of_other_cells_or_times_are_not_compared(shapes):
    with refused("wrong-shape"):
        compare_flows(*(np.ones(shape) for shape in shapes))


# ---------------------------------------------------------------- sparse tables


def some_moves(rng, d, share):
    """A whole table of which most moves are nobody's, and the same as a sparse one.

    Its pattern has moves that nobody made just now, too.
    """
    allowed = rng.random((d, d)) < share
    whole = np.where(allowed, rng.gamma(0.3, 100, (d, d)) * (rng.random((d, d)) < 0.7), 0.0)
    origin, dest = np.nonzero(allowed)
    indptr = np.searchsorted(origin, np.arange(d + 1))
    return whole, sparse.csr_array((whole[allowed], dest, indptr), shape=(d, d))


@pytest.mark.parametrize("step", [None, 0, 2])
def test_flows_of_sparse_transitions_are_those_of_whole_ones(step):
    rng = np.random.default_rng(1)
    start = rng.dirichlet(np.ones(9))
    whole, few = some_moves(rng, 9, 0.5)
    made = (
        [flow_matrix(start, table, 500, 4) for table in (whole, few)]
        if step is None
        else [flow_matrix_at(start, table, 500, step) for table in (whole, few)]
    )
    np.testing.assert_allclose(made[1].toarray(), made[0], rtol=1e-13)
    # The pattern stays that of the transitions, moves of nobody too.
    assert made[1].indices.tolist() == few.indices.tolist()
    assert made[1].indptr.tolist() == few.indptr.tolist()


def test_sparse_counts_are_those_of_whole_tables():
    rng = np.random.default_rng(2)
    people = sequences(rng.integers(0, 8, (40, 4)), 7, weights=rng.integers(1, 9, 40))
    few = count_matrix(people, as_sparse=True)
    np.testing.assert_allclose(few.toarray(), count_matrix(people), rtol=1e-13)
    assert (few.data > 0).all()
    for step in range(3):
        one = count_matrix_at(people, step, 9, as_sparse=True)
        np.testing.assert_array_equal(one.toarray(), count_matrix_at(people, step, 9))


def test_rows_of_the_same_move_add_up():
    table = table_of_pairs([2, 0, 2, 1], [0, 1, 0, 1], [1, 2, 3, 4], 3)
    assert table.toarray().tolist() == [[0, 2, 0], [0, 4, 0], [4, 0, 0]]
    assert table.nnz == 3
    assert table_of_pairs([], [], [], 2).toarray().tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("least", [-1.0, 0.0, 30.0, 1e6])
def test_a_sparse_table_lists_the_flows_of_the_whole_one(least):
    whole, few = some_moves(np.random.default_rng(3), 9, 0.5)
    pd.testing.assert_frame_equal(matrix_rows(few, least), matrix_rows(whole, least))
    grid = Grid.from_bbox(0, 0, 3, 3, 3, 3)
    pd.testing.assert_frame_equal(flow_table(few, grid, least), flow_table(whole, grid, least))


def test_moves_are_found_among_the_entries_of_a_table():
    whole, few = some_moves(np.random.default_rng(6), 5, 0.5)
    origin, dest = ends_of(few)
    assert places_of(few, origin, dest).tolist() == list(range(few.nnz))
    assert places_of(whole, [0, 4], [3, 4]).tolist() == [3, 24]
    # A state that there is not is none of the next row.
    for table in (whole, few):
        assert places_of(table, [0, 0, -1, 5, 1], [5, -1, 2, 0, 10**6]).tolist() == [-1] * 5
    known = np.zeros((5, 5), dtype=bool)
    known[origin, dest] = True
    assert (places_of(few, *np.nonzero(~known)) == -1).all()


def test_a_table_is_filled_with_moves_of_its_pattern_alone():
    few = sparse.csr_array(([1.0, 1.0, 1.0], [0, 1, 0], [0, 2, 3]), shape=(2, 2))
    filled = filled_like(few, [1, 0, 1], [0, 1, 0], [2.0, 3.0, 4.0])
    assert filled.data.tolist() == [0.0, 3.0, 6.0]
    assert (
        filled.toarray().tolist()
        == filled_like(np.ones((2, 2)), [1, 0, 1], [0, 1, 0], [2.0, 3.0, 4.0]).tolist()
    )
    with refused("move-beyond-reach"):
        filled_like(few, [1], [1], [1.0])


@pytest.mark.parametrize("seed", range(4))
def test_sparse_tables_of_other_patterns_are_compared_as_whole_ones(seed):
    rng = np.random.default_rng(seed)
    one, other = some_moves(rng, 12, 0.4), some_moves(rng, 12, 0.2)
    expected = compare_flows(one[0], other[0], 35)
    assert compare_flows(one[1], other[1], 35) == expected
    # One of them whole.
    assert compare_flows(one[0], other[1], 35) == expected
    assert compare_flows(one[1], other[0], 35) == expected


def test_sparse_tables_of_several_times_are_compared_time_by_time():
    rng = np.random.default_rng(5)
    tables = [some_moves(rng, 8, 0.3) for _ in range(6)]
    whole, few = ([table[kind] for table in tables] for kind in (0, 1))
    expected = compare_flows(np.stack(whole[:3]), np.stack(whole[3:]), 35)
    assert compare_flows(few[:3], few[3:], 35) == expected
    assert compare_flows(few[:3], np.stack(whole[3:]), 35) == expected
    nobody = sparse.csr_array((8, 8))
    assert set(compare_flows([nobody], [nobody]).to_dict().values()) == {None}


def test_sparse_tables_of_other_cells_or_times_are_not_compared():
    square, other, wide = (sparse.csr_array(shape) for shape in ((2, 2), (3, 3), (2, 3)))
    for sides in ((square, other), (wide, wide), ([square], [square] * 2), ([square, other],) * 2):
        with refused("wrong-shape"):
            compare_flows(*sides)
