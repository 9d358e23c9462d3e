"""Runs that outlive the session: listed, opened, compared, renamed, deleted; and who sees which."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from agg_core.base.errors import InputError
from agg_core.plotting.beside import SOURCE_KEYS
from agg_core.store.runs import Quota
from agg_core.store.saved_runs import SavedRun, SavedStudy
from agg_core.store.shipped_runs import SHIPPED_RUNS
from agg_core.study.beside import two_results
from agg_core.study.counts import CountStudy
from agg_core.study.people import ALL_DAY, StudyResult
from agg_core.study.settings import CountLearnSettings, StudySettings, WindowSettings
from tests.agg_core import counted, tiny
from tests.faults import refused
from tests.pages.visit import Visit, cleared_session
from ui import owner, runs, saved
from ui.cached import store
from ui.state import AppState, Run
from ui.two_runs import compared, map_key, tick_key

HOSTILE = "<img src=x onerror=alert(1)> *b* ![x](http://example.org/x.png) :smile: $x$"
SETTINGS = tiny.settings(iterations=1)


def result(**learn: object) -> StudyResult:
    made = tiny.run(tiny.people(), tiny.settings(iterations=1, **learn))[1]
    assert isinstance(made, StudyResult)
    return made


@pytest.fixture(scope="module")
def of_five() -> StudyResult:
    return result()


@pytest.fixture(scope="module")
def of_one() -> StudyResult:
    return result(group_size=1, threshold=3.0)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that others use too."""
    monkeypatch.setattr(owner, "LOCAL", ())


def app_state(visit: Visit) -> AppState:
    found = visit.at.session_state["app"]
    assert isinstance(found, AppState)
    return found


def shown_run(visit: Visit) -> Run[StudySettings] | None:
    return app_state(visit).study.finished


def titles(visit: Visit) -> list[str]:
    """Titles of the runs in the list, as they reach the browser."""
    return [m.value.split("**")[1] for m in visit.at.markdown if m.value.startswith("**")]


def table(visit: Visit, first: str) -> dict[str, tuple[str, ...]]:
    """A comparison: its rows by their label."""
    frame = next(d.value for d in visit.at.table if d.value.columns[0] == first)
    rows = frame.replace(r"\\", "", regex=True).itertuples(index=False)
    return {row[0]: tuple(row[1:]) for row in rows}


def learned() -> Visit:
    """A session that has learned a study of sixty people."""
    csv = tiny.frame(tiny.day_states()).to_csv(index=False)
    visit = Visit("Data").upload("sixty.csv", csv).go("Grid")
    for name in ("west", "south", "east", "north", "rows", "cols"):
        visit.set(f"grid.{name}", getattr(SETTINGS.grid, name))
    visit.set("window.step_minutes", 60).go("Learn").set("window.times", []).choose_nothing()
    return visit.set("learn.iterations", 1).set("learn.group_size", 5).learn()


def manage(visit: Visit, run: SavedRun) -> Visit:
    return visit.press(f"runs.{run.id}.manage")


def delete(visit: Visit, run: SavedRun) -> Visit:
    manage(visit, run)
    next(c for c in visit.at.checkbox if c.key == f"runs.{run.id}.sure").check()
    visit.at.run()
    return visit.press(f"runs.{run.id}.delete")


def tick(visit: Visit, *ticked: SavedRun) -> Visit:
    for run in ticked:
        visit.at.checkbox(key=f"runs.{run.id}.tick").check()
    return visit.go("Runs")


# ---------------------------------------------------------------- a study is saved by itself


def test_a_finished_study_is_saved_once_and_opened_by_a_later_session() -> None:
    with cleared_session():
        visit = learned()
        visit.go("Flows").go("Learn").go("Runs")
        assert not visit.errors
        (kept,) = store().list()
        assert isinstance(kept, SavedStudy)
        assert (kept.title, kept.n_individuals, kept.group_size) == ("sixty.csv", 60, 5)
        run = shown_run(visit)
        assert run is not None
        assert run.saved == kept.id != run.key
        assert "60 people" in visit.captions.replace("\\", "")
        visit.go("Flows")
        figures = visit.figures
    later = Visit("Runs")
    assert shown_run(later) is None
    later.press(f"runs.{kept.id}.open")
    assert not later.errors
    assert later.title == "Flows"
    assert later.figures == figures
    later.go("Learn").go("Flows")
    assert later.figures == figures, "no data is open in this session, the run is"


