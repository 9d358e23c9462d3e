"""Zip archives: what is inside is told, and nothing hostile is unpacked."""

import gzip
import io
import struct
import zipfile

import numpy as np
import pytest

from agg_core.base.errors import InputError
from agg_core.io.archives import check_archive, names_in_head


def packed(files, method=zipfile.ZIP_DEFLATED):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


def test_files_are_listed_and_read_and_clutter_is_left_out():
    files = {
        "a/": b"",
        "a/one.csv": b"1,2\n" * 50_000,
        "__MACOSX/a/._one.csv": b"x",
        "a/.DS_Store": b"x",
        "two.csv": b"",
    }
    archive = check_archive(packed(files), "x.zip")
    assert [entry.name for entry in archive.entries] == ["a/one.csv", "two.csv"]
    assert [entry.size for entry in archive.entries] == [200_000, 0]
    assert archive.read(archive.entries[0]) == files["a/one.csv"]
    pieces = list(archive.pieces(archive.entries[0], size=1000))
    assert (len(pieces), max(map(len, pieces))) == (200, 1000)
    assert archive.find("two.csv") is archive.entries[1]
    assert archive.find("three.csv") is None


@pytest.mark.parametrize("encoding", ["cp932", "utf-8"])
def test_japanese_names_are_read_from_archives_that_do_not_say_their_encoding(encoding):
    raw = "人流.csv".encode(encoding)
    data = packed({"Z" * len(raw): b"x"}).replace(b"Z" * len(raw), raw)
    assert check_archive(data, "x.zip").entries[0].name == "人流.csv"


def test_the_head_tells_the_first_names():
    data = packed({"[Content_Types].xml": b"a" * 10, "xl\\workbook.xml": b"b"})
    assert list(names_in_head(data[:4096])) == ["[Content_Types].xml", "xl/workbook.xml"]
    assert list(names_in_head(b"PK\x03\x04")) == [""]
    assert list(names_in_head(b"text")) == []


@pytest.mark.parametrize("name", ["../a.csv", "a/../../b.csv", "/etc/a.csv", "C:/a.csv", "..\\a"])
def test_names_that_lead_out_are_refused(name):
    with pytest.raises(InputError) as told:
        check_archive(packed({name: b"x"}), "x.zip")
    assert told.value.code == "path-leads-out"
    archive = check_archive(packed({name: b"x"}), "x.zip", any_names=True)
    assert archive.read(archive.entries[0]) == b"x"


@pytest.mark.parametrize(
    "inner", [packed({"a.csv": b"x"}), gzip.compress(b"x"), b"7z\xbc\xaf\x27\x1c...", b"BZh9..."]
)
def test_archives_within_are_refused_unless_nobody_opens_them(inner):
    data = packed({"first.csv": b"a,b", "inner.csv": inner})
    with pytest.raises(InputError) as told:
        check_archive(data, "x.zip")
    assert told.value.code == "archive-in-archive"
    assert "inner.csv" in str(told.value)
    assert len(check_archive(data, "x.zip", nested=True).entries) == 2


def test_links_passwords_and_other_packings_are_refused():
    link = zipfile.ZipInfo("link.csv")
    link.external_attr = 0o120777 << 16
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(link, "elsewhere")
    with pytest.raises(InputError) as told:
        check_archive(target.getvalue(), "x.zip")
    assert told.value.code == "link-in-archive"
    assert "link.csv" in str(told.value)
    locked = bytearray(packed({"a.csv": b"x"}))
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InputError) as told:
        check_archive(bytes(locked), "x.zip")
    assert told.value.code == "password-protected"
    with pytest.raises(InputError) as told:
        check_archive(packed({"a.csv": b"x"}, zipfile.ZIP_LZMA), "x.zip")
    assert told.value.code == "unknown-compression"


def test_a_bomb_is_refused_by_what_it_claims():
    data = packed({"a.csv": bytes(100 << 20)})
    assert len(data) < 200_000
    with pytest.raises(InputError) as told:
        check_archive(data, "x.zip")
    assert told.value.code == "unpacks-too-large"
    assert "64 MiB" in str(told.value)
    parts = packed({f"{i}.csv": bytes(1 << 20) for i in range(70)})
    with pytest.raises(InputError) as told:
        check_archive(parts, "x.zip")
    assert told.value.code == "unpacks-too-large"
    assert "64 MiB" in str(told.value)
    with pytest.raises(InputError) as told:
        check_archive(packed({"a.csv": bytes(2 << 20)}), "x.zip", max_bytes=1 << 20)
    assert told.value.code == "unpacks-too-large"
    assert "1 MiB" in str(told.value)


def test_a_bomb_that_claims_less_is_not_unpacked_further():
    content = bytes(50 << 20)
    data = packed({"a.csv": content}).replace(
        struct.pack("<I", len(content)), struct.pack("<I", 1000)
    )
    archive = check_archive(data, "x.zip", nested=True)
    assert archive.entries[0].size == 1000
    with pytest.raises(InputError) as told:
        archive.read(archive.entries[0])
    assert told.value.code == "damaged-archive"


def test_an_entry_that_is_said_to_lie_beyond_any_file_is_damage():
    data = packed({"a.csv": b"x" * 99})
    at = data.index(b"PK\x01\x02")
    length, more = struct.unpack("<HH", data[at + 28 : at + 32])
    assert more == 0
    # A directory entry whose offset stands in an extra field of eight bytes (zip64).
    entry = bytearray(data[at : at + 46 + length])
    entry[30:32], entry[42:46] = struct.pack("<H", 12), b"\xff" * 4
    entry += struct.pack("<HHQ", 1, 8, 2**64 - 2)
    end = bytearray(data[at + 46 + length :])
    end[12:16] = struct.pack("<I", len(entry))
    with pytest.raises(InputError) as told:
        check_archive(data[:at] + bytes(entry + end), "x.zip")
    assert told.value.code == "damaged-archive"


def test_too_many_files_none_or_a_broken_archive():
    with pytest.raises(InputError) as told:
        check_archive(packed({f"{i}": b"" for i in range(6)}), "x.zip", max_entries=5)
    assert told.value.code == "too-many-files"
    assert "more than 5 files" in str(told.value)
    with pytest.raises(InputError) as told:
        check_archive(packed({"a/": b""}), "x.zip")
    assert told.value.code == "empty-archive"
    with pytest.raises(InputError) as told:
        check_archive(packed({"a.csv": b"x" * 99})[:60], "x.zip")
    assert told.value.code == "damaged-archive"
    with pytest.raises(InputError) as told:
        check_archive(bytes(2 << 20), "x.zip", max_bytes=1 << 20)
    assert told.value.code == "archive-too-large"


def test_damage_is_only_ever_an_input_error():
    rng = np.random.default_rng(4)
    original = packed({"a.csv": rng.bytes(2000), "b/c.csv": b"1,2,3\n" * 200})
    outcomes = {"read": 0, "refused": 0}
    for _ in range(300):
        data = bytearray(original)
        for at in rng.integers(0, len(data), rng.integers(1, 6)):
            data[at] ^= 1 << int(rng.integers(8))
        if rng.random() < 0.3:
            del data[int(rng.integers(len(data))) :]
        try:
            archive = check_archive(bytes(data), "x.zip")
            for entry in archive.entries:
                archive.read(entry)
            outcomes["read"] += 1
        except InputError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 100
