import gc
import weakref
from contextlib import suppress

from agg_core.base import kept
from agg_core.base.kept import kept_with


class Thing:
    """Equal to all of its kind, and without a hash."""

    __hash__ = None

    def __eq__(self, other):
        return True


def test_a_value_is_found_once_for_what_is_given_and_each_object():
    asked = []

    @kept_with
    def tell(of, word="none", *, loud=False):
        """What it says."""
        asked.append((id(of), word, loud))
        return len(asked)

    one, other = Thing(), Thing()
    assert [tell(one), tell(one), tell(other)] == [1, 1, 2]
    assert [tell(one, "b"), tell(one, loud=True)] == [3, 4]
    assert [tell(one, "b"), tell(other), tell(one, loud=True)] == [3, 2, 4]
    assert len(asked) == 4
    assert tell.__doc__ == "What it says."


def test_nothing_is_left_of_an_object_that_is_gone():
    class Value:
        pass

    @kept_with
    def tell(of):
        return Value()

    thing = Thing()
    gone, value = weakref.ref(thing), weakref.ref(tell(thing))
    assert value() is tell(thing)
    del thing
    gc.collect()
    assert gone() is None
    assert value() is None


def test_an_object_in_the_place_of_another_has_its_own(monkeypatch):
    @kept_with
    def tell(of):
        return of.name

    one, other = Thing(), Thing()
    one.name, other.name = "one", "other"
    monkeypatch.setattr(kept, "id", lambda _: 7, raising=False)
    assert [tell(one), tell(other), tell(one)] == ["one", "other", "one"]


def test_a_fault_is_not_kept():
    asked = []

    @kept_with
    def tell(of):
        asked.append(of)
        if len(asked) < 2:
            raise KeyError
        return "said"

    thing = Thing()
    with suppress(KeyError):
        tell(thing)
    assert tell(thing) == tell(thing) == "said"
    assert len(asked) == 2