def test_another_run_that_is_opened_stays_open(of_one: StudyResult) -> None:
    other = store().save(of_one, "other")
    visit = learned().go("Runs").press(f"runs.{other.id}.open")
    visit.go("Learn").go("Flows").go("Runs")
    run = shown_run(visit)
    assert run is not None
    assert run.key == other.id
    assert len(store().list()) == 2


def test_a_disk_that_refuses_is_one_warning_and_can_be_tried_again(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "runs").write_text("no folder")
    with monkeypatch.context() as refused:
        refused.setenv("FLOWS_HOME", str(tmp_path / "other"))
        store.clear()
        visit = learned()
        assert not visit.errors
        assert ["could not be saved" in w.value for w in visit.at.warning] == [True]
        assert not visit.go("Flows").errors
        assert len(visit.figures) == 5
        assert not visit.at.warning or "saved" not in visit.at.warning[0].value
    store.clear()
    visit.go("Runs").press("runs.save")
    assert not visit.at.warning
    assert titles(visit) == [r"sixty\.csv"]


# ---------------------------------------------------------------- what can be done with a run


def test_a_run_is_renamed(of_five: StudyResult) -> None:
    run = store().save(of_five, "old")
    visit = manage(Visit("Runs"), run)
    visit.set(f"runs.{run.id}.title", "new").press(f"runs.{run.id}.rename")
    assert titles(visit) == ["new"]
    assert store().about(run.id).title == "new"
    visit.set(f"runs.{run.id}.title", " ").press(f"runs.{run.id}.rename")
    assert ["title" in error for error in visit.errors] == [True]
    assert titles(visit) == ["new"]


def test_a_run_is_deleted_only_when_that_is_confirmed(of_five: StudyResult) -> None:
    run, stays = store().save(of_five, "goes"), store().save(of_five, "stays")
    visit = Visit("Runs").press(f"runs.{run.id}.open").go("Runs")
    manage(visit, run)
    assert visit.at.button(key=f"runs.{run.id}.delete").disabled
    manage(visit, run)
    delete(visit, run)
    assert titles(visit) == ["stays"]
    assert store().list() == (stays,)
    assert shown_run(visit) is None
    assert "There are no flows yet" in visit.go("Flows").at.info[0].value


def test_the_address_is_there_to_copy(of_five: StudyResult) -> None:
    run, other = store().save(of_five, "x"), store().save(of_five, "y")
    visit = manage(Visit("Runs"), other)
    assert [code.value for code in visit.at.code] == [f"Flows?run={other.id}"]
    manage(visit, run)
    assert [code.value for code in visit.at.code] == [f"Flows?run={run.id}"]
    manage(visit, run)
    assert not visit.at.code


def test_a_hostile_title_is_text(of_five: StudyResult) -> None:
    run, other = store().save(of_five, HOSTILE), store().save(of_five, "plain")
    visit = manage(tick(Visit("Runs"), run, other), run)
    assert not visit.errors
    shown = [*visit.at.markdown, *visit.at.caption, *visit.at.info]
    assert not any(block.allow_html for block in [*visit.at.markdown, *visit.at.caption])
    text = "\n".join(block.value for block in shown)
    assert r"\<img src=x onerror=alert\(1\)\> \*b\* \!\[x\]" in text
    assert "![x](" not in text
    visit.press(f"runs.{run.id}.open")
    assert "![x](" not in "\n".join(block.value for block in visit.at.caption)


def test_a_damaged_run_is_a_sentence_and_the_other_opens(of_five: StudyResult) -> None:
    hurt, whole = store().save(of_five, "hurt"), store().save(of_five, "whole")
    (path,) = (store().folder / hurt.id).rglob("parameters.npz")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    visit = Visit("Runs").press(f"runs.{whole.id}.open").go("Runs")
    visit.press(f"runs.{hurt.id}.open")
    assert ["altered" in error for error in visit.errors] == [True]
    run = shown_run(visit)
    assert run is not None
    assert run.key == whole.id
    path.unlink()
    visit.go("Runs")
    assert ["missing" in w.value for w in visit.at.warning] == [True]
    assert titles(visit) == ["whole"]
    assert titles(delete(visit, hurt)) == ["whole"]
    assert store().list() == (whole,)


