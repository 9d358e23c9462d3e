import numpy as np
import pytest

from agg_core.evidence.attack import MOST_ATTACKED, attack, attack_on
from agg_core.evidence.privacy import Limit
from agg_core.study.settings import WindowSettings
from tests.agg_core import counted, tiny
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


@pytest.mark.parametrize("least", [0, 5])
def test_cell_by_cell_as_many_are_found_as_one_by_one(least):
    result = tiny.run(tiny.people(outside=True), tiny.settings())[1]
    time = result.busiest
    found = attack_on(result, time, Limit(least))
    flows = np.asarray(result.matrix(time))
    flows = np.where(flows >= least, flows, 0)
    leaving = flows.sum(axis=1, keepdims=True)
    chances = np.where(leaving > 0, flows / np.where(leaving > 0, leaving, 1), np.eye(len(flows)))
    each = []
    for step in range(result.n_steps):
        rows = result.rows(time, "counted", step)
        people = np.repeat(rows[["origin", "dest"]].to_numpy(), rows["count"].astype(int), axis=0)
        each += [
            attack(people, len(chances), transmat=chances, least_people=least, random_state=seed)
            for seed in range(20)
        ]
    one_by_one = {name: np.mean([getattr(one, name) for one in each])
                  for name in ("steps", "chance_steps", "stay_steps", "withheld")}  # fmt: skip
    # Who of a cell is who is drawn there: twenty draws are off by a hundredth or so.
    assert found.steps == pytest.approx(one_by_one["steps"], abs=0.03)
    for name in ("chance_steps", "stay_steps", "withheld"):
        assert getattr(found, name) == pytest.approx(one_by_one[name])
    assert (found.n_steps, found.n_people) == (result.n_steps + 1, each[0].n_people)


def test_limited_flows_within_a_reach_are_followed_like_whole_ones():
    window = WindowSettings(60, 3, ("08:00",))
    whole = tiny.run(tiny.people(), tiny.settings(window))[1]
    near = tiny.run(tiny.people(), tiny.settings(window, reach_m=90_000.0))[1]
    assert near.is_sparse
    for least in (0, 2):
        one, other = (attack_on(result, "08:00", Limit(least, 3)) for result in (whole, near))
        assert (other.n_people, other.stay_steps) == (one.n_people, one.stay_steps)
        assert 0 < other.steps <= 1


def test_only_who_was_followed_can_be_found():
    with refused("nobody-followed"):
        attack_on(counted.drawn(), counted.MORNING)
    result = tiny.run(tiny.people(), tiny.settings())[1]
    with refused("unknown-time"):
        attack_on(result, "03:33")
