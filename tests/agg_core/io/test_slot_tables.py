"""Tables that number slots of time, beside the table that says when these begin."""

import pytest

from agg_core.io import read_trajectories
from tests.faults import refused

PEOPLE = b"uid,date,slot,lat,lon\na,2024-05-01,16,35.6,139.7\na,2024-05-01,017,35.61,139.71\n"
CLOCKS = b"slot,start,end\n16,08:00,08:30\n17,08:30,09:00\n"
MOMENTS = b"slot_id;start_time\n16;2024-05-01 08:00\n17;2024-05-01 08:30\n"
HALF_HOURS = ["2024-05-01 08:00", "2024-05-01 08:30"]


def times(found):
    return found.table["time"].dt.strftime("%Y-%m-%d %H:%M").tolist()


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("slots", [CLOCKS, MOMENTS])
def test_a_row_is_where_its_slot_begins(slots, order):
    files = dict([("people.csv", PEOPLE), ("slots.csv", slots)][::order])
    found = read_trajectories(files)
    assert times(found) == HALF_HOURS
    assert (found.report.individuals, found.report.rows_kept) == (1, 2)
    assert found.report.guesses["slots"].value.startswith("slot = ")


def test_people_in_several_files_share_the_slots():
    other = PEOPLE.replace(b"a,", b"b,")
    found = read_trajectories({"1.csv": PEOPLE, "2.csv": other, "slots.csv": CLOCKS})
    assert (found.report.individuals, found.report.rows_kept) == (2, 4)


def test_a_slot_that_the_table_lacks_has_no_time():
    more = PEOPLE + b"a,2024-05-01,99,35.6,139.7\n"
    report = read_trajectories({"people.csv": more, "slots.csv": CLOCKS}).report
    assert (report.rows_read, report.rows_kept) == (3, 2)
    assert {cause: rows.count for cause, rows in report.set_aside.items()} == {"missing time": 1}


def test_numbers_of_slots_alone_are_a_question():
    with refused("no-slot-table") as fault:
        read_trajectories(PEOPLE)
    assert fault.value.option == "--slots FILE"


def test_slots_that_do_not_fit_are_refused():
    dateless = b"uid,slot,lat,lon\na,16,35.6,139.7\na,17,35.61,139.71\n"
    with refused("slots-without-day"):
        read_trajectories({"people.csv": dateless, "slots.csv": CLOCKS})
    assert times(read_trajectories({"people.csv": dateless, "slots.csv": MOMENTS})) == HALF_HOURS
    with refused("slots-unknown"):
        read_trajectories({"people.csv": PEOPLE, "slots.csv": b"slot,start\n1,08:00\n2,09:00\n"})
