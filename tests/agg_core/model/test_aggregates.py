import numpy as np
import pytest

from agg_core.model.aggregates import Aggregates, aggregate, aggregate_points
from tests.faults import refused


def groups_of(observations, *choices, **more):
    """Dense counts (K, T, S) after grouping."""
    return aggregate(observations, *choices, **more).to_dense()


def people(n, length, n_symbols, seed=0):
    return np.random.default_rng(seed).integers(n_symbols, size=(n, length))


def test_dense_there_and_back():
    dense = np.array([[[2.0, 0, 1], [0, 3, 0]], [[0, 0, 0], [1, 0, 0.5]]])
    aggregates = Aggregates.from_dense(dense)
    np.testing.assert_array_equal(aggregates.to_dense(), dense)
    assert aggregates.indptr.tolist() == [0, 2, 3, 3, 5]
    assert aggregates.symbol.tolist() == [0, 2, 1, 0, 2]
    assert aggregates.count.tolist() == [2, 1, 3, 1, 0.5]
    assert (aggregates.n_sequences, aggregates.length, aggregates.n_symbols) == (2, 2, 3)
    assert aggregates.sizes.tolist() == [3, 1.5]
    assert aggregates.n_individuals == 4.5
    assert aggregates.n_tokens == 5
    assert [aggregates.locate(i) for i in range(5)] == [(0, 0), (0, 0), (0, 1), (1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("counts", "code", "told"),
    [
        ([[1.0, 2.0]], "wrong-shape", "(1, 2)"),
        (np.zeros((0, 2, 3)), "wrong-shape", ""),
        (np.zeros((2, 0, 3)), "wrong-shape", ""),
        (np.zeros((2, 3, 0)), "wrong-shape", ""),
        ([[[1.0, np.nan]]], "not-finite", ""),
        ([[[1.0, np.inf]]], "not-finite", ""),
        ([[[1, 1]], [[3, -1]]], "negative-count", "sequence 1, step 0, symbol 1 has -1"),
        (
            [[[1, 1], [2, 0]], [[2, 0], [1, 2]]],
            "totals-differ",
            "Sequence 1 counts 2 people at step 0 but 3",
        ),
        ([[[1, 1]], [[0, 0]]], "empty-sequence", "Sequence 1"),
    ],
)
def test_bad_counts_are_refused(counts, code, told):
    with refused(code, told) as raised:
        Aggregates.from_dense(counts)
    assert str(raised.value).count(". ") == 0
    assert str(raised.value).endswith(".")


def test_uneven_totals_hint_at_the_way_out():
    with refused("totals-differ", "add a cell for those who are outside"):
        Aggregates.from_dense([[[5, 0], [4, 0]]])


def test_rounding_of_soft_counts_is_no_fault():
    counts = [[[0.1, 0.2], [0.3, 0.0]]]
    np.testing.assert_array_equal(Aggregates.from_dense(counts).to_dense(), counts)


@pytest.mark.parametrize(("n", "size", "groups"), [(12, 4, 3), (13, 4, 4), (5, 5, 1), (7, 2, 4)])
def test_nobody_is_lost_and_the_rest_form_a_smaller_group(n, size, groups):
    observations = people(n, 3, 4)
    dense = groups_of(observations, size, 4, 1)
    assert dense.shape == (groups, 3, 4)
    per_group = np.full(groups, size)
    per_group[-1] = n - size * (groups - 1)
    np.testing.assert_array_equal(dense.sum(axis=2), np.repeat(per_group[:, None], 3, axis=1))
    for t in range(3):
        seen = np.bincount(observations[:, t], minlength=4)
        np.testing.assert_array_equal(dense[:, t].sum(axis=0), seen)


def test_a_group_holds_whole_people():
    """Each person shows one symbol throughout, so each group must count alike at every step."""
    observations = np.repeat(np.arange(30)[:, None], 4, axis=1)
    dense = groups_of(observations, 7, 30, 2)
    np.testing.assert_array_equal(dense, np.repeat(dense[:, :1], 4, axis=1))
    assert dense.sum() == 120


def test_groups_are_random_and_repeat_with_the_seed():
    observations = np.arange(40)[:, None]
    first = groups_of(observations, 5, 40, 3)
    np.testing.assert_array_equal(first, groups_of(observations, 5, 40, 3))
    assert (first != groups_of(observations, 5, 40, 4)).any()
    generator = np.random.default_rng(3)
    np.testing.assert_array_equal(first, groups_of(observations, 5, 40, generator))
    # Two given people meet in one of 8 groups of 5 with chance 4 / 39.
    met = np.mean(
        [
            groups_of(observations, 5, 40, seed)[:, 0, :2].sum(axis=1).max() == 2
            for seed in range(800)
        ]
    )
    assert met == pytest.approx(4 / 39, abs=5 * np.sqrt(4 / 39 * 35 / 39 / 800))


@pytest.mark.parametrize("size", [2, 3, 4, 50])
def test_groups_never_mix_what_within_keeps_apart(size):
    within = np.repeat([7, 3, 5], [10, 23, 17])[np.random.default_rng(0).permutation(50)]
    observations = np.column_stack([within, within])
    aggregates = aggregate(observations, size, 8, 1, within=within)
    dense = aggregates.to_dense()
    assert ((dense > 0).sum(axis=2) == 1).all()
    assert aggregates.n_individuals == 50
    for part, n in ((7, 10), (3, 23), (5, 17)):
        here = np.sort(dense[dense[:, 0, part] > 0][:, 0, part])[::-1]
        full, rest = divmod(n, size)
        assert here.tolist() == [size] * full + [rest] * (rest > 0)


def test_one_person_a_group_keeps_the_order():
    observations = people(6, 3, 5)
    aggregates = aggregate(observations, 1, 5, 0)
    assert aggregates.indptr.tolist() == list(range(19))
    np.testing.assert_array_equal(aggregates.symbol, observations.ravel())
    assert (aggregates.count == 1).all()
    assert (aggregates.sizes == 1).all()
    assert aggregates.locate(7) == (2, 1)
    by_hand = np.eye(5)[observations]
    np.testing.assert_array_equal(aggregates.to_dense(), by_hand)
    np.testing.assert_array_equal(Aggregates.from_dense(by_hand).symbol, aggregates.symbol)


def test_observations_are_not_changed():
    observations = people(9, 2, 3)
    kept = observations.copy()
    aggregate(observations, 4, 3, 0)
    np.testing.assert_array_equal(observations, kept)


@pytest.mark.parametrize(
    ("observations", "size", "code", "told"),
    [
        ([[0, 1], [1, 0]], 0, "value-out-of-range", "it was 0"),
        ([[0, 1], [1, 0]], -3, "value-out-of-range", "it was -3"),
        ([[0, 1], [1, 0]], 3, "group-too-large", "M = 3 is larger than the 2"),
        ([[0, 2], [1, 0]], 1, "symbol-out-of-range", "found 0..2"),
        ([[0, -1], [1, 0]], 2, "symbol-out-of-range", "found -1..1"),
        (np.zeros((0, 3)), 1, "wrong-shape", ""),
        (np.zeros((3, 0)), 1, "wrong-shape", ""),
        ([0, 1], 1, "wrong-shape", ""),
    ],
)
def test_bad_groupings_are_refused(observations, size, code, told):
    with refused(code, told):
        aggregate(observations, size, 2, 0)


def test_within_needs_one_value_a_person():
    with refused("wrong-shape", "(3)"):
        aggregate([[0], [0], [0]], 2, 1, within=[1, 2])


@pytest.mark.parametrize("observations", [[[0.7, 1.9]], [[np.nan, 1.0]], [["a", "b"]]])
def test_symbols_must_be_whole_numbers(observations):
    with refused("not-whole-numbers"):
        aggregate(observations, 1, 3)


def test_half_a_person_is_no_group_size():
    with refused("value-out-of-range", "it was 2.5"):
        aggregate(np.zeros((5, 2), dtype=int), 2.5, 1)


def test_parts_may_have_names():
    groups = aggregate(np.zeros((4, 1), dtype=int), 2, 1, 0, within=["a", "b", "b", "a"])
    assert groups.sizes.tolist() == [2.0, 2.0]


def test_readings_with_stated_sizes_need_not_balance():
    dense = np.array([[[2.0, 1], [0, 4]], [[1, 0], [0, 0]]])
    aggregates = Aggregates.from_dense(dense, sizes=[3, 2])
    assert aggregates.sizes.tolist() == [3, 2]
    assert aggregates.n_individuals == 5
    np.testing.assert_array_equal(aggregates.to_dense(), dense)
    np.testing.assert_allclose(aggregates.shares, [2 / 3, 1 / 3, 1, 1])
    with refused("totals-differ", "Sequence 0 counts 3 people at step 0 but 4"):
        Aggregates.from_dense(dense)


@pytest.mark.parametrize("sizes", [[1.0], [1.0, 0.0], [1.0, np.nan], [[1.0, 1.0]]])
def test_bad_sizes_are_refused(sizes):
    with refused("sizes-not-positive", "2 sequences"):
        Aggregates.from_dense(np.ones((2, 1, 1)), sizes=sizes)


def test_samples_there_and_back():
    samples = np.arange(24.0).reshape(2, 2, 3, 2)
    samples[1, 0] = np.nan
    aggregates = Aggregates.from_samples(samples)
    assert aggregates.indptr.tolist() == [0, 3, 6, 6, 9]
    assert aggregates.sizes.tolist() == [3, 3]
    np.testing.assert_array_equal(aggregates.points[:6], samples[0].reshape(6, 2))
    np.testing.assert_array_equal(aggregates.points[6:], samples[1, 1])
    assert aggregates.symbol.tolist() == list(range(9))


@pytest.mark.parametrize(
    ("samples", "code", "told"),
    [
        (np.zeros((2, 3, 4)), "wrong-shape", "(2, 3, 4)"),
        (np.zeros((0, 1, 1, 1)), "wrong-shape", ""),
        ([[[["a"]]]], "not-numbers", ""),
        ([[[[0.0], [np.nan]]]], "not-finite", "Group 0 has a value at step 0"),
        ([[[[0.0]], [[np.inf]]]], "not-finite", "Group 0 has a value at step 1"),
        ([[[[0.0]]], [[[np.nan]]]], "empty-sequence", "Sequence 1"),
    ],
)
def test_bad_samples_are_refused(samples, code, told):
    with refused(code, told):
        Aggregates.from_samples(samples)


@pytest.mark.parametrize("size", [1, 4, 7])
def test_places_are_grouped_as_symbols_are(size):
    symbols = people(23, 3, 5)
    window = np.repeat([0, 1], [10, 13])
    counts = aggregate(symbols, size, 5, 2, within=window).to_dense()
    places = aggregate_points(symbols[:, :, None].astype(float), size, 2, within=window)
    found = np.zeros_like(counts)
    sequence, step = np.divmod(places.step_of_token, 3)
    np.add.at(found, (sequence, step, places.points[:, 0].astype(int)), 1)
    np.testing.assert_array_equal(found, counts)


@pytest.mark.parametrize(
    ("points", "code", "told"),
    [
        (np.zeros((2, 3)), "wrong-shape", "(2, 3)"),
        ([[[np.nan]]], "not-finite", ""),
        (np.zeros((2, 1, 1)), "group-too-large", "2 sequences"),
    ],
)
def test_bad_points_are_refused(points, code, told):
    with refused(code, told):
        aggregate_points(points, 3)


def test_sequences_are_taken_by_number():
    dense = np.random.default_rng(0).integers(0, 3, (4, 2, 3)) + np.eye(3)[0]
    sizes = [9.0, 8, 7, 6]
    aggregates = Aggregates.from_dense(dense, sizes=sizes)
    taken = aggregates.take([2, 0, 2])
    np.testing.assert_array_equal(taken.to_dense(), dense[[2, 0, 2]])
    assert taken.sizes.tolist() == [7, 9, 7]
    assert (len(aggregates), aggregates.shape) == (4, (4, 2, 3))
    np.testing.assert_array_equal(aggregates[1:3].to_dense(), dense[1:3])
    np.testing.assert_array_equal(aggregates[[3]].to_dense(), dense[[3]])
    np.testing.assert_array_equal(aggregates[(np.array([0, 1]), ...)].to_dense(), dense[:2])
    with pytest.raises(IndexError):
        aggregates[4]


def test_groups_of_places_are_taken_by_number():
    samples = np.random.default_rng(0).normal(size=(3, 2, 2, 1))
    samples[1, 1] = np.nan
    taken = Aggregates.from_samples(samples).take([1, 2])
    assert taken.indptr.tolist() == [0, 2, 2, 4, 6]
    np.testing.assert_array_equal(taken.points[:2], samples[1, 0])
    np.testing.assert_array_equal(taken.points[2:], samples[2].reshape(4, 1))
    assert taken.symbol.tolist() == list(range(6))


def test_equal_sequences_of_single_tokens_become_one_and_all_others_stay():
    dense = np.zeros((6, 2, 3))
    dense[[0, 2, 3], 0, 1] = [1, 4, 1]
    dense[[0, 2, 3], 1, 2] = [1, 4, 1]
    dense[1] = dense[4] = [[1, 1, 0], [2, 0, 0]]
    dense[5, 1, 2] = 2  # its first step was not observed
    groups = Aggregates.from_dense(dense)

    distinct, sequences, tokens = groups.distinct

    assert sequences.tolist() == [0, 1, 4, 5]
    assert distinct.sizes.tolist() == [6, 2, 2, 2]
    expected = dense[sequences]
    expected[0] *= 6
    np.testing.assert_array_equal(distinct.to_dense(), expected)
    np.testing.assert_array_equal(groups.symbol[tokens], distinct.symbol)


def test_where_nothing_is_equal_aggregates_are_their_own_distinct_ones():
    groups = aggregate([[0, 1], [1, 0], [1, 1]], 1, 2)
    assert groups.distinct.aggregates is groups


def test_equal_long_sequences_are_found_where_no_number_holds_their_symbols():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 1000, (3, 40))
    groups = aggregate(rows[[2, 0, 1, 0, 2, 2]], 1, 1000)
    assert groups.distinct.sequences.tolist() == [0, 1, 2]
    assert groups.distinct.aggregates.sizes.tolist() == [3, 2, 1]
