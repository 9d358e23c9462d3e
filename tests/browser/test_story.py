"""The Lab's story in a page that was taken away: scenes, keys, and leaving it to play."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from agg_core.lab.story import morning
from agg_core.plotting.flow_map import map_view, pack, page
from agg_core.plotting.story import flows_of_story
from agg_core.store.shipped_lab import load_shipped_teaching
from tests.browser.drive import Alone, Instrument, opened_alone

N_SCENES = 6


@pytest.fixture(scope="module")
def opened(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    """The story of the Lab, opened from a file."""
    result = load_shipped_teaching()
    packed = pack(flows_of_story(result, morning(result)))
    view = map_view("M = 20", truth="truth", threshold=1.5, scene=0, show="estimate")
    file = tmp_path_factory.mktemp("page") / "story.html"
    file.write_text(page(packed.showing(view), "A story"), encoding="utf-8")
    with opened_alone(browser, file) as alone:
        yield alone


@pytest.fixture
def told(opened: Alone) -> Iterator[Instrument]:
    """The map at the first scene."""
    opened.map.key("PageDown")
    opened.map.root.get_by_role("button", name="1.", exact=False).first.click()
    opened.map.expect_view(scene=0)
    yield opened.map
    opened.expect_quiet()


def title(told: Instrument) -> str:
    return told.root.locator(".story h2").inner_text()


def test_keys_and_buttons_go_through_all_scenes(told: Instrument) -> None:
    back, further = (told.root.get_by_role("button", name=name) for name in ("Back", "Next"))
    expect(back).to_be_disabled()
    titles = [title(told)]
    for scene in range(1, N_SCENES):
        if scene % 2:
            told.key("ArrowRight")
        else:
            further.click()
        told.expect_view(scene=scene)
        titles.append(title(told))
    assert len(set(titles)) == N_SCENES
    expect(further).to_be_disabled()
    told.key("PageDown")
    told.expect_view(scene=N_SCENES - 1)
    told.key("ArrowLeft", "PageUp")
    told.expect_view(scene=N_SCENES - 3)
    expect(told.root.locator("[aria-current=step]")).to_have_text(str(N_SCENES - 2))


def test_people_go_through_the_morning_one_frame_at_a_time(told: Instrument) -> None:
    heading = told.root.locator(".caption h2")
    told.key(" ")  # the frames no longer change by themselves
    told.key("PageDown", "PageUp", " ")
    shown = [heading.inner_text()]
    for _ in range(2):
        told.key(".")
        shown.append(heading.inner_text())
    assert shown == ["08:00", "08:30", "09:00"]
    told.key(",")
    expect(heading).to_have_text("08:30")
    expect(told.root.locator(".timebar")).to_be_hidden()


def test_a_group_is_two_maps_of_numbers(told: Instrument) -> None:
    told.key("ArrowRight", "ArrowRight", "ArrowRight")
    told.expect_view(scene=3)
    assert told.arrows == (0, 0)
    expect(told.root.locator(".caption h2")).to_have_count(2)


def test_the_group_size_slides_within_a_scene(told: Instrument) -> None:
    told.key(*["ArrowRight"] * 5)
    told.expect_view(scene=5, time="M = 20", show="all")
    assert len(told.arrows) == 3
    words = told.root.locator(".story p")
    at_twenty, arrows = words.inner_text(), told.arrows
    told.key(".")
    told.expect_view(time="M = 50", scene=5)
    assert words.inner_text() != at_twenty
    assert told.arrows != arrows


def test_one_leaves_at_any_scene_to_play_and_comes_back(told: Instrument) -> None:
    told.key(*["ArrowRight"] * 4)
    told.expect_view(scene=4, show="both")
    expect(told.root.locator(".panel")).to_be_hidden()
    told.key("Escape")
    told.expect_view(scene=None, show="both")
    expect(told.root.locator(".panel")).to_be_visible()
    camera = told.camera
    told.key("ArrowRight")
    assert told.camera["longitude"] > camera["longitude"], "the arrows pan again"
    told.root.get_by_role("radio", name="Difference").click()
    told.expect_view(show="difference")
    told.root.get_by_role("button", name="Back to the story").click()
    told.expect_view(scene=4, show="both")
    expect(told.root.locator(".panel")).to_be_hidden()