def test_many_runs_come_in_parts(of_five: StudyResult) -> None:
    made = [store().save(of_five, f"run {i}") for i in range(runs.AT_ONCE + 2)]
    visit = Visit("Runs")
    assert titles(visit) == [run.title for run in reversed(made)][: runs.AT_ONCE]
    visit.press("older")
    assert titles(visit) == [run.title for run in reversed(made)]
    assert "older" not in visit.keys("button")
    assert f"Up to {Quota().each}" in visit.captions


# ---------------------------------------------------------------- two side by side


def test_two_runs_side_by_side(of_five: StudyResult, of_one: StudyResult) -> None:
    one, other = store().save(of_one, "one"), store().save(of_five, "five")
    visit = tick(Visit("Runs"), one, other)
    assert "A: five · B: one" in visit.captions
    assert table(visit, "Settings that differ") == {
        "Group size, M (people)": ("5", "1"),
        "Arrow threshold (people per step)": ("2.0", "3.0"),
    }
    figures = table(visit, "Learned from groups")
    assert len(figures) == 5
    for label, name in (("Common part", "cpc"), ("Total movement", "total_ratio")):
        assert figures[label] == tuple(
            f"{getattr(comparison, name):.3f}"
            for comparison in (
                of_five.vs_single, of_one.vs_single, of_five.vs_counted, of_one.vs_counted,
            )
        )  # fmt: skip


def test_a_run_within_a_reach_beside_one_without(of_five: StudyResult) -> None:
    near = result(reach_m=500_000.0, inference="cfb")
    one, other = store().save(of_five, "free"), store().save(near, "near")
    visit = tick(Visit("Runs"), one, other)
    assert not visit.errors
    rows = table(visit, "Settings that differ")
    assert rows["Farthest move in a step (km)"] == ("500", "–")
    both = two_results(near, of_five)
    visit.press(f"runs.{other.id}.open")
    assert both.apart([ALL_DAY]).common_part > 0.5


def test_the_same_twice_differs_in_nothing(of_five: StudyResult) -> None:
    made = [store().save(of_five, "twin") for _ in range(3)]
    visit = tick(Visit("Runs"), *made[:2])
    assert "the same settings" in visit.captions
    tick(visit, made[2])
    assert not visit.at.dataframe
    assert "Tick two runs" in visit.captions


def test_runs_of_counts_side_by_side() -> None:
    other = replace(
        counted.study(), n_days=9, settings=CountLearnSettings(threshold=2.0, prior=50.0)
    )
    one, two = store().save(counted.study(), "week"), store().save(other, "more")
    visit = tick(Visit("Runs"), one, two)
    assert "A: more · B: week" in visit.captions
    assert table(visit, "Settings that differ") == {
        "Days": ("9", "7"),
        "Weight of the prior (people)": ("50.0", "20.0"),
    }
    assert table(visit, "Held-out counts") == {
        "Learned flows": ("1.000", "1.000", "-4.000", "-4.000"),
        "Nobody moves": ("2.000", "2.000", "–", "–"),
        "Gravity model": ("3.000", "3.000", "-6.000", "-6.000"),
    }


def hourly(study: CountStudy) -> CountStudy:
    return replace(study, step_minutes=60.0)


def code_of(*runs: SavedRun) -> str:
    """Why the core does not compare two runs."""
    with pytest.raises(InputError) as refused:
        two_results(*(store().load(run.id) for run in runs))
    return str(refused.value.code)


def test_people_and_counts_without_a_common_time_have_nothing_to_compare(
    of_five: StudyResult,
) -> None:
    made = [store().save(of_five, "people"), store().save(hourly(counted.study()), "counts")]
    visit = tick(Visit("Runs"), *made)
    assert code_of(*made) == "no-common-time"
    assert len(visit.errors) == 1
    assert not visit.maps
    assert not visit.at.table
    assert "no settings in common" in visit.captions


