"""Two maps that move together, whatever moves one of them."""

from collections.abc import Callable

import numpy as np
from playwright.sync_api import Locator, Page

from tests.browser import drive
from tests.browser.test_flows import KEY, alike, open_run, place_on

Maps = tuple[Locator, Locator]


Shots = tuple[np.ndarray, np.ndarray]


def shots(maps: Maps) -> Shots:
    return drive.pixels(maps[0]), drive.pixels(maps[1])


def shots_at_rest(page: Page, maps: Maps, moved_from: Shots | None = None) -> Shots:
    """Both maps once they stand still, and, where asked for, once the first has moved at all."""
    page.mouse.move(2, 2)
    last = shots(maps)
    for _ in range(20):
        page.wait_for_timeout(1000)
        now = shots(maps)
        still = all(alike(one, two) == 1 for one, two in zip(last, now, strict=True))
        if still and (moved_from is None or alike(moved_from[0], now[0]) < 0.95):
            break
        last = now
    return now


def wheel(page: Page, canvas: Locator) -> None:
    page.mouse.move(*place_on(canvas, (0.3, 0.7)))
    page.mouse.wheel(0, -300)


def drag(page: Page, canvas: Locator) -> None:
    x, y = place_on(canvas, (0.6, 0.4))
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 6):  # drawing a step takes most of the time
        page.mouse.move(x - 24 * step, y + 18 * step)
        page.wait_for_timeout(30)
    page.wait_for_timeout(400)  # a hand that stops before it lets go
    page.mouse.up()


def drag_slowly(page: Page, canvas: Locator) -> None:
    """A hand that begins with single pixels."""
    x, y = place_on(canvas, (0.4, 0.6))
    page.mouse.move(x, y)
    page.mouse.down()
    for step in (*range(1, 9), 24, 40):
        page.mouse.move(x + step, y)
    page.wait_for_timeout(400)
    page.mouse.up()


def focus(canvas: Locator) -> None:
    canvas.locator("xpath=ancestor::*[contains(@class, 'deck-events-root')]").first.focus()


# One direction each: on a busy machine a map skips a step that comes before the last is drawn,
# so that there and back again may end where it began.
def zoom_out_by_keys(page: Page, canvas: Locator) -> None:
    focus(canvas)
    for key in ("-", "ArrowLeft", "-"):
        page.keyboard.press(key)


def zoom_in_by_key(page: Page, canvas: Locator) -> None:
    focus(canvas)
    page.keyboard.press("+")


def test_what_moves_one_map_moves_both_and_stays(page: Page, city_run: str) -> None:
    # Without shades and arrows only the ground is drawn, which is the same on both.
    maps = open_run(page, city_run, at="08:00", shade="none", above="100000")
    before = shots_at_rest(page, maps)
    assert alike(*before) > 0.99
    deeds: list[tuple[Callable[[Page, Locator], None], int]] = [
        (wheel, 0), (drag, 0), (zoom_out_by_keys, 0),
        (drag_slowly, 1), (zoom_in_by_key, 1), (wheel, 1),
    ]  # fmt: skip
    for deed, which in deeds:
        deed(page, maps[which])
        after = shots_at_rest(page, maps, moved_from=before)
        assert alike(before[0], after[0]) < 0.95, f"{deed.__name__} moves the map"
        assert alike(*after) > 0.98, f"{deed.__name__} moves the other with it"
        before = after
    drive.pick(page, f"{KEY}time", "14:00")
    after = shots_at_rest(page, maps)
    assert alike(before[0], after[0]) > 0.98, "another time of day is seen from the same place"
    assert alike(*after) > 0.98
