"""The story shows the very people, reports and groups that the teaching view learns from."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from agg_core.lab.story import morning
from agg_core.lab.teaching import TEACHING_TIME, TeachingResult, TeachingSettings, sample_people
from agg_core.study.people import study_steps
from agg_core.tables.sequences import to_sequences

SETTINGS = TeachingSettings(n_people=400, iterations=1, seed=3)
SIZE = 20


@cache
def told():
    return morning(TeachingResult(SETTINGS, 0.0, (), None, 0.0), SIZE)


@cache
def study():
    *_, result = study_steps(sample_people(SETTINGS.n_people), SETTINGS.study("cfb", SIZE))
    return result


def test_people_are_where_their_fixes_are():
    people = sample_people(SETTINGS.n_people)
    grid = SETTINGS.grid.make()
    sequences = to_sequences(people, grid, step="30min", length=3, start=TEACHING_TIME)
    np.testing.assert_array_equal(told().states, sequences.states)
    assert told().clock == ("08:00", "08:30", "09:00")
    shown = told().states[told().shown]
    for step in range(3):
        cell = grid.assign(*told().places[:, step].T)
        np.testing.assert_array_equal(np.where(cell < 0, grid.n_cells, cell), shown[:, step])
    table = people.table
    for number in (0, 7, 100):
        row = sequences.fixes[told().shown[number], 1]
        assert tuple(told().places[number, 1]) == (table["lon"][row], table["lat"][row])


def test_reports_are_those_that_the_study_counts():
    d = SETTINGS.grid.make().n_cells
    n_states = study().n_states
    counted = [np.bincount(told().reported[:, step], minlength=n_states) for step in range(3)]
    np.testing.assert_array_equal(counted, study().observed(TEACHING_TIME))
    assert told().misclassify == study().settings.learn.misclassify
    wrong = (told().reported != told().states).mean()
    assert 0 < wrong < 2 * told().misclassify
    inside = told().group.sum(axis=1)
    assert told().group.shape == (3, d)
    assert ((inside <= SIZE) & (inside > 0)).all()
    assert told().n_groups == study().n_groups


def test_moves_are_counted_by_hand():
    def by_hand(states):
        return sum(a != b for row in states.tolist() for a, b in pairwise(row)) / 2

    assert told().moves == by_hand(told().states)
    assert told().seeming_moves == by_hand(told().reported)
    assert told().seeming_moves > told().moves
    rows = told().states[told().shown].tolist()
    assert told().movers.tolist() == [len(set(row)) > 1 for row in rows]
    reported = told().reported[told().shown].tolist()
    assert told().misplaced.tolist() == [a != b for a, b in zip(rows, reported, strict=True)]


@pytest.mark.parametrize("which", ["states", "reported"])
def test_dots_lie_in_the_cells_that_are_told(which):
    grid = SETTINGS.grid.make()
    states = getattr(told(), which)
    places = told().in_cells(states)
    shown = states[told().shown]
    cells = grid.assign(places[..., 0].ravel(), places[..., 1].ravel()).reshape(shown.shape)
    inside = shown < grid.n_cells
    assert inside.mean() > 0.9
    np.testing.assert_array_equal(cells[inside], shown[inside])
    np.testing.assert_array_equal(places[~inside], told().places[~inside])