def test_settings_stay_below_where_steps_are_of_another_length() -> None:
    made = [store().save(counted.study(), "unknown"), store().save(hourly(counted.study()), "hour")]
    visit = tick(Visit("Runs"), *made)
    assert code_of(*made) == "other-steps"
    assert len(visit.errors) == 1
    assert not visit.maps
    assert table(visit, "Held-out counts")


# ---------------------------------------------------------------- two on one map


def sentences(visit: Visit) -> str:
    """What is said above the map, without markdown's signs."""
    return "\n".join(m.value for m in visit.at.markdown).replace("\\", "")


def test_two_runs_are_on_one_map_with_figures_of_the_core(
    of_five: StudyResult, of_one: StudyResult
) -> None:
    one, other = store().save(of_one, "one"), store().save(of_five, "five")
    visit = tick(Visit("Runs"), one, other)
    assert not visit.errors
    (sent,) = visit.maps
    two = two_results(of_five, of_one)
    apart = two.apart([ALL_DAY])
    told = sentences(visit)
    assert f"{apart.ratio:.2f} times" in told
    assert f"{apart.common_part:.0%} of all" in told
    for key, result in zip(SOURCE_KEYS, (of_five, of_one), strict=True):
        matrix = result.matrix(ALL_DAY)
        for (origin, dest), count in sent.flows(key, ALL_DAY).items():
            assert count == pytest.approx(matrix[origin, dest])
    headings = [source["heading"] for source in sent.header["sources"]]
    assert ["M = 5" in headings[0], "M = 1" in headings[1]] == [True, True]
    assert headings[0].startswith("A: five")
    assert headings[1].startswith("B: one")
    assert visit.view["show"] == "both"


def test_runs_of_the_same_settings_are_told_apart_by_when_they_were_made(
    of_five: StudyResult,
) -> None:
    made = [store().save(of_five, "twin") for _ in range(2)]
    (sent,) = tick(Visit("Runs"), *made).maps
    headings = [source["heading"] for source in sent.header["sources"]]
    for heading, run in zip(headings, reversed(made), strict=True):
        assert f"{run.created_utc.astimezone():%Y-%m-%d %H:%M:%S}" in heading


def test_figures_are_of_the_times_that_the_map_shows() -> None:
    other = replace(hourly(counted.both()), n_days=9)
    made = [store().save(hourly(counted.study()), "usual"), store().save(other, "happened")]
    visit = tick(Visit("Runs"), *made)
    # Who is in A moves 4 + 3.5 + 2.25 over the day, in B 3 + 4.5 + 0.75 (one goes outside).
    assert "9.8 people" in sentences(visit)
    assert "8.2 in B: A has 1.18 times" in sentences(visit)
    key = map_key([compared(run) for run in reversed(made)])
    visit.tell(key, time=counted.NIGHT, until=counted.NIGHT)
    assert f"At {counted.NIGHT} 7.0 people" in sentences(visit)
    assert "9.0 in B: A has 0.78 times" in sentences(visit)
    visit.tell(key, time=counted.MORNING, until=counted.NIGHT)
    # (8 + 0.5 + 2.5 + 4 + 7) / 2 and (6 + 1 + 1.5 + 0.25 + 9) / 2
    assert "11.0 people" in sentences(visit)
    assert "8.9 in B" in sentences(visit)


def test_people_are_compared_with_counts_of_the_same_cells_and_steps() -> None:
    settings = tiny.settings(window=WindowSettings(60, 3, ("08:00",)), iterations=1)
    people = tiny.run(tiny.people(outside=True), settings)[1]
    made = [store().save(people, "people"), store().save(hourly(counted.both()), "counts")]
    visit = tick(Visit("Runs"), *made)
    assert not visit.errors
    (sent,) = visit.maps
    assert sent.header["times"] == ["08:00"]
    assert "mean day" not in visit.captions, "both are of one day"
    assert "2 in B" in visit.captions
    assert "runs have are shown" in visit.captions


def test_cells_without_a_place_have_figures_and_no_map() -> None:
    made = [store().save(replace(hourly(counted.study()), grid=None), name) for name in "xy"]
    visit = tick(Visit("Runs"), *made)
    assert not visit.errors
    assert not visit.maps
    assert "1.00 times" in sentences(visit)


