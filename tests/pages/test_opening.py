"""Pages opened cold, the sample, uploads good and bad, and the choices of reading."""

import gzip

import pandas as pd
import pytest

from agg_core.made.samples import SAMPLES
from tests.pages.visit import PAGES, Visit

SAMPLE = SAMPLES["tokyo_commuters"]
HOSTILE_NAME = "<img src=x onerror=alert(1)>*b*.csv"
IMAGE = "![x](http://example.org/x.png)"


def tiny(header: str = "user,time,lon,lat", people: int = 3, person: str = "u{}") -> str:
    """Six fixes each, every ten minutes from 8:00 of a day."""
    rows = [
        f"{person.format(i)},2024-05-06 08:{10 * j:02d}:00,{139.5 + 0.01 * i},{35.6 + 0.01 * j}"
        for i in range(people)
        for j in range(6)
    ]
    return "\n".join([header, *rows])


@pytest.mark.parametrize(
    ("page", "title"), [(name, "Population flows" if name == "Home" else name) for name in PAGES]
)
def test_every_page_opens_cold(page: str, title: str) -> None:
    visit = Visit(page)
    assert visit.title == title
    assert not visit.errors


@pytest.mark.parametrize(
    ("page", "message", "way_on"),
    [
        ("Data", "Nothing is open yet", SAMPLE.title),
        ("Grid", "No data is open yet", "Go to Data"),
        ("Learn", "No data is open yet", "Go to Data"),
        ("Flows", "There are no flows yet", f"Flows of the sample: {SAMPLE.title}"),
        ("Evidence", "There are no flows yet", f"Flows of the sample: {SAMPLE.title}"),
        ("Runs", "No runs are saved yet", "Go to Learn"),
    ],
)
def test_an_empty_page_says_what_to_do_first(page: str, message: str, way_on: str) -> None:
    visit = Visit(page)
    assert [message in info.value for info in visit.at.info] == [True]
    assert way_on in visit.ways_on


def test_experiments_of_the_lab_say_what_to_do_first() -> None:
    visit = Visit("Lab", part="experiments")
    assert ["Choose one of the paper's figures" in info.value for info in visit.at.info] == [True]
    assert "Run the experiment" in visit.ways_on


def test_data_opens_the_sample_where_it_stands() -> None:
    visit = Visit("Data").press(f"data.{SAMPLE.key}")
    assert visit.title == "Data"
    assert visit.figures["People"] == f"{SAMPLE.n_people:,}"
    assert visit.figures["Rows set aside"] == "0"
    assert len(visit.decks()[0]["fixes"]) == 5_000
    visit.press("to.pages/2_Grid.py")
    assert visit.title == "Grid"
    assert len(visit.decks()[0]["cells"]) == SAMPLE.rows * SAMPLE.cols
    assert SAMPLE.title.split()[0] in visit.captions


def test_data_makes_a_city_of_the_size_asked_for() -> None:
    visit = Visit("Data").set(f"data.{SAMPLE.key}.people", 1000)
    visit.press(f"data.{SAMPLE.key}.make")
    assert visit.figures["People"] == "1,000"
    assert "1,000 people" in visit.captions.replace("\\", "")


@pytest.mark.parametrize("pack", [str.encode, lambda text: gzip.compress(text.encode())])
def test_an_upload_is_reported(pack) -> None:
    visit = Visit("Data").upload("mine.csv", pack(tiny() + "\nu9,2024-05-06 08:00:00,139.5,95"))
    assert not visit.errors
    assert visit.figures == {
        "People": "3",
        "Fixes kept": "18",
        "Rows set aside": "1",
        "Fixes per person": "6",
    }
    aside = visit.at.dataframe[0].value
    assert aside["Rows"].tolist() == [1]
    assert "08:00 to 2024-05-06 08:50" in visit.captions
    assert len(visit.decks()[0]["fixes"]) == 18


