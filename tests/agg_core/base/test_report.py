"""Text from a file as it is shown, and as a name."""

from agg_core.base.report import printable, printable_apart

LONG = "Prefecture of the Long Valley, District of the Far Meadows beyond the River, "


def test_names_that_would_be_shown_alike_are_names_of_their_own():
    texts = [LONG + "north", LONG + "south", "a\x01", "a\x02", "a?", "short"]
    for limit in (60, 20):
        found = printable_apart(texts, limit)
        assert list(found) == texts
        assert len(set(found.values())) == len(texts)
        assert all(len(name) <= limit and name.isprintable() for name in found.values())
        assert (found["a?"], found["short"]) == ("a?", "short")
        assert found == printable_apart(reversed(texts), limit)


def test_a_long_name_that_no_other_is_like_is_what_it_always_was():
    assert printable_apart([LONG, "b"], 60) == {LONG: printable(LONG, 60), "b": "b"}
