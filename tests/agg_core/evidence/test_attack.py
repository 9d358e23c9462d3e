import numpy as np
import pytest

from agg_core.evidence.attack import MOST_ATTACKED, attack
from tests.faults import refused

NEAR_AND_FAR = [[0.0, 0.0], [1000.0, 0.0]]


def test_one_person_alone_is_always_followed():
    found = attack([[0, 1, 1, 0]], 2, places_m=NEAR_AND_FAR)
    assert (found.steps, found.whole) == (1, 1)
    assert (found.chance_steps, found.chance_whole) == (1, 1)


def test_in_one_cell_the_attack_is_no_better_than_chance():
    found = attack(np.zeros((3, 4), dtype=int), 2, places_m=NEAR_AND_FAR)
    assert found.steps == found.chance_steps == 1


def test_who_stays_is_followed_and_chance_is_worked_out_by_hand():
    # Two people in cell 0, one in cell 1, over two steps.
    found = attack([[0, 0], [0, 0], [1, 1]], 2, places_m=NEAR_AND_FAR)
    assert (found.steps, found.whole) == (1, 1)
    # By lot somebody in cell 0 is put there with 2/3, who is in cell 1 with 1/3.
    assert found.chance_steps == pytest.approx((2 / 3 + 2 / 3 + 1 / 3) / 3)
    three = attack([[0, 0, 0], [0, 0, 0], [1, 1, 1]], 2, places_m=NEAR_AND_FAR)
    assert three.chance_whole == pytest.approx((4 / 9 + 4 / 9 + 1 / 9) / 3)


def test_who_change_places_are_taken_for_each_other():
    found = attack([[0, 1], [1, 0]], 2, places_m=NEAR_AND_FAR)
    assert (found.steps, found.whole) == (0, 0)
    assert found.chance_steps == 0.5
    assert (found.stay_steps, found.stay_whole) == (0, 0)
    back = attack([[0, 1, 0], [1, 0, 1], [1, 1, 1]], 2, places_m=NEAR_AND_FAR)
    assert (back.stay_steps, back.stay_whole) == (pytest.approx(4 / 6), pytest.approx(1 / 3))


def test_chances_of_moves_tell_who_change_places():
    found = attack([[0, 1], [1, 0]], 2, transmat=[[0.1, 0.9], [0.9, 0.1]])
    assert found.steps == 1
    by_step = [[[0.1, 0.9], [0.9, 0.1]], [[0.9, 0.1], [0.1, 0.9]]]
    assert attack([[0, 1, 1], [1, 0, 0]], 2, transmat=by_step).whole == 1


def test_who_go_on_as_they_went_are_followed_by_their_heading():
    # On a line of six cells two people pass each other.
    line = np.stack([np.arange(6) * 100.0, np.zeros(6)], axis=1)
    people = [[0, 2, 4], [5, 3, 1]]
    assert attack(people, 6, places_m=line, heading=True).whole == 1
    assert attack(people, 6, places_m=line).whole == 0


def test_which_of_two_alike_moved_is_a_toss():
    found = [
        attack([[0, 0], [0, 1]], 2, places_m=NEAR_AND_FAR, random_state=seed).steps
        for seed in range(200)
    ]
    assert set(found) == {0, 1}
    assert 0.35 < np.mean(found) < 0.65


def test_a_count_that_is_withheld_leaves_the_other_cells():
    places = np.array([[0.0, 0.0], [100.0, 0.0], [5000.0, 0.0]])
    people = [[0, 0], [0, 0], [0, 0], [2, 2]]
    found = attack(people, 3, places_m=places, least_people=2)
    # Whoever is in no count is taken to have stayed in cell 2, the nearest that is not shown.
    assert found.steps == 1
    assert found.withheld == 0.25
    # By lot: three with 3/4; the fourth with 1/4 outside of the count, in one of two cells.
    assert found.chance_steps == pytest.approx((3 * 3 / 4 + 1 / 8) / 4)
    none = attack(people, 3, places_m=places, least_people=9)
    assert none.withheld == 1
    assert none.steps == 1  # all are taken to stay


def test_states_that_are_no_people_are_refused():
    with refused("wrong-shape"):
        attack([[0], [1]], 2, places_m=NEAR_AND_FAR)
    with refused("wrong-shape"):
        attack([[0.5, 1.0]], 2, places_m=NEAR_AND_FAR)
    with refused("unknown-cell", "2 cells"):
        attack([[0, 2]], 2, places_m=NEAR_AND_FAR)
    with refused("too-many-people"):
        attack(np.zeros((MOST_ATTACKED + 1, 2), dtype=int), 2, places_m=NEAR_AND_FAR)


def test_costs_are_those_of_all_cells():
    with refused("wrong-shape"):
        attack([[0, 1]], 2)
    with refused("wrong-shape"):
        attack([[0, 1]], 2, places_m=[[0.0, 0.0]])
    with refused("wrong-shape"):
        attack([[0, 1]], 2, transmat=np.ones((3, 3)))
