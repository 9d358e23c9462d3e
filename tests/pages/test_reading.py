"""The import doctor on the page Data: doubts with a button each, remedies, several files, bombs."""

import gzip
import subprocess
import time

import pytest

from tests.pages.visit import Visit

AMBIGUOUS = "user,time,lon,lat\n" + "".join(
    f"a,0{day}/02/2024 08:00,139.5{day},35.6\n" for day in range(1, 7)
)


def captions(visit):
    return visit.captions.replace("\\", "")


def test_a_doubt_has_a_button_for_the_other_reading():
    visit = Visit("Data").upload("dates.csv", AMBIGUOUS)
    assert "2024-02-01 08:00 to 2024-02-06 08:00" in captions(visit)
    assert "every date can be read both ways" in captions(visit)
    visit.press("doubt.time format.month/day/year")
    assert "2024-01-02 08:00 to 2024-06-02 08:00" in captions(visit)
    assert visit.value("reading.time_format") == "month/day/year"
    assert visit.figures["Fixes kept"] == "6"


def test_what_cannot_be_read_offers_what_mends_it():
    swapped = "user,time,lat,lon\na,2024-05-06 08:00,139.5,35.6\na,2024-05-06 08:10,139.6,35.7"
    visit = Visit("Data").upload("swapped.csv", swapped)
    assert len(visit.errors) == 1
    visit.press("reading.remedy")
    assert not visit.errors
    assert "west 139.5000" in captions(visit)
    metres = "id,time,x,y\n1,2024-05-18 10:00,15558802.4,4256843.2\n"
    visit.upload("metres.csv", metres)
    assert "EPSG:3857" in visit.errors[0].replace("\\", "")
    visit.press("reading.remedy")
    assert "west 139.7671" in captions(visit)
    assert visit.value("reading.crs") == "EPSG:3857"


def test_a_limit_of_speed_from_the_form():
    leap = "user,time,lon,lat\n" + "".join(
        f"a,2024-05-06 08:{minute:02d},{139.5 + 5 * (minute == 3)},35.6\n" for minute in range(6)
    )
    visit = Visit("Data").upload("leap.csv", leap)
    assert "moves faster than 1,200 km/h: 2" in captions(visit)
    visit.read_again(max_speed=300.0)
    assert visit.figures["Rows set aside"] == "1"


def test_several_files_are_read_together():
    visit = Visit("Data")
    uploader = visit.at.file_uploader(key="uploads")
    day = "user,time,lon,lat\na,2024-05-0{} 08:00,139.5,35.6\nb,2024-05-0{} 08:00,139.6,35.7\n"
    for i in (1, 2):
        uploader.upload("log.csv", day.replace("{}", str(i)).encode(), "text/csv")
    visit._run()
    assert visit.figures["People"] == "2"
    assert visit.figures["Fixes kept"] == "4"
    visit.read_again(ids="per file")
    assert visit.figures["People"] == "4"


def test_a_bomb_leaves_the_app_alive():
    visit = Visit("Data").upload("good.csv", AMBIGUOUS)
    before = visit.figures
    visit.upload("bomb.csv.gz", gzip.compress(bytes(1 << 24)) * 64)
    assert "unpacks to more than" in visit.errors[0]
    assert visit.figures == before


@pytest.mark.parametrize("name", ["../../x.csv", "/etc/passwd", "a\x00b.csv"])
def test_a_name_is_no_path(name):
    visit = Visit("Data").upload(name, AMBIGUOUS)
    assert visit.figures["Fixes kept"] == "6"


def test_what_takes_long_shows_how_far_it_is_and_opens_by_itself(monkeypatch):
    monkeypatch.setattr("ui.loading.AT_ONCE_BYTES", 0)
    visit = Visit("Data").upload("dates.csv", AMBIGUOUS)
    assert "reading.cancel" in visit.keys("button")
    assert "Fixes kept" not in visit.figures
    assert "reading.tz" not in visit.keys("selectbox"), "what is being read is not read otherwise"
    for _ in range(300):
        if "Fixes kept" in visit.go("Grid").go("Data").figures:
            break
        time.sleep(0.1)
    assert visit.figures["Fixes kept"] == "6"
    assert "reading.cancel" not in visit.keys("button")


