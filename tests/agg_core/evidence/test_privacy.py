import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from agg_core.base.moves import entries
from agg_core.evidence.privacy import Limit, rounded, withhold, withhold_parts
from tests.faults import refused


def equations(published):
    """The system that whoever reads a published table can write down: A x = b, of what is hidden.

    Unknowns are the numbers of the table with a row and a column of sums, x >= 0.
    """
    table = np.asarray(published.table)
    n, m = table.shape
    whole = np.full((n + 1, m + 1), published.total)
    whole[:n, :m], whole[:n, m], whole[n, :m] = (
        table, published.origin_sums, published.dest_sums,
    )  # fmt: skip
    unknown = np.argwhere(np.isnan(whole))
    place = {tuple(at): k for k, at in enumerate(unknown)}
    rows, right = [], []
    lines = [[((i, j), -1 if j == m else 1) for j in range(m + 1)] for i in range(n + 1)]
    lines += [[((i, j), -1 if i == n else 1) for i in range(n + 1)] for j in range(m + 1)]
    for line in lines:
        coefficients, known = np.zeros(len(unknown)), 0.0
        for at, sign in line:
            if at in place:
                coefficients[place[at]] += sign
            else:
                known += sign * whole[at]
        if coefficients.any():
            rows.append(coefficients)
            right.append(-known)
    return place, np.array(rows), np.array(right)


def bounds(published):
    """Least and most that each withheld number can be, by its place in the table with sums."""
    place, A, b = equations(published)
    found = {}
    for at, k in place.items():
        ends = []
        for sign in (1, -1):
            cost = np.zeros(len(place))
            cost[k] = sign
            solved = linprog(cost, A_eq=A, b_eq=b, bounds=(0, 1e6))
            assert solved.status == 0, solved.message
            ends.append(sign * solved.fun)
        found[at] = tuple(ends)
    return found


def test_without_sums_small_numbers_alone_are_withheld():
    found = withhold([[3, 40, 0], [10, 9.5, 60]], 10)
    np.testing.assert_array_equal(found.table, [[np.nan, 40, 0], [10, np.nan, 60]])
    assert found.n_withheld == 2
    assert found.origin_sums is found.dest_sums is found.total is None


def test_the_smallest_ring_is_withheld_with_one_number():
    # 4 in the corner: 30 is the least of its row, 25 of its column, and 50 closes the ring.
    table = [[4, 30, 90], [25, 50, 80], [70, 95, 60]]
    found = withhold(table, 10, totals=True)
    np.testing.assert_array_equal(
        found.table, [[np.nan, np.nan, 90], [np.nan, np.nan, 80], [70, 95, 60]]
    )
    assert found.origin_sums.tolist() == [124, 155, 225]
    assert found.dest_sums.tolist() == [99, 175, 230]
    assert found.total == 504
    # x, 34 - x; 29 - x, 46 + x
    assert bounds(found)[0, 0] == pytest.approx((0, 29))


def test_two_rings_on_one_withheld_number_are_no_ring_of_it():
    """Each row and column has two withheld numbers, and still one of them would be determined."""
    table = np.full((4, 4), 100.0)
    table[:2, :2] = table[2:, 2:] = 6
    table[1, 2] = 7
    alone = withhold(table, 10)
    gone = np.isnan(alone.table)
    assert set(gone.sum(axis=0)) | set(gone.sum(axis=1)) == {2, 3}
    alone = type(alone)(alone.table, table.sum(axis=1), table.sum(axis=0), table.sum())
    low, high = bounds(alone)[1, 2]
    assert high - low < 1e-6
    found = withhold(table, 10, totals=True)
    assert found.n_withheld > alone.n_withheld
    assert all(high - low > 1 for low, high in bounds(found).values())


def test_a_sum_of_few_people_is_withheld_too():
    found = withhold([[3, 4], [0, 60], [0, 80]], 10, totals=True)
    assert np.isnan(found.origin_sums[0])
    assert np.isnan(found.table[0]).all()
    assert all(high - low > 1 for low, high in bounds(found).values())


def test_somebody_alone_takes_all_with_them():
    found = withhold([[3]], 10, totals=True)
    assert np.isnan(
        [found.table[0, 0], found.origin_sums[0], found.dest_sums[0], found.total]
    ).all()
    whole = withhold([[30]], 10, totals=True)
    assert (whole.table[0, 0], whole.total, whole.n_withheld) == (30, 30, 0)
    assert withhold(np.zeros((2, 3)), 10, totals=True).n_withheld == 0


