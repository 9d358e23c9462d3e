"""Saved runs: there and back, damage told apart, nothing half-written, nobody else's files."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest

from agg_core.store import runs as store_module
from agg_core.store.codec import CODECS, save_result
from agg_core.store.runs import Quota, RunStore, default_folder
from agg_core.store.saved_runs import DamagedRun, NewerRun, SavedCounts, SavedRun, SavedStudy
from agg_core.study.counts import CountStudy
from agg_core.study.people import SOURCES
from tests.agg_core import counted, tiny
from tests.agg_core.store.no_files import put_in_place_of
from tests.faults import refused

CATALOGUE = "catalogue.sqlite"
ROOT = Path(__file__).resolve().parents[3]


@cache
def result():
    return tiny.run(tiny.people_of_two_days(), tiny.settings(iterations=1, replicates=2))[1]


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "deep" / "store")


def file_of(store, run, name):
    """A file of a run, found by hand."""
    (path,) = (store.folder / run.id).rglob(name)
    return path


def names(store):
    """What lies in the folder beside the catalogue."""
    return sorted(name for name in os.listdir(store.folder) if not name.startswith(CATALOGUE))


def told_anew(store, run, content=None, /, **values):
    """Let what is told of a run be other values, or other bytes, as if no catalogue knew better."""
    (store.folder / CATALOGUE).unlink(missing_ok=True)
    path = file_of(store, run, "about.json")
    if content is None:
        content = json.dumps(json.loads(path.read_text()) | values).encode()
    path.write_bytes(content)


def dated(store, run, created):
    """Move a saved run in time."""
    told_anew(store, run, created=created.isoformat())


# ---------------------------------------------------------------- there and back


def test_a_result_comes_back_to_the_bit_in_another_store_of_that_folder(store):
    saved = store.save(result(), "Sixty people")
    back = RunStore(store.folder).load(saved.id)
    assert back.summary() == result().summary()
    assert back.settings == result().settings
    for at in back.times:
        for source in SOURCES:
            one, other = (found.table(at, source) for found in (back, result()))
            pd.testing.assert_frame_equal(one, other, check_exact=True)
    for one, other in zip(back.by_time, result().by_time, strict=True):
        assert one.estimate.transmat.tobytes() == other.estimate.transmat.tobytes()


def test_a_folder_of_a_job_is_copied_and_left(store, tmp_path):
    save_result(result(), tmp_path / "job")
    saved = store.save(tmp_path / "job", "From a job")
    for file in (tmp_path / "job").iterdir():
        file.unlink()
    assert store.load(saved.id).summary() == result().summary()


def test_what_is_told_of_a_run(store):
    before = datetime.now(UTC)
    saved = store.save(result(), "  Sixty\n people ")
    assert store.about(saved.id) == saved
    assert saved.title == "Sixty people"
    assert before <= saved.created_utc <= datetime.now(UTC)
    assert (saved.n_individuals, saved.group_size) == (tiny.N_PEOPLE, tiny.LEARN.group_size)
    assert saved.times == ("all day",)
    assert saved.learner == result().by_time[0].estimate.learner
    for name in CODECS["study"].files:
        content = file_of(store, saved, name).read_bytes()
        assert saved.files[name].sha256 == sha256(content).hexdigest()
        assert saved.files[name].bytes == len(content)


def test_what_was_told_of_a_run_under_names_of_before_is_read(store):
    saved = store.save(result(), "Old")
    about = json.loads(file_of(store, saved, "about.json").read_text())
    about["anchors"] = about.pop("times")
    told_anew(store, saved, json.dumps(about).encode())
    assert store.about(saved.id) == saved


def test_nobody_else_on_the_machine_may_look(store):
    saved = store.save(result(), "Mine")
    assert (store.folder / saved.id).stat().st_mode & 0o077 == 0
    assert store.folder.stat().st_mode & 0o077 == 0


def test_the_list_is_newest_first_and_empty_without_a_folder(store):
    assert store.list() == ()
    assert not store.folder.exists()
    runs = [store.save(result(), title) for title in "abc"]
    dated(store, runs[1], runs[2].created_utc + timedelta(hours=1))
    assert [run.title for run in store.list()] == ["b", "c", "a"]


def test_ids_cannot_be_guessed_and_titles_may_repeat(store):
    ids = {store.save(result(), "Same").id for _ in range(5)}
    assert len(ids) == 5
    assert all(len(bytes.fromhex(run_id)) == 16 for run_id in ids)


# ---------------------------------------------------------------- the catalogue and its copies


def test_the_catalogue_is_believed_and_the_copy_mended(store):
    saved = store.save(result(), "told by both", "ada")
    path = file_of(store, saved, "about.json")
    text = path.read_text()
    for other in (text.replace("told by both", "a lie").replace("ada", "eve"), "", "[]"):
        path.write_text(other)
        assert store.about(saved.id) == saved
        assert store.list() == (saved,)
        assert store.load(saved.id).summary() == result().summary()
        RunStore(store.folder)
        assert path.read_text() == text


@pytest.mark.parametrize("end", ["lost", "emptied", "no database", "cut"])
def test_a_lost_catalogue_is_made_anew_of_the_copies(store, end):
    made = [store.save(result(), title, owner) for title, owner in (("a", None), ("b", "ada"))]
    made[1] = store.share(store.rename(made[1].id, "c").id, True)
    path = store.folder / CATALOGUE
    content = path.read_bytes()
    if end == "lost":
        path.unlink()
    else:
        path.write_bytes({"emptied": b"", "no database": b"x" * 5_000}.get(end, content[:5_000]))
    assert store.list() == tuple(reversed(made)), "without opening it again"
    again = RunStore(store.folder)
    assert again.list() == tuple(reversed(made))
    for run in made:
        file_of(again, run, "about.json").unlink()
    assert again.list() == tuple(reversed(made)), "which the new one knows"
    assert again.save(result(), "d") in RunStore(store.folder).list()


def test_an_entry_that_was_altered_is_no_entry(store):
    saved = store.save(result(), "mine", "ada")
    with sqlite3.connect(store.folder / CATALOGUE) as catalogue:
        catalogue.execute("UPDATE runs SET about = replace(about, 'ada', 'eve')")
    catalogue.close()
    assert store.about(saved.id) == saved
    assert RunStore(store.folder).list() == (saved,)
    with sqlite3.connect(store.folder / CATALOGUE) as catalogue:
        assert "eve" not in catalogue.execute("SELECT about FROM runs").fetchone()[0]
    catalogue.close()


def test_a_catalogue_of_a_later_version_is_left_as_it_is(store):
    store.save(result(), "x")
    with sqlite3.connect(store.folder / CATALOGUE) as catalogue:
        catalogue.execute("PRAGMA user_version = 2")
    catalogue.close()
    before = (store.folder / CATALOGUE).read_bytes()
    again = RunStore(store.folder)
    for act in (again.list, lambda: again.save(result(), "y")):
        with refused("other-format-version"):
            act()
    assert (store.folder / CATALOGUE).read_bytes() == before


def test_runs_of_before_are_taken_over_unless_they_are_damaged(store):
    """As earlier versions left them: a folder with about.json, which tells no owner."""
    old, hurt = store.save(result(), "old", "ada"), store.save(result(), "hurt", "ada")
    for run in (old, hurt):
        about = json.loads(file_of(store, run, "about.json").read_text())
        told_anew(store, run, json.dumps({k: about[k] for k in about if k not in ADDED}).encode())
    altered(file_of(store, hurt, "parameters.npz"))
    again = RunStore(store.folder)
    assert again.about(old.id) == replace(old, owner=None)
    with sqlite3.connect(store.folder / CATALOGUE) as catalogue:
        assert [row[0] for row in catalogue.execute("SELECT id FROM runs")] == [old.id]
    catalogue.close()
    with refused("run-damaged", "parameters.npz"):
        again.load(hurt.id)
    again.delete(hurt.id)
    assert again.list() == (again.about(old.id),)


ADDED = ("owner", "shared")


def test_a_run_without_its_folder_is_damaged_and_can_be_deleted(store):
    saved = store.save(result(), "x", "ada")
    shutil.rmtree(store.folder / saved.id)
    (listed,) = store.list()
    assert isinstance(listed, DamagedRun)
    assert (listed.id, listed.owner, listed.created_utc) == (saved.id, "ada", saved.created_utc)
    with refused("run-damaged"):
        store.load(saved.id)
    store.delete(saved.id)
    assert store.list() == ()


# ---------------------------------------------------------------- owners


def test_a_run_opens_for_its_owner_and_for_others_once_it_is_shared(store):
    saved, nobodys = store.save(result(), "x", "ada"), store.save(result(), "y")
    assert (saved.owner, saved.shared) == ("ada", False)
    assert (store.owner_of(saved.id), store.owner_of(nobodys.id)) == ("ada", None)
    for run, owner in ((saved, "ada"), (nobodys, "ada"), (nobodys, "eve")):
        store.check_open(run.id, owner)
    with refused("unknown-run") as another:
        store.check_open(saved.id, "eve")
    with refused("unknown-run") as none:
        store.check_open("0" * 32, "eve")
    assert str(another.value) == str(none.value)
    assert store.share(saved.id, True) == replace(saved, shared=True) == store.about(saved.id)
    store.check_open(saved.id, "eve")
    store.share(saved.id, False)
    with refused("unknown-run"):
        RunStore(store.folder).check_open(saved.id, "eve")
    assert store.list_of("ada") == (saved,)
    assert store.list_of(None) == (nobodys,)
    assert store.list_of("eve") == ()


def test_others_open_a_run_within_its_limit_and_its_owner_whole(store):
    saved = store.save(result(), "mine", "adam")
    with refused("unknown-run"):
        store.load_for(saved.id, "eve")
    assert store.share(saved.id, True).least_people == 10
    assert store.share(saved.id, True, 4).least_people == 4
    assert RunStore(store.folder).about(saved.id).least_people == 4
    assert store.load_for(saved.id, "adam").limit_words == ""
    assert store.load_for(saved.id, "eve").least_people == 4
    assert store.share(saved.id, False).least_people == 4
    with refused("least-people-out-of-range"):
        store.share(saved.id, True, -1)
    assert store.about(saved.id).shared is False
    store.share(saved.id, True, 0)
    assert store.load_for(saved.id, "eve").limit_words == ""


def test_damage_does_not_tell_others_that_there_is_a_run(store):
    saved = store.save(result(), "x", "ada")
    file_of(store, saved, "result.json").unlink()
    with refused("unknown-run"):
        store.check_open(saved.id, "eve")
    assert store.list_of("ada")[0].id == saved.id


# ---------------------------------------------------------------- flows from counts


def test_flows_from_counts_are_saved_and_opened_beside_studies(store):
    study, counts = store.save(result(), "People"), store.save(counted.study(), " Counts ")
    back = RunStore(store.folder).load(counts.id)
    assert isinstance(back, CountStudy)
    pd.testing.assert_frame_equal(back.flows, counted.study().flows, check_exact=True)
    assert store.load(study.id).summary() == result().summary()
    assert store.list() == (counts, study)
    assert isinstance(study, SavedStudy)
    assert isinstance(counts, SavedCounts)
    assert store.about(counts.id) == counts
    told = (counts.title, counts.n_days, counts.n_cells, counts.learner)
    assert told == ("Counts", 7, 9, "drawn")
    assert store.rename(counts.id, "New") == replace(counts, title="New")
    store.delete(counts.id)
    assert store.list() == (study,)


def test_a_run_without_a_kind_is_a_study(store):
    """So it was saved before there were runs of counts, with a digest of three of its files."""
    saved = store.save(result(), "Old")
    about = json.loads(file_of(store, saved, "about.json").read_text())
    assert about.pop("kind") == "study"
    del about["files"]["counted_steps.parquet"]
    told_anew(store, saved, json.dumps(about).encode())
    (old,) = store.list()
    assert old == replace(
        saved, files={name: saved.files[name] for name in CODECS["study"].files[1:]}
    )
    assert store.load(saved.id).summary() == result().summary()


@pytest.mark.parametrize("kind", ["study", "other", None, ["counts"], {}], ids=str)
def test_another_kind_than_it_is_of_is_damage(store, kind):
    saved = store.save(counted.study(), "hurt")
    told_anew(store, saved, kind=kind)
    with refused("run-damaged"):
        store.load(saved.id)
    assert isinstance(store.list()[0], DamagedRun)


@pytest.mark.parametrize("name", CODECS["counts"].files)
@pytest.mark.parametrize("damage", ["altered", "cut", "missing"])
def test_a_damaged_file_of_counts_is_named(store, name, damage):
    saved = store.save(counted.by_day(), "hurt")
    harm, how = DAMAGES[damage]
    harm(file_of(store, saved, name))
    with refused("run-damaged", f"hurt is damaged: {name} ", how):
        store.load(saved.id)


# ---------------------------------------------------------------- renamed, deleted, too many


def test_a_run_is_renamed_and_nothing_else_changes(store):
    saved = store.save(result(), "Old")
    renamed = store.rename(saved.id, "<b>New</b> *x* ../y")
    assert renamed == replace(saved, title="<b>New</b> *x* ../y")
    assert RunStore(store.folder).about(saved.id) == renamed
    assert store.load(saved.id).summary() == result().summary()
    assert names(store) == [saved.id]


@pytest.mark.parametrize("title", ["", " \n\t"])
def test_a_title_needs_a_letter(store, title):
    saved = store.save(result(), "Old")
    with refused("title-empty"):
        store.rename(saved.id, title)
    with refused("title-empty"):
        store.save(result(), title)
    assert store.about(saved.id).title == "Old"
    assert names(store) == [saved.id]


def test_a_title_has_an_end(store):
    assert store.save(result(), "x" * 10_000).title == "x" * 200


def test_a_deleted_run_is_gone_and_the_other_stays(store):
    gone, stays = store.save(result(), "gone"), store.save(result(), "stays")
    store.delete(gone.id)
    assert store.list() == (stays,)
    assert names(store) == [stays.id]
    for act in (store.about, store.load, store.delete, lambda i: store.rename(i, "x")):
        with refused("unknown-run"):
            act(gone.id)


def test_beyond_the_quota_of_an_owner_a_save_is_refused_and_nothing_goes(tmp_path):
    store = RunStore(tmp_path, Quota(each=2))
    kept = [store.save(result(), title, "ada") for title in "ab"]
    with refused("too-many-runs", "2"):
        store.save(result(), "c", "ada")
    kept += [store.save(result(), title, owner) for title, owner in (("d", "bob"), ("e", None))]
    assert {run.id for run in store.list()} == {run.id for run in kept}
    assert names(store) == sorted(run.id for run in kept)
    store.delete(kept[0].id)
    assert store.save(result(), "c", "ada") in store.list_of("ada")
    assert len(store.list_of("ada")) == 2


def test_beyond_the_quota_in_all_a_save_is_refused(tmp_path):
    store = RunStore(tmp_path, Quota(each=2, in_all=3))
    for title, owner in (("a", "ada"), ("b", "bob"), ("c", "eve")):
        store.save(result(), title, owner)
    with refused("too-many-runs-in-all", "3"):
        store.save(result(), "d", "ada")
    assert len(store.list()) == 3


def test_the_environment_says_how_many_runs_may_be_kept(tmp_path, monkeypatch):
    store = RunStore(tmp_path)
    assert store.quota == Quota()
    monkeypatch.setenv("FLOWS_RUNS_EACH", "1")
    monkeypatch.setenv("FLOWS_RUNS_IN_ALL", " 7 ")
    assert store.quota == Quota(1, 7)
    store.save(result(), "a")
    with refused("too-many-runs"):
        store.save(result(), "b")
    for wrong in ("0", "-1", "many", "1.5", "\u0663"):
        monkeypatch.setenv("FLOWS_RUNS_IN_ALL", wrong)
        with refused("wrong-quota", "FLOWS_RUNS_IN_ALL"):
            store.save(result(), "c")


# ---------------------------------------------------------------- damage


def altered(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


DAMAGES = {
    "altered": (altered, "altered"),
    "cut": (cut, "cut short"),
    "missing": (Path.unlink, "missing"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b" "), "altered"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", CODECS["study"].files)
def test_a_damaged_file_is_named_and_the_other_run_opens(store, name, damage):
    harm, how = DAMAGES[damage]
    hurt, whole = store.save(result(), "hurt"), store.save(result(), "whole")
    harm(file_of(store, hurt, name))
    with refused("run-damaged", f"hurt is damaged: {name} ", how):
        store.load(hurt.id)
    assert store.load(whole.id).summary() == result().summary()
    listed = {run.id: run for run in store.list()}
    assert listed[whole.id] == whole
    if damage != "altered":  # of the right size: known when it is opened
        assert isinstance(listed[hurt.id], DamagedRun)
        assert name in listed[hurt.id].fault
    store.delete(hurt.id)
    assert store.list() == (whole,)


BROKEN_ABOUTS = {
    "empty": "",
    "cut": '{"format": 1, "id": "',
    "a list": "[]",
    "nothing in it": "{}",
    "deep": "[" * 100_000,
    "not text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("content", BROKEN_ABOUTS.values(), ids=BROKEN_ABOUTS.keys())
def test_a_broken_about_is_listed_as_damaged(store, content):
    hurt, whole = store.save(result(), "hurt"), store.save(result(), "whole")
    told_anew(store, hurt, content if isinstance(content, bytes) else content.encode())
    damaged = next(run for run in store.list() if run.id == hurt.id)
    assert isinstance(damaged, DamagedRun)
    assert "damaged: about.json" in damaged.fault
    assert whole in store.list()
    for act in (store.about, store.load, lambda i: store.rename(i, "x")):
        with refused("run-damaged"):
            act(hurt.id)
    store.delete(hurt.id)


@pytest.mark.parametrize("what", ["pipe", "link", "device", "folder", "huge"])
@pytest.mark.parametrize("catalogued", [True, False])
def test_an_about_that_is_no_file_holds_up_no_list(store, tmp_path, what, catalogued):
    hurt, whole = store.save(result(), "hurt"), store.save(result(), "whole")
    path = file_of(store, hurt, "about.json")
    if not catalogued:
        (store.folder / CATALOGUE).unlink()
    put_in_place_of(path, what, tmp_path / "aside")
    again = RunStore(store.folder)
    listed = {run.id: run for run in again.list()}
    assert listed[whole.id] == whole
    if catalogued:
        assert listed[hurt.id] == hurt
        return
    assert isinstance(listed[hurt.id], DamagedRun)
    with refused("run-damaged", "about.json"):
        again.load(hurt.id)
    again.delete(hurt.id)
    assert again.list() == (whole,)


@pytest.mark.parametrize(
    "change",
    [{"id": "0" * 32}, {"created": "yesterday"}, {"n_individuals": float("inf")}, {"files": {}},
     {"times": None}, {"created": "0001-01-01T00:00:00+14:00"}],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_an_about_with_a_wrong_value_is_damaged(store, change):
    saved = store.save(result(), "hurt")
    told_anew(store, saved, **change)
    with refused("run-damaged"):
        store.load(saved.id)


def test_a_file_named_in_the_about_makes_no_path(store, tmp_path):
    saved = store.save(result(), "x")
    files = json.loads(file_of(store, saved, "about.json").read_text())["files"]
    told_anew(store, saved, files=files | {"../../../outside": {"sha256": "0", "bytes": 1}})
    assert sorted(store.about(saved.id).files) == sorted(CODECS["study"].files)
    assert store.load(saved.id).summary() == result().summary()


def test_a_run_of_a_later_version_says_so(store):
    saved = store.save(result(), "x")
    told_anew(store, saved, format=2)
    with refused("other-format-version", "format 2"):
        store.load(saved.id)


def test_a_run_of_a_later_version_is_listed_as_such_and_never_touched(store):
    saved, other = store.save(result(), "later"), store.save(result(), "now")
    told_anew(store, saved, format=2)
    before = {path: path.read_bytes() for path in (store.folder / saved.id).rglob("*.*")}
    again = RunStore(store.folder, Quota(each=2))
    listed = {run.id: run for run in again.list()}
    assert isinstance(listed[saved.id], NewerRun)
    assert listed[other.id] == other
    for act in (
        again.delete, lambda i: again.rename(i, "x"), lambda i: again.share(i, True), again.load,
    ):  # fmt: skip
        with refused("other-format-version"):
            act(saved.id)
    assert {path: path.read_bytes() for path in before} == before


# ---------------------------------------------------------------- hostile ids


HOSTILE = (
    "", ".", "..", "../x", "/etc", "a/b", "0" * 31, "0" * 33, "g" * 32, "A" * 32,
    "0" * 32 + "\n", "0" * 32, "." + "0" * 31, "../" + "0" * 29, "\x00" * 32, "０" * 32,
)  # fmt: skip


@pytest.mark.parametrize("run_id", HOSTILE)
def test_a_hostile_id_is_no_run_and_touches_nothing(store, tmp_path, run_id):
    store.save(result(), "x")
    outside = tmp_path / "deep" / "x"
    outside.mkdir()
    for act in (store.about, store.load, store.delete, lambda i: store.rename(i, "x")):
        with refused("unknown-run"):
            act(run_id)
    assert outside.is_dir()
    assert len(store.list()) == 1


def test_foreign_files_in_the_folder_are_left_and_not_listed(store):
    store.save(result(), "x")
    (store.folder / "notes.txt").write_text("mine")
    (store.folder / ".hidden").mkdir()
    os.utime(store.folder / ".hidden", (0, 0))
    assert len(RunStore(store.folder).list()) == 1
    assert {"notes.txt", ".hidden"} <= set(names(store))


# ---------------------------------------------------------------- killed, full, two at once


def child(program, *arguments, stdin=None):
    """Run a program of ours beside us; it prints a line for each run it has saved."""
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=ROOT, stdin=stdin, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


SAVE_MANY = """
import sys
from pathlib import Path
from agg_core.store.runs import RunStore
store = RunStore(Path(sys.argv[1]))
for i in range(int(sys.argv[3])):
    print(store.save(Path(sys.argv[2]), f"{i}").id, flush=True)
