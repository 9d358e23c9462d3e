"""Files of strangers: read by a process of its own, bombs refused early and small."""

import gzip
import io
import json
import subprocess
import sys
import time
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agg_core.base.errors import InputError
from agg_core.base.memory import resident_bytes
from agg_core.base.processes import Limits, left_fault
from agg_core.base.shipped import import_root
from agg_core.io import Choices, start_reading
from tests.agg_core.io import books, hostile

CSV = b"user_id,time,lon,lat\na,2024-02-01 09:00,139.7,35.6\na,2024-02-01 09:10,139.8,35.7\n"


@pytest.fixture
def read(tmp_path):
    """Read to the end, and tell what it took at most."""
    started = []

    def run(content, name="f", choices=None, limits=None):
        files = content if isinstance(content, dict) else {name: content}
        folder = tmp_path / str(len(started))
        reading = start_reading(files, choices or Choices(), folder, limits)
        started.append(reading)
        peak = 0
        while reading.state == "running":
            peak = max(peak, resident_bytes(reading._process.pid))
            time.sleep(0.005)
        return reading, peak

    yield run
    for reading in started:
        reading.remove()


def test_what_is_read_is_what_everybody_reads(read):
    reading, _ = read(CSV, choices=Choices(tz="Asia/Tokyo"))
    trajectories = reading.result()
    assert trajectories.timezone == "Asia/Tokyo"
    assert str(trajectories.table["time"][0]) == "2024-02-01 00:00:00+00:00"
    assert trajectories.report.guesses["user_id"].option == "column user_id"
    assert reading.columns == ("user_id", "time", "lon", "lat")
    assert reading.progress is not None
    assert reading.progress.rows == 2


def test_several_files_under_names_that_lead_elsewhere(read):
    reading, _ = read({"../../etc/1.csv": CSV, "/etc/2.csv": CSV.replace(b"a,", b"b,")})
    assert set(reading.result().table["user_id"]) == {"a", "b"}


def test_a_fault_comes_back_as_its_sentence_with_its_option(read):
    reading, _ = read(b"id,time,x,y\n1,2024-05-18 10:00,15558802.4,4256843.2\n")
    with pytest.raises(InputError) as told:
        reading.result()
    assert told.value.code == "projected-places"
    assert told.value.option == "--crs EPSG:3857"
    assert reading.state == "failed"


def test_it_can_be_cancelled(tmp_path):
    reading = start_reading({"f": CSV}, Choices(), tmp_path / "r")
    reading.cancel()
    assert reading.state == "cancelled"
    reading.remove()
    assert not (tmp_path / "r").exists()


def test_an_upload_that_takes_too_much_fails_though_nobody_polls(tmp_path):
    rows = b"".join(b"a,2024-02-01 09:%02d,139.7,35.6\n" % (i % 60) for i in range(400_000))
    content = {"long.csv": b"user_id,time,lon,lat\n" + rows}
    reading = start_reading(content, Choices(), tmp_path / "r", Limits(90 << 20, 60))
    reading.wait()
    assert reading.state == "failed"
    with pytest.raises(InputError) as told:
        reading.result()
    assert told.value.code == "reading-limit-met"
    assert "more memory" in str(told.value)
    reading.remove()


def test_limits_are_kept_and_told(read):
    reading, _ = read(CSV, limits=Limits(memory=1 << 20, seconds=30))
    with pytest.raises(InputError) as told:
        reading.result()
    assert told.value.code == "reading-limit-met"
    assert "more memory" in str(told.value)
    reading, _ = read(CSV, limits=Limits(memory=1 << 30, seconds=-1))
    with pytest.raises(InputError) as told:
        reading.result()
    assert told.value.code == "reading-limit-met"
    assert "more time" in str(told.value)


def zipped(files, level=9):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def gzip_bomb():
    """A gigabyte of zeros in a megabyte."""
    piece = gzip.compress(bytes(1 << 24))
    return piece * 64


def parquet_bomb():
    """Two hundred million rows that are all alike."""
    n_rows = 2_000_000
    column = pa.array(np.zeros(n_rows, dtype=np.int64))
    table = pa.table({"user_id": column, "time": column, "lon": column, "lat": column})
    out = io.BytesIO()
    with pq.ParquetWriter(out, table.schema, compression="zstd") as writer:
        for _ in range(100):
            writer.write_table(table)
    return out.getvalue()