@pytest.mark.parametrize("seed", range(25))
def test_no_withheld_number_can_be_worked_out(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 6, 2)
    table = np.round(rng.gamma(0.4, 60, (n, m))) * (rng.random((n, m)) < 0.8)
    found = withhold(table, 10, totals=True)
    published = np.asarray(found.table)
    told = ~np.isnan(published)
    np.testing.assert_array_equal(published[told], table[told])
    assert not ((published > 0) & (published < 10)).any()
    for sums, axis in ((found.origin_sums, 1), (found.dest_sums, 0)):
        told = ~np.isnan(sums)
        np.testing.assert_array_equal(sums[told], table.sum(axis=axis)[told])
        # What a published sum leaves for withheld ones is of ten people or more, and of two.
        gone = np.isnan(published)
        left = np.where(gone, table, 0).sum(axis=axis)
        some = told & gone.any(axis=axis)
        assert (left[some] >= 10).all()
        assert (gone.sum(axis=axis)[some] >= 2).all()
    for low, high in bounds(found).values():
        assert high - low > 0.5


def test_a_sparse_table_is_limited_as_a_whole_one():
    rng = np.random.default_rng(3)
    table = np.round(rng.gamma(0.5, 40, (6, 6))) * (rng.random((6, 6)) < 0.6)
    of_whole = withhold(table, 10, totals=True)
    of_sparse = withhold(sparse.csr_array(table), 10, totals=True)
    np.testing.assert_array_equal(of_sparse.table.toarray(), of_whole.table)
    np.testing.assert_array_equal(of_sparse.origin_sums, of_whole.origin_sums)
    assert of_sparse.n_withheld == of_whole.n_withheld > 0
    assert len(entries(of_sparse.table)) == np.count_nonzero(table)


def test_nothing_is_withheld_below_nobody():
    table = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(withhold(table, 0, totals=True).table, table)


@pytest.mark.parametrize("table", [[[-1.0, 2.0]], [[np.nan, 2.0]], [[np.inf, 1.0]]])
def test_what_is_no_table_of_people_is_refused(table):
    with refused("no-people"):
        withhold(table, 10)


def test_of_a_mean_and_its_parts_two_are_withheld():
    # Rows: the mean, and three parts of it. One flow has one small part, one has two.
    values = np.array([[20.0, 20.0, 4.0, 50.0], [5.0, 6.0, 4.0, 30.0], [15.0, 7.0, 4.0, 40.0],
                       [40.0, 47.0, 4.0, 80.0]])  # fmt: skip
    hidden = withhold_parts(values, [(0, [1, 2, 3])], 10)
    assert hidden.T.tolist() == [
        [False, True, True, False],  # 5 would be told by the mean; 15 is the least that hides it
        [False, True, True, False],  # 6 and 7 are 13 people together
        [True, True, True, True],
        [False, False, False, False],
    ]


def test_a_mean_that_is_its_only_part_is_withheld_with_it():
    # The mean of two times, of which one has nobody.
    hidden = withhold_parts(np.array([[6.0], [12.0], [0.0]]), [(0, [1, 2])], 10)
    assert hidden[:2].all()


def test_of_a_table_whose_people_are_told_two_are_withheld():
    values = np.array([[4.0, 30.0, 20.0, 0.0], [4.0, 4.0, 11.0, 50.0], [6.0, 5.0, 11.0, 50.0]])
    hidden = withhold_parts(values, [], 10, totals=True)
    assert hidden.tolist() == [
        [True, False, True, True],
        [True, True, True, False],
        [True, True, False, False],
    ]


def test_families_of_families():
    # A day of two times, of which each has two steps.
    values = np.array([[30.0], [20.0], [40.0], [4.0], [36.0], [40.0], [40.0]])
    hidden = withhold_parts(values, [(0, [1, 2]), (1, [3, 4]), (2, [5, 6])], 10)
    assert hidden.ravel().tolist() == [False, False, False, True, True, False, False]
    values[1:5] = [[7.0], [40.0], [4.0], [10.0]]
    hidden = withhold_parts(values, [(0, [1, 2]), (1, [3, 4]), (2, [5, 6])], 10)
    # The time is hidden, so that the other time and one of its steps are.
    assert hidden.ravel().tolist() == [False, True, True, True, False, True, False]


def test_numbers_are_rounded_to_the_nearest_or_by_chance():
    numbers = np.array([0.0, 2.4, 2.6, 7.5, np.nan])
    np.testing.assert_array_equal(rounded(numbers, Limit(0, 5)), [0, 0, 5, 10, np.nan])
    np.testing.assert_array_equal(rounded(numbers, Limit(0)), numbers)
    chance = np.random.default_rng(0).random(20_000)
    up = rounded(np.full(20_000, 4.0), Limit(0, 10, at_random=True), chance)
    assert set(up) == {0.0, 10.0}
    assert up.mean() == pytest.approx(4.0, abs=0.1)


def test_a_limit_says_what_was_done():
    assert Limit(0).words == ""
    assert "12 people" in Limit(12).words
    assert "5" in Limit(0, 5).words


@pytest.mark.parametrize("least", [-1, np.inf, np.nan, 1e12])
def test_a_least_number_that_is_none_is_refused(least):
    with refused("least-people-out-of-range"):
        Limit(least)


def test_a_base_that_is_none_is_refused():
    with refused("unknown-base", "4"):
        Limit(10, 4)