def test_two_shipped_runs_can_be_ticked_and_say_why_not() -> None:
    visit = Visit("Runs")
    for key in SHIPPED_RUNS:
        visit.at.checkbox(key=tick_key(key)).check()
    visit.go("Runs")
    assert len(visit.errors) == 1
    assert visit.address == {"a": "sample-tokyo", "b": "sample-counts"}


# ---------------------------------------------------------------- the address of a comparison


def test_the_two_runs_are_in_the_address_and_come_back_by_it(
    of_five: StudyResult, of_one: StudyResult
) -> None:
    one, other = store().save(of_one, "one"), store().save(of_five, "five")
    visit = tick(Visit("Runs"), one, other)
    assert visit.address == {"a": other.id, "b": one.id}
    again = Visit("Runs", **visit.address)
    assert not again.errors
    assert "A: five · B: one" in again.captions
    assert len(again.maps) == 1
    swapped = Visit("Runs", a=one.id, b=other.id)
    assert "A: one · B: five" in swapped.captions
    assert swapped.address == {"a": one.id, "b": other.id}
    again.at.checkbox(key=tick_key(one.id)).uncheck()
    again.go("Runs")
    assert not again.maps
    assert again.address == {}


def test_an_address_brings_runs_far_down_the_list(of_five: StudyResult) -> None:
    first = store().save(of_five, "first")
    made = [store().save(of_five, f"run {i}") for i in range(runs.AT_ONCE)]
    visit = Visit("Runs", a=first.id, b=made[0].id)
    assert "A: first · B: run 0" in visit.captions
    assert titles(visit)[-1] == "first"


@pytest.mark.parametrize(
    "address",
    [
        {"a": "../../etc/passwd", "b": HOSTILE},
        {"a": "0" * 32, "b": "1" * 32},
        {"a": "sample-tokyo", "b": "sample-tokyo"},
        {"b": "sample-tokyo"},
    ],
)
def test_an_address_of_nonsense_is_one_sentence(
    of_five: StudyResult, address: dict[str, str]
) -> None:
    made = [store().save(of_five, name) for name in ("one", "two")]
    visit = Visit("Runs", **address)
    assert len(visit.errors) == 1
    assert not visit.maps
    assert titles(visit) == ["two", "one"]
    tick(visit, *made)
    assert not visit.errors
    assert len(visit.maps) == 1


@pytest.mark.usefixtures("shared")
def test_an_address_opens_two_runs_to_those_who_were_sent_it(of_five: StudyResult) -> None:
    made = [store().save(of_five, name) for name in ("one", "two", "secret")]
    visit = Visit("Runs", a=made[0].id, b=made[1].id)
    assert titles(visit) == ["two", "one"]
    assert len(visit.maps) == 1


# ---------------------------------------------------------------- where runs lie


def asked(visit: Visit) -> str:
    """What captions say to who asks."""
    return "\n".join(caption.proto.help for caption in visit.at.caption).replace("\\", "")


def test_the_folder_is_told_only_to_who_asks(of_five: StudyResult) -> None:
    store().save(of_five, "x")
    visit = Visit("Runs")
    assert str(store().folder) not in visit.captions.replace("\\", "")
    assert str(store().folder) in asked(visit)


def test_a_folder_whose_name_is_no_text_breaks_no_page(
    tmp_path, monkeypatch: pytest.MonkeyPatch, of_five: StudyResult
) -> None:
    with monkeypatch.context() as odd:
        odd.setenv("FLOWS_HOME", f"{tmp_path}/\udcff\udc80 home")
        store.clear()
        run = store().save(of_five, "kept")
        visit = Visit("Runs")
        assert titles(visit) == ["kept"]
        assert "?? home" in asked(visit)
        visit.press(f"runs.{run.id}.open")
        assert visit.figures
    store.clear()


@pytest.mark.usefixtures("shared")
def test_the_folder_is_never_told_to_others() -> None:
    visit = Visit("Runs")
    assert "Others use this server" in visit.captions
    assert str(store().folder) not in visit.captions.replace("\\", "") + asked(visit)


# ---------------------------------------------------------------- flows from counts