LAUGHS = "".join(
    f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' if i else '<!ENTITY l0 "ha">' for i in range(10)
)
BOMBS = {
    "gzip": (gzip_bomb, "unpacks-too-large"),
    "parquet": (parquet_bomb, "implausible-row-count"),
    "zip": (lambda: zipped({"a.csv": bytes(1 << 28)}), "unpacks-too-large"),
    "nested zip": (lambda: zipped({"b.zip": zipped({"a.csv": CSV})}), "archive-in-archive"),
    "laughs": (
        f"<!DOCTYPE gpx [{LAUGHS}]><gpx><trk>&l9;</trk></gpx>".encode,
        "xml-doctype",
    ),
    "quadratic": (
        (
            f'<!DOCTYPE gpx [<!ENTITY a "{"x" * 50_000}">]><gpx><trk>{"&a;" * 20_000}</trk></gpx>'
        ).encode,
        "xml-doctype",
    ),
    "deep json": (lambda: b'{"features":' + b"[" * 5_000_000, "nested-too-deep"),
    "a million columns": (lambda: b"a," * 1_000_000 + b"b\n" + b"1," * 1_000_000, "no-line-break"),
    "a giant header": (lambda: b"x" * 50_000_000 + b",time\n1,2\n", "no-line-break"),
    "nothing but zeros": (lambda: bytes(10_000_000), "binary-data"),
}


@pytest.mark.parametrize(("make", "code"), BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_in_ten_seconds_and_a_gigabyte(read, make, code):
    content = make()
    began = time.monotonic()
    reading, peak = read(content)
    assert time.monotonic() - began < 10
    assert peak < 1 << 30
    with pytest.raises(InputError) as told:
        reading.result()
    assert told.value.code == code


def test_a_workbook_bomb_is_refused(read):
    sheet = b"<worksheet><sheetData>" + b"<row/>" * 50_000_000 + b"</sheetData></worksheet>"
    content = zipped({"[Content_Types].xml": "x", "xl/worksheets/sheet1.xml": sheet}, level=1)
    reading, peak = read(content)
    assert peak < 1 << 30
    with pytest.raises(InputError) as told:
        reading.result()
    assert told.value.code == "unpacks-too-large"


def test_a_workbook_whose_sheet_no_machine_holds_is_refused(read):
    reading, peak = read(
        books.xlsb([["user_id", "time"], *[[]] * 1_048_574, [*[None] * 16_383, 1]])
    )
    assert peak < 1 << 30
    with pytest.raises(InputError) as told:
        reading.result()
    assert told.value.code == "reading-limit-met"


# ---------------------------------------------------------------- small files that become large

# A small process starts it: the system counts the memory of who starts to that of the started.
MEASURED = """
import json, os, sys, time
from pathlib import Path
from agg_core.io.choices import Choices
from agg_core.io.sandbox import start_reading
path, folder = map(Path, sys.argv[1:])
reading = start_reading({path.name: path}, Choices(), folder, kind="auto")
_, _, used = os.wait4(reading._process.pid, 0)
print(json.dumps({"most": used.ru_maxrss * 1024, "cpu": used.ru_utime + used.ru_stime}), flush=True)
os._exit(0)  # its child is waited for already
"""
REFUSED_AS = {
    "computed.gpkg": ("reading-limit-met", "damaged-vector-file"),
    "endless.gpkg": ("damaged-vector-file",),
    "columns.parquet": ("too-many-columns",),
    "texts.parquet": ("reading-limit-met",),
}


@pytest.mark.parametrize("name", hostile.FILES)
def test_a_small_file_that_becomes_large_is_refused_though_nobody_looks(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(hostile.FILES[name](tmp_path))
    assert path.stat().st_size < 2_000_000
    command = [sys.executable, "-c", MEASURED, path, tmp_path / "reading"]
    done = subprocess.run(command, cwd=import_root(), check=True, capture_output=True)
    used = json.loads(done.stdout)
    assert left_fault(tmp_path / "reading", UNSAID).code in REFUSED_AS[name]
    assert used["most"] < 1_000_000_000
    assert used["cpu"] < 25


UNSAID = InputError("It ended without a word.", code="reading-limit-met")
