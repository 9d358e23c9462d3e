"""Files of sports watches."""

import gzip
import io
import zipfile

import numpy as np
import pytest

from agg_core.base.errors import InputError
from agg_core.io import read_trajectories
from agg_core.io.formats import fit as of_fit
from tests.agg_core.io.formats.fits import (
    EPOCH_UNIX,
    NO_PLACE,
    compressed,
    definition,
    fit,
    record,
    semicircles,
)
from tests.faults import refused

EIGHT = 1_714_550_400 - EPOCH_UNIX  # 2024-05-01 08:00 UTC
LAT, LON = semicircles(-33.8688), semicircles(151.2093)


def walk(n, begin=EIGHT):
    return [record(begin + 60 * i, LAT + 1000 * i, LON) for i in range(n)]


def test_places_are_semicircles_and_times_seconds_of_fit():
    found = read_trajectories(fit(definition(), *walk(3)))
    assert found.table["time"].dt.strftime("%Y-%m-%d %H:%M").tolist() == [
        "2024-05-01 08:00", "2024-05-01 08:01", "2024-05-01 08:02",
    ]  # fmt: skip
    assert found.table["lat"][0] == pytest.approx(-33.8688, abs=1e-6)
    assert found.table["lon"][0] == pytest.approx(151.2093, abs=1e-6)
    assert (found.report.rows_read, found.report.rows_kept, found.report.individuals) == (3, 3, 1)


def test_either_order_of_bytes_and_times_in_headers():
    big = read_trajectories(fit(definition(endian=">"), record(EIGHT, LAT, LON, endian=">"),
                                record(EIGHT + 60, LAT, LON, endian=">")))  # fmt: skip
    assert big.table["lat"][0] == pytest.approx(-33.8688, abs=1e-6)
    small = fit(
        definition(), record(EIGHT, LAT, LON),
        definition(fields=((0, 4, 0x85), (1, 4, 0x85)), local=1),
        compressed((EIGHT + 7) % 32, LAT, LON), compressed((EIGHT + 31) % 32, LAT, LON),
    )  # fmt: skip
    time = read_trajectories(small).table["time"]
    assert (time - time[0]).dt.total_seconds().tolist() == [0, 7, 31]


def test_records_without_a_place_or_a_time_are_counted():
    found = read_trajectories(fit(
        definition(), *walk(2), record(EIGHT + 300, NO_PLACE, NO_PLACE),
        record(100, LAT, LON), record(0xFFFFFFFF, LAT, LON),
    )).report  # fmt: skip
    assert {cause: rows.count for cause, rows in found.set_aside.items()} == {
        "record without a place": 1, "time since the device was switched on": 1,
        "record without a time": 1,
    }  # fmt: skip
    assert (found.rows_read, found.rows_kept) == (5, 2)


def test_several_activities_are_of_one_person():
    found = read_trajectories(
        fit(definition(), *walk(2)) + fit(definition(), *walk(3, EIGHT + 86_400))
    )
    assert (found.report.individuals, found.report.rows_kept) == (1, 5)
    assert found.report.guesses["activities"].value.startswith("2")


def test_watches_of_an_archive_are_several_people():
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("a.fit", fit(definition(), *walk(2)))
        files.writestr("b.fit", fit(definition(), *walk(3)))
    assert read_trajectories(archive.getvalue()).report.individuals == 2
    assert read_trajectories(gzip.compress(fit(definition(), *walk(2)))).report.rows_kept == 2


def test_what_comes_before_damage_is_read_and_the_damage_is_counted():
    whole = fit(definition(), *walk(4))
    cut = read_trajectories(whole[:-8]).report
    assert (cut.rows_kept, sum(rows.count for rows in cut.set_aside.values())) == (3, 1)
    changed = bytearray(whole)
    changed[-20] ^= 1
    assert "checksum" in read_trajectories(bytes(changed)).report.guesses
    assert "checksum" not in read_trajectories(whole).report.guesses


def test_files_without_places_or_too_large_are_refused(monkeypatch):
    with refused("no-points"):
        read_trajectories(fit(definition(), record(EIGHT, NO_PLACE, NO_PLACE)))
    with refused("no-points"):
        read_trajectories(fit())
    monkeypatch.setattr(of_fit, "MOST_MESSAGES", 3)
    with refused("file-too-large"):
        read_trajectories(fit(definition(), *walk(4)))
    monkeypatch.setattr(of_fit, "MOST_MEGABYTES", 0)
    with refused("file-too-large"):
        read_trajectories(fit(definition(), *walk(4)))


def test_without_its_reader_what_to_install_is_said(monkeypatch):
    monkeypatch.setattr(of_fit, "find_spec", lambda _: None)
    with refused("package-missing", "agg-core[fit]"):
        read_trajectories(fit(definition(), *walk(2)))


def test_a_definition_of_nothing_is_no_bomb(monkeypatch):
    monkeypatch.setattr(of_fit, "MOST_MESSAGES", 1000)
    with refused("file-too-large"):
        read_trajectories(fit(definition(fields=()), bytes(5000)))


def test_damaged_bytes_are_read_or_refused():
    random = np.random.default_rng(0)
    whole = fit(definition(), *walk(20))
    for _ in range(100):
        made = bytearray(whole)
        for at in random.integers(12, len(made), 4):
            made[at] = random.integers(256)
        try:
            report = read_trajectories(bytes(made)).report
        except InputError:
            continue
        aside = sum(rows.count for rows in report.set_aside.values())
        assert report.rows_read == report.rows_kept + aside