"""
DIE_BEFORE_IT_COUNTS = """
import os, re, signal, sys
from pathlib import Path
from agg_core.store.runs import RunStore
replace = os.replace
def kill(source, target):
    if re.fullmatch("[0-9a-f]{32}", Path(target).name):
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = kill
RunStore(Path(sys.argv[1])).save(Path(sys.argv[2]), "never")
"""


@pytest.fixture
def job(tmp_path):
    save_result(result(), tmp_path / "job")
    return tmp_path / "job"


def test_killed_before_it_counts_nothing_is_listed_and_the_rest_is_cleared(store, job):
    with child(DIE_BEFORE_IT_COUNTS, store.folder, job) as process:
        assert process.wait(60) == -signal.SIGKILL
    assert len(names(store)) == 1
    assert store.list() == ()
    (store.folder / f".{'a' * 32}.0f").write_text("a cut rename")
    (store.folder / f".{'b' * 32}.gone").mkdir()
    assert names(RunStore(store.folder)) == []


WAIT_BEFORE_IT_COUNTS = """
import os, re, sys
from pathlib import Path
from agg_core.store.runs import RunStore
replace = os.replace
def wait(source, target):
    if re.fullmatch("[.][0-9a-f]{32}", Path(source).name):
        print("waits", flush=True)
        sys.stdin.readline()
    replace(source, target)