@pytest.mark.parametrize(("spare", "waits"), [(0, True), (-1, False)])
def test_size_alone_decides_whether_the_page_waits(monkeypatch, spare, waits):
    """However slow the machine is: the reading has not begun when the page looks at it."""
    monkeypatch.setattr("ui.loading.AT_ONCE_BYTES", len(AMBIGUOUS.encode()) + spare)
    slow = subprocess.Popen

    def late(command, **how):
        return slow(["sh", "-c", 'sleep 8; exec "$@"', "sh", *command], **how)

    monkeypatch.setattr("agg_core.base.processes.subprocess.Popen", late)
    visit = Visit("Data").upload("dates.csv", AMBIGUOUS)
    assert ("Fixes kept" in visit.figures) == waits
    assert ("reading.cancel" in visit.keys("button")) != waits


def test_reading_can_be_cancelled_and_leaves_what_was_open(monkeypatch):
    visit = Visit("Data").upload("good.csv", AMBIGUOUS)
    monkeypatch.setattr("ui.loading.AT_ONCE_BYTES", 0)
    visit.upload("long.csv", AMBIGUOUS.replace("a,", "b,") * 2)
    visit.press("reading.cancel")
    assert not visit.errors
    assert "good.csv" in captions(visit)
    assert visit.figures["Fixes kept"] == "6"


@pytest.mark.parametrize(
    "rows", [["139.5,35.6"], ["139.5,35.6", "139.5,35.7"], ["179.9,-17", "-179.9,-17"]]
)
def test_places_on_one_spot_or_line_have_a_map(rows):
    lines = [f"a,2024-05-06 08:{10 * i:02d},{row}" for i, row in enumerate(rows)]
    visit = Visit("Data").upload("few.csv", "\n".join(["user,time,lon,lat", *lines]))
    assert not visit.errors
    assert visit.figures["Fixes kept"] == str(len(rows))
    assert len(visit.decks()[0]["fixes"]) == len(rows)
    for page in ("Grid", "Learn"):
        assert not visit.go(page).errors


TRIPS = (
    "ride_id,started_at,ended_at,start_station_id,end_station_id,start_lat,start_lng,end_lat,end_lng\n"
    "A,2021-06-01 08:01:00,2021-06-01 08:11:00,s1,s2,40.73,-73.98,40.72,-73.99\n"
    "B,2021-06-01 08:03:00,2021-06-01 08:13:00,,s2,40.70,-73.95,40.72,-73.99\n"
)


def test_trips_of_nobody_are_counted_on_the_page():
    visit = Visit("Data").upload("good.csv", AMBIGUOUS)
    visit.upload("trips.csv", TRIPS)
    assert not visit.errors
    assert visit.figures["Trips"] == "1"
    assert visit.figures["Fixes kept"] == "6", "what was open stays open"
    visit.upload("again.csv", AMBIGUOUS)
    assert "Trips" not in visit.figures


def test_records_and_towers_are_joined_on_the_page():
    visit = Visit("Data")
    uploader = visit.at.file_uploader(key="uploads")
    calls = "caller_id,call_start,cell_id\n1,2023-03-01 08:01:00,7\n1,2023-03-01 09:30:00,8\n"
    uploader.upload("cdr.csv", calls.encode(), "text/csv")
    uploader.upload("towers.csv", b"cell_id,lat,lon\n7,35.68,139.76\n8,35.69,139.7\n", "text/csv")
    visit._run()
    assert not visit.errors
    assert visit.figures["Fixes kept"] == "2"


def test_columns_without_names_are_shown_with_values():
    table = "".join(f"{cell}\t1383260400000\t{n}\t2.5\n" for cell in (1, 2) for n in (39, 0))
    visit = Visit("Data").upload("grid.txt", table)
    assert len(visit.errors) == 1
    assert "1: 1383260400000" in visit.at.selectbox(key="reading.time").options
