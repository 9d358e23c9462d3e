"""Results of the Lab that are kept: by their settings, whole, not too many, nothing else."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from agg_core.lab.experiments import LabResult, LabSettings
from agg_core.lab.teaching import TeachingResult, TeachingSettings
from agg_core.store.codec import save_lab, save_teaching
from agg_core.store.jobs import EXPERIMENT, TEACHING
from agg_core.store.lab_results import LabStore
from tests.faults import refused

LAB = LabSettings(group_sizes=(1, 5), n_individuals=(50,))
CITY = TeachingSettings(n_people=300)


@pytest.fixture
def store(tmp_path):
    return LabStore(tmp_path / "lab", most=3)


def experiment(tmp_path, settings=LAB):
    folder = tmp_path / "experiment"
    shutil.rmtree(folder, ignore_errors=True)
    table = pd.DataFrame({"seed": [0, 1], "delta_nll": [0.25, 0.5]})
    save_lab(LabResult(settings, table, (), 1.5, ("a note",)), folder)
    return folder


def view(tmp_path):
    folder = tmp_path / "view"
    flows = pd.DataFrame({"origin": [0], "dest": [1], "count": [2.5]})
    save_teaching(
        TeachingResult(CITY, 7.0, (), flows.assign(learner="cfb", group_size=5), 2.0), folder
    )
    return folder


def test_both_kinds_come_back(store, tmp_path):
    key = store.keep(EXPERIMENT, LAB, "Fig. 3", experiment(tmp_path))
    other = store.keep(TEACHING, CITY, "300 people", view(tmp_path))
    assert key != other
    about = store.about(key)
    assert (about.kind, about.title, about.settings) == ("experiment", "Fig. 3", LAB)
    assert store.about(other).settings == CITY
    found = store.load(key)
    assert isinstance(found, LabResult)
    assert found.table["delta_nll"].tolist() == [0.25, 0.5]
    city = store.load(other)
    assert isinstance(city, TeachingResult)
    np.testing.assert_array_equal(city.table("cfb", 5)["count"], [2.5])


def test_a_key_stands_for_settings_kind_and_version(store, monkeypatch):
    key = store.key_of(EXPERIMENT, LAB)
    assert key == store.key_of(EXPERIMENT, LabSettings.from_dict(LAB.to_dict()))
    assert key != store.key_of(EXPERIMENT, replace(LAB, seed=9))
    assert key != store.key_of(TEACHING, CITY)
    monkeypatch.setattr("agg_core.base.version.__version__", "another")
    assert key != store.key_of(EXPERIMENT, LAB)


def test_the_one_not_looked_at_for_longest_goes(store, tmp_path):
    keys = []
    for seed in range(3):
        settings = replace(LAB, seed=seed)
        keys.append(store.keep(EXPERIMENT, settings, "", experiment(tmp_path, settings)))
    for age, key in zip((300, 200, 100), keys, strict=True):
        os.utime(store.folder / key, (1e9 - age, 1e9 - age))
    store.load(keys[0])
    last = replace(LAB, seed=3)
    keys.append(store.keep(EXPERIMENT, last, "", experiment(tmp_path, last)))
    assert {path.name for path in store.folder.iterdir()} == {keys[0], keys[2], keys[3]}
    with refused("no-lab-result"):
        store.load(keys[1])


def test_two_may_keep_the_same_at_once(store, tmp_path):
    folder = experiment(tmp_path)

    def keep(_):
        return store.keep(EXPERIMENT, LAB, "", folder)

    with ThreadPoolExecutor(4) as pool:
        keys = set(pool.map(keep, range(80)))
    assert keys == {store.key_of(EXPERIMENT, LAB)}
    assert store.load(keys.pop()).wall_s == 1.5
    assert len(list(store.folder.iterdir())) == 1, "nothing is left over"


def test_copies_that_were_never_finished_go(store, tmp_path):
    store.folder.mkdir()
    old, new = store.folder / ".old", store.folder / ".new"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (1e9, 1e9))
    store.keep(EXPERIMENT, LAB, "", experiment(tmp_path))
    assert not old.exists()
    assert new.exists()


@pytest.mark.parametrize(
    "key", ["", "../lab", "/etc", "0" * 31, "0" * 32, "A" * 32, "0" * 32 + "\n"]
)
def test_what_is_no_key_is_refused(store, tmp_path, key):
    store.keep(EXPERIMENT, LAB, "", experiment(tmp_path))
    for ask in (store.about, store.load):
        with refused("no-lab-result"):
            ask(key)


def test_damage_is_refused(store, tmp_path):
    key = store.keep(EXPERIMENT, LAB, "", experiment(tmp_path))
    about = store.folder / key / "about.json"
    whole = json.loads(about.read_text())
    spoilt_ones = [
        "{", "[]", "[" * 100_000, json.dumps(whole | {"kind": "study"}), json.dumps({"kind": 7}),
        *(json.dumps(whole | {"made": made}) for made in (1e300, float("nan"), "now", None)),
    ]  # fmt: skip
    for spoilt in spoilt_ones:
        about.write_text(spoilt)
        with refused("no-lab-result"):
            store.load(key)
    about.write_text(json.dumps(whole))
    (store.folder / key / "result" / "table.parquet").write_bytes(b"nothing")
    with refused("result-damaged"):
        store.load(key)


def test_a_disk_that_refuses_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with refused("result-not-kept"):
        LabStore(tmp_path / "file").keep(EXPERIMENT, LAB, "", experiment(tmp_path))
