"""Folders and archives: as much of them is held as is allowed, and what is read stays the same."""

from __future__ import annotations

import tracemalloc
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from agg_core.io import contents, held
from agg_core.io.archives import Archive
from agg_core.io.choices import Choices
from agg_core.io.counts import CountChoices, counting_steps, counts_of, holds_counts
from agg_core.io.formats.registry import open_source
from agg_core.io.reading import read_trajectories

MEGABYTE = 1 << 20
N_FILES = 12


def rows_of(day: int) -> str:
    """A person's fixes of a day: a time twice, a place that is none, a line that is too short."""
    lines = [f"p{day},2024-02-{day + 1:02d} {h:02d}:00,139.{h:02d},35.5" for h in range(6)]
    lines[2] = lines[2].replace("35.5", "north")
    lines.insert(4, lines[4])
    lines.append("too,few")
    return "\n".join(["user_id,time,lon,lat", *lines]) + "\n"


def counts_of_day(day: int) -> str:
    return "time,cell,count\n" + "".join(
        f"2024-02-{day + 1:02d} {hour:02d}:00,{cell},{day + hour}\n"
        for hour in range(3)
        for cell in "AB"
    )


@pytest.fixture(params=["folder", "zip", "several"])
def many(request, tmp_path):
    """Makes many files of a text for each day, in one of the ways that they are given."""

    def make(text_of, n=N_FILES):
        files = {f"{day:02d}.csv": text_of(day) for day in range(n)}
        if request.param == "zip":
            with zipfile.ZipFile(tmp_path / "many.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                for name, text in files.items():
                    archive.writestr(name, text)
            return tmp_path / "many.zip"
        (tmp_path / "many").mkdir()
        for name, text in files.items():
            (tmp_path / "many" / name).write_text(text)
        if request.param == "folder":
            return tmp_path / "many"
        return {name: tmp_path / "many" / name for name in files}

    return make


def test_what_is_opened_again_is_read_the_same(many, monkeypatch):
    """Rows, what was set aside and on which lines."""
    source = many(rows_of)
    monkeypatch.setattr(held, "HELD_BYTES", 1 << 40)
    whole = read_trajectories(source, max_speed=1000)
    monkeypatch.setattr(held, "HELD_BYTES", 0)
    again = read_trajectories(source, max_speed=1000)
    assert again.table.equals(whole.table)
    assert again.report == whole.report
    aside = again.report.set_aside
    assert {cause: each.count for cause, each in aside.items()} == {
        "unreadable position": N_FILES, "wrong number of columns": N_FILES,
        "duplicate time": N_FILES,
    }  # fmt: skip
    # The header is line 1; lines go on counting within the first file.
    assert aside["unreadable position"].lines[0] == 4
    assert aside["wrong number of columns"].lines[0] == 9


@pytest.mark.parametrize("limit", [0, 1 << 40])
def test_counts_of_many_files_are_the_same(many, monkeypatch, limit):
    monkeypatch.setattr(held, "HELD_BYTES", limit)
    table = counts_of(many(counts_of_day), CountChoices())
    assert table.counts.shape == (3 * N_FILES, 2)
    assert table.counts[:, 0].tolist() == [d + h for d in range(N_FILES) for h in range(3)]


def test_little_of_many_files_is_in_memory_at_once(many, monkeypatch):
    """Forty megabytes in files of four; Python's own account of memory sees their bytes.

    An archive is there besides, packed.
    """
    noise = np.random.default_rng(0).integers(0, 10, 4 * MEGABYTE).astype("S1").tobytes().decode()
    row = "p,2024-02-01 08:00,139.5,35.5,"

    def large(day):
        notes = (noise[i : i + 8_000] for i in range(0, len(noise), 8_000))
        return "user_id,time,lon,lat,note\n" + "".join(f"{row}{note}\n" for note in notes)

    source = many(large, 10)
    monkeypatch.setattr(held, "HELD_BYTES", 4 * MEGABYTE)
    tracemalloc.start()
    try:
        opened = open_source(source, Choices())
        assert sum(rows.n_rows for rows in opened.batches(range(4))) == 10 * 525
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    packed = source.stat().st_size if isinstance(source, Path) and source.is_file() else 0
    assert peak < packed + 20 * MEGABYTE


@pytest.fixture
def openings(monkeypatch):
    """How often each file is read from its path, by name."""
    seen = Counter()
    of_path = contents._of_path

    def watch(path, *more):
        seen[Path(path).name] += 1
        return of_path(path, *more)

    monkeypatch.setattr(contents, "_of_path", watch)
    return seen


def test_counts_are_opened_once_to_tell_what_they_are_and_once_to_be_read(openings, tmp_path):
    (tmp_path / "counts.csv").write_text(counts_of_day(0))
    files = {"counts.csv": tmp_path / "counts.csv"}
    assert holds_counts(files)
    assert openings == {"counts.csv": 1}
    for _ in counting_steps(files, CountChoices(), tmp_path / "table.parquet"):
        pass
    assert openings == {"counts.csv": 2}


def test_each_file_of_a_folder_of_counts_is_opened_once(openings, tmp_path):
    for day in range(3):
        (tmp_path / f"{day}.csv").write_text(counts_of_day(day))
    counts_of(tmp_path, CountChoices())
    assert set(openings.values()) == {1}


def test_an_archive_of_counts_is_opened_once_and_each_of_its_files_unpacked_once(
    openings, tmp_path, monkeypatch
):
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as archive:
        for day in range(3):
            archive.writestr(f"{day}.csv", counts_of_day(day))
    unpacked = Counter()
    read = Archive.read

    def watch(self, entry):
        unpacked[entry.name] += 1
        return read(self, entry)

    monkeypatch.setattr(Archive, "read", watch)
    counts_of(tmp_path / "many.zip", CountChoices())
    assert openings == {"many.zip": 1}
    assert unpacked == {"0.csv": 1, "1.csv": 1, "2.csv": 1}