os.replace = wait
print(RunStore(Path(sys.argv[1])).save(Path(sys.argv[2]), "slow").id, flush=True)
"""


def test_a_save_that_is_alive_is_no_left_over_however_old(store, job):
    with child(WAIT_BEFORE_IT_COUNTS, store.folder, job, stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == "waits\n"
        (partial,) = names(store)
        os.utime(store.folder / partial, (0, 0))
        assert names(RunStore(store.folder)) == [partial]
        saved = process.communicate("go\n", timeout=60)[0].strip()
    assert process.returncode == 0
    assert names(store) == [saved]
    assert store.load(saved).n_individuals == tiny.N_PEOPLE


def test_killed_at_any_moment_what_was_acknowledged_is_whole(store, job):
    acknowledged = []
    for least in (1, 4):
        with child(SAVE_MANY, store.folder, job, 1000) as process:
            acknowledged += [process.stdout.readline().strip() for _ in range(least)]
            process.kill()
            acknowledged += process.stdout.read().split()
    assert len(acknowledged) >= 5
    listed = store.list()
    assert all(isinstance(run, SavedRun) for run in listed)
    assert set(acknowledged) <= {run.id for run in listed}
    for run in listed:
        assert store.load(run.id).n_individuals == tiny.N_PEOPLE


def test_two_writers_at_once(store, job):
    with (
        child(SAVE_MANY, store.folder, job, 5) as one,
        child(SAVE_MANY, store.folder, job, 5) as other,
    ):
        ids = [run_id for w in (one, other) for run_id in w.communicate(timeout=60)[0].split()]
    assert (one.returncode, other.returncode) == (0, 0)
    assert {run.id for run in store.list()} == set(ids)
    assert Counter(run.title for run in store.list()) == {str(i): 2 for i in range(5)}


def test_a_full_disk_is_a_sentence_and_leaves_nothing(store, monkeypatch):
    kept = store.save(result(), "kept")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.os, "fsync", full)
    with refused("run-not-written", "saved (No space left"):
        store.save(result(), "never")
    assert store.rename(kept.id, "new").title == "new", "which the catalogue has"
    assert [run.title for run in store.list()] == ["new"]
    assert names(store) == [kept.id]
    monkeypatch.undo()
    copy = file_of(store, kept, "about.json")
    assert json.loads(copy.read_text())["title"] == "kept"
    RunStore(store.folder)
    assert json.loads(copy.read_text())["title"] == "new"


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("no folder")
    store = RunStore(tmp_path / "file" / "store")
    assert store.list() == ()
    with refused("run-not-written", "FLOWS_HOME"):
        store.save(result(), "never")


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the name of an open file")
def test_all_is_on_the_disk_before_it_counts(store, monkeypatch):
    """Files, then the folders that name them, then the new name; then the folder of all runs."""
    done = []
    fsync, rename = os.fsync, os.replace

    def noted_fsync(handle):
        done.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        fsync(handle)

    def noted_rename(source, target):
        done.append(f"-> {Path(target).name}")
        rename(source, target)

    monkeypatch.setattr(store_module.os, "fsync", noted_fsync)
    monkeypatch.setattr(store_module.os, "replace", noted_rename)
    saved = store.save(result(), "x")
    counts = done.index(f"-> {saved.id}")
    assert {*CODECS["study"].files, "about.json", "result", f".{saved.id}"} <= set(done[:counts])
    assert done[counts + 1 :] == ["store"]


# ---------------------------------------------------------------- where


def test_the_default_folder_follows_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("FLOWS_HOME", str(tmp_path / "here"))
    assert default_folder().parent == tmp_path / "here"
    monkeypatch.setenv("FLOWS_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if sys.platform == "linux":
        assert tmp_path / "data" / "population-flows" in default_folder().parents
    monkeypatch.setenv("FLOWS_HOME", "beside")
    assert default_folder().is_absolute()
