import numpy as np
import pytest
from scipy import sparse

from agg_core.base import moves as m

D = 7


def table(seed, density=0.4, shape=(D, D)):
    """A sparse table of which some entries are 0 just now, and the whole one of the same."""
    rng = np.random.default_rng(seed)
    allowed = rng.random(shape) < density
    origin, dest = np.nonzero(allowed)
    values = rng.random(len(origin)) * (rng.random(len(origin)) < 0.8)
    near = sparse.csr_array((values, dest, np.r_[0, np.cumsum(allowed.sum(axis=1))]), shape=shape)
    return near, near.toarray()


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_a_sparse_table_are_those_of_the_whole_one(seed):
    near, whole = table(seed)
    for of in (m.origin_sums, m.dest_sums, m.diagonal, m.most_of_origin):
        np.testing.assert_allclose(of(near), of(whole), rtol=1e-14)
    np.testing.assert_array_equal(m.whole(m.normalised_rows(near)), m.normalised_rows(whole))


@pytest.mark.parametrize("seed", range(4))
def test_values_of_states_meet_the_entries_of_their_rows_and_columns(seed):
    near, whole = table(seed)
    of_state = np.random.default_rng(seed).random(D)
    for at in (m.at_origin, m.at_dest):
        scaled = m.moves_like(near, m.entries(near) * at(near, of_state))
        np.testing.assert_array_equal(m.whole(scaled), whole * at(whole, of_state))
    stay = m.moves_like(near, m.entries(near) * m.own(near))
    np.testing.assert_array_equal(m.whole(stay), np.diag(np.diagonal(whole)))


def test_tables_of_one_pattern_keep_the_entries_that_are_zero():
    near, _ = table(1)
    assert (near.data == 0).any()
    found = m.moves_like(near, near.data + near.data)
    np.testing.assert_array_equal(found.indices, near.indices)
    assert m.nobody_like(near).nnz == near.nnz
    assert not m.nobody_like(near).data.any()


@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_are_counted_where_moves_may_be(weighted):
    rng = np.random.default_rng(3)
    near, whole = table(3)
    origin, dest = rng.integers(D, size=(2, 200))
    weights = rng.random(200) if weighted else None
    counted = m.counted_like(whole, origin, dest, weights)
    assert counted.sum() == pytest.approx(200 if weights is None else weights.sum())
    pattern = m.whole(m.moves_like(near, np.ones(near.nnz)))
    found = m.whole(m.counted_like(near, origin, dest, weights))
    np.testing.assert_allclose(found, counted * pattern, rtol=1e-14)
    np.testing.assert_array_equal(m.at_pairs(near, origin, dest), whole[origin, dest])
    np.testing.assert_array_equal(m.at_pairs(whole, origin, dest), whole[origin, dest])


def test_a_table_without_entries_has_no_numbers():
    empty = sparse.csr_array((D, D))
    assert not m.at_pairs(empty, np.array([0, 3]), np.array([1, 3])).any()
    assert not m.most_of_origin(empty).any()
    assert not m.origin_sums(empty).any()


def test_a_table_need_not_be_square():
    near, whole = table(5, shape=(3, 9))
    np.testing.assert_allclose(m.dest_sums(near), whole.sum(axis=0))
    found = m.counted_like(near, np.array([2, 2]), np.array([8, 0]))
    assert found.shape == (3, 9)
    counted = m.counted_like(whole, np.array([2, 2]), np.array([8, 0]))
    assert counted[2, 8] == counted[2, 0] == 1


def test_sparse_tables_of_any_format_are_read_in_order():
    twice = sparse.coo_array(([1.0, 2.0, 3.0], ([1, 1, 0], [2, 2, 1])), shape=(3, 3))
    found = m.as_moves(twice)
    np.testing.assert_array_equal(found.toarray(), [[0, 3, 0], [0, 0, 3], [0, 0, 0]])
    assert found.nnz == 2
    unordered = sparse.csr_array(([1, 2], [2, 0], [0, 2, 2, 2]), shape=(3, 3))
    found = m.as_moves(unordered)
    np.testing.assert_array_equal(found.indices, [0, 2])
    np.testing.assert_array_equal(unordered.indices, [2, 0])  # what was given is left as it is


def test_states_after_some_states():
    near, whole = table(6, density=0.25)
    for chosen in np.eye(D, dtype=bool):
        expected = (whole[chosen] > 0).any(axis=0)
        np.testing.assert_array_equal(m.states_after(near, chosen), expected)
        np.testing.assert_array_equal(m.states_after(whole, chosen), expected)
    assert not m.states_after(near, np.zeros(D, dtype=bool)).any()


def test_pairs_become_a_pattern():
    found = m.pattern_of_pairs([2, 0, 2], [1, 0, 1], 3)
    np.testing.assert_array_equal(found.toarray(), [[1, 0, 0], [0, 0, 0], [0, 1, 0]])