def test_a_run_of_counts_is_listed_opened_renamed_and_deleted(of_five: StudyResult) -> None:
    people, run = store().save(of_five, "people"), store().save(counted.study(), "[week]")
    visit = Visit("Runs")
    assert titles(visit) == [r"\[week\]", "people"]
    told = visit.captions.replace("\\", "")
    assert "from counts alone · 9 cells · 7 days · drawing who went where" in told
    visit.press(f"runs.{run.id}.open")
    assert not visit.errors
    assert visit.title == "Flows"
    assert visit.arrows()
    assert "50 pairs of successive counts" in visit.captions
    visit.go("Runs")
    assert "open now" in next(m.value for m in visit.at.markdown if "week" in m.value)
    manage(visit, run)
    assert [code.value for code in visit.at.code] == [f"Flows?run={run.id}"]
    visit.set(f"runs.{run.id}.title", "renamed").press(f"runs.{run.id}.rename")
    assert "renamed: 50 pairs" in visit.go("Flows").captions
    visit.go("Runs").press(f"runs.{people.id}.open")
    assert len(visit.figures) == 5, "the study is shown again"
    manage(visit.go("Runs").press(f"runs.{run.id}.open").go("Runs"), run)  # closes it
    delete(visit, run)
    assert titles(visit) == ["people"]
    assert len(visit.go("Flows").figures) == 5, "what was shown before"


@pytest.mark.usefixtures("shared")
def test_a_session_may_not_change_the_counts_of_another() -> None:
    run = store().save(counted.study(), "mine")

    def act() -> None:
        assert saved.open_saved(run.id)
        for change in CHANGES:
            with refusal():
                change(run.id)

    act_in_session(act)
    assert store().list() == (run,)


# ---------------------------------------------------------------- who sees which


@pytest.mark.usefixtures("shared")
def test_others_see_nothing_but_what_they_were_sent(of_five: StudyResult) -> None:
    sent, secret = store().save(of_five, "sent"), store().save(of_five, "secret")
    visit = Visit("Runs")
    assert titles(visit) == []
    assert "No runs are saved yet" in visit.at.info[0].value
    app_state(visit).opened.append(sent.id)
    visit.go("Runs")
    assert titles(visit) == ["sent"]
    assert "Others use this server" in visit.captions
    manage(visit, sent)
    assert [code.value for code in visit.at.code] == [f"Flows?run={sent.id}"]
    assert not {f"runs.{sent.id}.{act}" for act in ("rename", "delete")} & set(visit.keys("button"))
    assert sent.id in str(visit.at)
    assert secret.id not in str(visit.at)


@pytest.mark.usefixtures("shared")
def test_who_made_a_run_may_delete_it_on_a_shared_server() -> None:
    visit = learned().go("Runs")
    (run,) = store().list()
    assert isinstance(run, SavedRun)
    delete(visit, run)
    assert store().list() == ()
    assert "are not saved" in visit.at.warning[0].value
    assert len(visit.go("Flows").figures) == 5, "the session's own flows are still there"


CHANGES: tuple[Callable[[str], object], ...] = (
    saved.delete,
    lambda run_id: saved.rename(run_id, "yours"),
    lambda run_id: saved.share(run_id, True),
)


def act_in_session(act: Callable[[], None]) -> AppTest:
    at = AppTest.from_function(lambda act: act(), args=(act,), default_timeout=60).run()
    assert not at.exception, at.exception[0].message
    return at


@pytest.mark.usefixtures("shared")
def test_a_run_opens_for_others_only_while_its_owner_lets_them(of_five: StudyResult) -> None:
    mine, name = Visit("Runs"), "secret"
    run = store().save(of_five, name, mine.at.session_state["owner"])
    assert titles(mine.go("Runs")) == [name]
    missing = Visit("Flows", run="0" * 32).errors
    assert len(missing) == 1
    refused_to = Visit("Flows", run=run.id)
    assert refused_to.errors == missing, "nobody learns whether there is such a run"
    assert Visit("Runs", a=run.id, b="sample-tokyo").errors == missing
    manage(mine, run).at.toggle(key=f"runs.{run.id}.shared").set_value(True).run()
    assert store().about(run.id).shared
    sent = Visit("Flows", run=run.id)
    assert not sent.errors
    assert sent.maps
    assert titles(sent.go("Runs")) == [name]
    manage(sent, run)
    assert not sent.at.toggle
    mine.go("Runs").at.toggle(key=f"runs.{run.id}.shared").set_value(False).run()
    assert titles(sent.go("Runs")) == []
    assert Visit("Flows", run=run.id).errors == missing


