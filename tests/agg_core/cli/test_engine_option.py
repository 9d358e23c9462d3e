"""`--engine` of learning: who does the work is told, and what is learned stays the same."""

import json

import pytest

from agg_core.base import dask_engine
from agg_core.cli.main import main
from tests.agg_core import tiny

LEARN = [
    "--bbox", "139.0,35.0,139.3,35.3", "--grid", "3x3", "--step", "1h", "--group-size", "5",
    "--iterations", "2", "--noise", "given", "--replicates", "3", "--strength", "given",
    "--times", "08:00", "--json",
]  # fmt: skip
OF_THE_CLOCK = ("wall_s", "told_s", "peak_mb", "engine", "n_workers")


@pytest.fixture
def people(tmp_path):
    tiny.frame(tiny.day_states()).to_csv(tmp_path / "people.csv", index=False)
    return str(tmp_path / "people.csv")


def test_what_is_learned_is_the_same_with_any_engine(people, capsys, monkeypatch):
    monkeypatch.setattr(dask_engine, "CPU_COUNT", 2)
    told = []
    for words in ([], ["--engine", "local"], ["--engine", "dask"]):
        assert main(["learn", people, *LEARN, *words]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert "engine" not in told[0]
    assert [(each["engine"], each["n_workers"]) for each in told[1:]] == [("local", 1), ("dask", 2)]
    plain = [{k: v for k, v in each.items() if k not in OF_THE_CLOCK} for each in told]
    assert plain[0] == plain[1] == plain[2]
    assert plain[0]["movers_low"] is not None


@pytest.mark.parametrize("engine", ["nowhere", "dask://", "dask://host"])
def test_an_engine_that_there_is_not_is_refused(people, capsys, engine):
    with pytest.raises(SystemExit) as ended:
        main(["learn", people, *LEARN, "--engine", engine])
    assert ended.value.code == 2
    assert engine in capsys.readouterr().err