BAD = {
    "empty": b"",
    "blank": b"\n\n \n",
    "no rows": b"user,time,lon,lat\n",
    "no time column": b"user,lon,lat\n1,139.5,35.6\n",
    "no position columns": b"user,time,note\n1,2024-05-06 08:00:00,x\n",
    "no place on earth": b"user,time,lon,lat\n1,2024-05-06 08:00:00,500,600\n",
    "binary": bytes(range(256)) * 40,
    "cut gzip": gzip.compress(tiny().encode())[:60],
    "cut parquet": b"PAR1" + bytes(100),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_a_bad_upload_is_one_sentence_and_what_was_open_stays(content: bytes) -> None:
    visit = Visit("Data").upload("good.csv", tiny())
    before = visit.figures
    visit.upload("bad.csv", content)
    assert len(visit.errors) == 1
    assert visit.errors[0].endswith(".")
    assert "\n" not in visit.errors[0]
    assert "Traceback" not in visit.errors[0]
    assert visit.figures == before
    visit.go("Grid")
    assert not visit.errors
    assert "good" in visit.captions
    visit.go("Data").upload("better.csv", tiny(people=5))
    assert not visit.errors
    assert visit.figures["People"] == "5"


def test_columns_can_be_chosen() -> None:
    visit = Visit("Data").upload("odd.csv", tiny("alpha,beta,gamma,delta"))
    assert len(visit.errors) == 1
    visit.read_again(user_id="alpha", time="beta", lon="gamma", lat="delta")
    assert not visit.errors
    assert visit.figures["Fixes kept"] == "18"
    assert "Longitude column" not in visit.guesses, "a stated column is no guess"
    assert visit.value("reading.lon") == "gamma"
    assert "west 139.5000" in visit.captions


def test_a_choice_of_columns_overrules_the_names() -> None:
    swapped = (
        "user,time,lat,lon\n1,2024-05-06 08:00:00,139.5,35.6\n1,2024-05-06 08:10:00,139.6,35.7"
    )
    visit = Visit("Data").upload("swapped.csv", swapped)
    visit.read_again(lon="lat", lat="lon")
    assert not visit.errors
    assert visit.value("reading.lon") == "lat"
    assert "west 139.5" in visit.captions


def test_a_zone_shifts_the_clock() -> None:
    visit = Visit("Data").upload("mine.csv", tiny())
    assert visit.guesses["Time zone"] == "UTC"
    assert "Time zone taken as UTC: the zone was not stated" in visit.captions.replace("\\", "")
    visit.read_again(tz="Asia/Tokyo")
    assert "clock of Asia/Tokyo" in visit.captions
    assert visit.guesses["Time zone"] == "Asia/Tokyo"
    assert visit.go("Grid").value("view.heat.time") in [f"08:{m}0" for m in range(6)]


def test_rows_can_be_chosen_and_a_choice_of_none_is_a_sentence() -> None:
    rows = [f"{line},{i % 2}" for i, line in enumerate(tiny().splitlines()[1:])]
    visit = Visit("Data").upload("mine.csv", "\n".join(["user,time,lon,lat,odd", *rows]))
    visit.read_again(where="odd", value="1")
    assert visit.figures["Fixes kept"] == "9"
    visit.read_again(value="7")
    assert len(visit.errors) == 1
    assert visit.figures["Fixes kept"] == "9"


def test_reading_again_keeps_a_grid_that_still_fits() -> None:
    visit = Visit("Data").upload("mine.csv", tiny())
    visit.go("Grid").set("grid.rows", 5).go("Data").read_again(tz="Asia/Tokyo").go("Grid")
    assert visit.value("grid.rows") == 5


def test_a_file_read_at_the_second_try_gets_a_grid_of_its_own() -> None:
    visit = Visit("Data").upload("odd.csv", tiny("alpha,beta,gamma,delta"))
    assert len(visit.errors) == 1
    visit.read_again(user_id="alpha", time="beta", lon="gamma", lat="delta").go("Grid")
    fixes = [139.5, 139.52, 35.6, 35.65]  # west, east, south, north of the file
    extent = [visit.value(f"grid.{side}") for side in ("west", "east", "south", "north")]
    assert extent == pytest.approx(fixes, abs=0.05), "not that of Greater Tokyo"


def test_the_sample_after_an_upload_takes_its_own_grid_and_hides_the_choices_of_reading() -> None:
    visit = Visit("Data").upload("mine.csv", tiny())
    visit.go("Grid").set("grid.rows", 5).go("Data").press(f"data.{SAMPLE.key}")
    assert "reading.tz" not in visit.keys("selectbox")
    assert visit.go("Grid").value("grid.rows") == SAMPLE.rows


def test_a_hostile_file_name_is_shown_as_text() -> None:
    visit = Visit("Data").upload(HOSTILE_NAME, tiny(person="<script>alert({})</script>"))
    assert not visit.errors
    assert visit.figures["People"] == "3"
    assert r"\<img src=x onerror=alert\(1\)\>\*b\*" in visit.captions
    for page in ("Grid", "Learn", "Data"):
        visit.go(page)
        shown = [*visit.at.markdown, *visit.at.caption]
        assert not any(block.allow_html for block in shown)
        assert "<script>" not in "".join(
            chart.proto.json for chart in visit.at.get("deck_gl_json_chart")
        )


def test_markdown_in_a_column_name_is_not_followed() -> None:
    visit = Visit("Data").upload("bad.csv", f"user,{IMAGE},lon,lat\n1,2,139.5,35.6\n")
    assert len(visit.errors) == 1
    assert IMAGE not in visit.errors[0]


def test_a_personal_id_is_kept_as_data() -> None:
    visit = Visit("Data").upload("mine.csv", tiny(person="*{}*"))
    assert visit.figures["People"] == "3"
    assert isinstance(visit.at.dataframe[-1].value, pd.DataFrame)


def test_what_sessions_share_of_the_sample_is_not_taken_for_that_of_a_file() -> None:
    def people_at_most(visit: Visit) -> int:
        said = next(c.value for c in visit.at.caption if "people on the grid" in c.value)
        return int(said.split(": ")[1].split()[0].replace(",", ""))

    sample = Visit("Data").press("data.tokyo_commuters").go("Grid")
    assert people_at_most(sample) > 100
    again = Visit("Data").press("data.tokyo_commuters").go("Grid")
    assert people_at_most(again) == people_at_most(sample)
    own = again.go("Data").upload("own.csv", tiny()).go("Grid")
    assert people_at_most(own) == 3