def test_on_the_own_machine_there_is_nothing_to_share(of_five: StudyResult) -> None:
    run = store().save(of_five, "x", "somebody, when the server was for others too")
    visit = manage(Visit("Runs"), run)
    assert not visit.at.toggle
    visit.press(f"runs.{run.id}.open")
    assert not visit.errors
    assert visit.figures


def test_a_run_of_a_later_version_is_listed_and_offers_nothing(of_five: StudyResult) -> None:
    run, whole = store().save(of_five, "later"), store().save(of_five, "now")
    path = store().folder / run.id / "about.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 2'))
    (store().folder / "catalogue.sqlite").unlink()
    visit = Visit("Runs")
    assert ["format 2" in w.value for w in visit.at.warning] == [True]
    assert titles(visit) == ["now"]
    keys = visit.keys("button")
    assert f"runs.{whole.id}.manage" in keys
    assert not [key for key in keys if run.id in key]


@pytest.mark.parametrize("server", ["own", "shared"])
def test_without_room_flows_stay_and_the_oldest_of_ones_own_may_go(
    of_five: StudyResult, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, server
) -> None:
    if server == "shared":
        request.getfixturevalue("shared")
    monkeypatch.setenv("FLOWS_RUNS_EACH", "2")
    anybodys = store().save(of_five, "another's", "another")
    with cleared_session():
        visit = learned().go("Runs")
        (first,) = (run for run in store().list() if run.id != anybodys.id)
        second = store().save(of_five, "second", first.owner)
        visit.go("Learn").set("learn.seed", 5).learn()
        assert not visit.errors
        assert len(visit.go("Flows").figures) == 5, "they are shown"
        assert {run.id for run in store().list()} == {first.id, second.id, anybodys.id}
        visit.go("Runs").press("runs.save")
        assert len(visit.errors) == 1
        assert visit.at.button(key="runs.room").disabled
        visit.at.checkbox(key="runs.room.sure").check()
        visit.go("Runs").press("runs.room")
        assert not visit.errors
        assert not visit.at.warning
    kept = {run.id for run in store().list()}
    assert kept > {second.id, anybodys.id}
    assert len(kept) == 3
    assert first.id not in kept


@pytest.mark.usefixtures("shared")
def test_another_session_is_refused_not_only_spared_the_button(of_five: StudyResult) -> None:
    run = store().save(of_five, "mine")

    def act() -> None:
        assert saved.open_saved(run.id)
        assert not saved.open_saved(run.id), "it is shown already"
        for change in CHANGES:
            with refusal():
                change(run.id)

    act_in_session(act)
    assert store().list() == (run,)


def refusal() -> AbstractContextManager[object]:
    return refused("not-the-owner")


@pytest.mark.parametrize(
    ("address", "hosts", "headers", "own"),
    [
        ("127.0.0.1", ["127.0.0.1", "localhost"], {}, True),
        ("localhost", [], {}, True),
        ("::1", [], {}, True),
        (None, [], {}, False),
        ("0.0.0.0", ["localhost"], {}, False),
        ("192.168.0.7", [], {}, False),
        ("127.0.0.1", ["flows.example.org"], {}, False),
        ("127.0.0.1", [], {"X-Forwarded-For": "192.0.2.1"}, False),
    ],
)
def test_only_a_server_for_this_machine_shows_all(
    monkeypatch: pytest.MonkeyPatch, address, hosts, headers, own
) -> None:
    class Asked:
        class context:  # noqa: N801  # streamlit's name
            pass

        @staticmethod
        def get_option(name: str) -> object:
            return {"server.address": address, "server.allowedHosts": hosts}[name]

    Asked.context.headers = headers
    monkeypatch.setattr(owner, "asks_who", lambda: False)
    monkeypatch.setattr(owner, "st", Asked)
    assert owner.own_machine() is own
