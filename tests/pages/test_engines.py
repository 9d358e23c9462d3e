"""The page Learn lets people choose who does the work only where the server's owner allows it."""

import pytest

from agg_core.base.engine import ENGINES_ALLOWED
from agg_core.store.job_store import JobStore
from tests.agg_core import tiny
from tests.pages.visit import Visit


@pytest.fixture(scope="module")
def csv():
    return tiny.frame(tiny.day_states()).to_csv(index=False).encode()


@pytest.fixture
def engines(monkeypatch):
    """Engines that jobs were started with."""
    taken, add = [], JobStore.add

    def watched(self, kind, settings, *, engine="local", **how):
        taken.append(engine)
        return add(self, kind, settings, **how)

    monkeypatch.setattr(JobStore, "add", watched)
    return taken


COUNTS = "time,cell,count\n" + "".join(
    f"2024-02-0{day} {hour:02d}:00,{cell},{20 + hour * j}\n"
    for day in (1, 2) for hour in range(6) for j, cell in enumerate("abc")
)  # fmt: skip


@pytest.mark.parametrize("allowed", [None, "", " ,", "local"])
def test_without_leave_there_is_no_choice(csv, engines, monkeypatch, allowed):
    monkeypatch.delenv(ENGINES_ALLOWED, raising=False)
    if allowed is not None:
        monkeypatch.setenv(ENGINES_ALLOWED, allowed)
    visit = Visit("Data").upload("sixty.csv", csv).go("Learn")
    assert "engine" not in visit.keys("selectbox")
    visit.press("start").press("learner.cancel")
    assert engines == ["local"]


@pytest.mark.parametrize("data", ["people", "counts"])
def test_what_is_allowed_can_be_chosen_and_is_taken(csv, engines, monkeypatch, data):
    monkeypatch.setenv(ENGINES_ALLOWED, "dask, dask://cluster:8786,dask")
    visit = Visit("Data").upload("some.csv", csv if data == "people" else COUNTS).go("Learn")
    choice = visit._widget("engine")
    assert len(choice.options) == 3
    assert choice.value == "local"
    assert "cluster:8786" in choice.options[2].replace("\\", "")
    visit.set("engine", "dask://cluster:8786").go("Data").go("Learn")
    assert visit.value("engine") == "dask://cluster:8786"
    visit.press("start")
    # An owner who takes the leave back has it at once.
    monkeypatch.setenv(ENGINES_ALLOWED, "dask")
    assert visit.go("Learn").value("engine") == "local"
    visit.press("start")
    assert engines[0] == "dask://cluster:8786"
    assert set(engines[1:]) <= {"local"}


def test_a_name_that_the_owner_got_wrong_is_told_and_the_server_works(csv, engines, monkeypatch):
    monkeypatch.setenv(ENGINES_ALLOWED, "spark://there")
    visit = Visit("Data").upload("sixty.csv", csv).go("Learn")
    assert len(visit.errors) == 1
    assert "spark://there" in visit.errors[0].replace("\\", "")
    assert ENGINES_ALLOWED in visit.errors[0].replace("\\", "")
    visit.press("start").press("learner.cancel")
    assert engines == ["local"]
