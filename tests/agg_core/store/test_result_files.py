"""A result opens as it was written or not at all, and takes no more memory than it should."""

import io
import json
import random
import shutil
import zipfile
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agg_core.base.errors import InputError
from agg_core.store import result_files
from agg_core.store.codec import CODECS, load_result, save_result
from agg_core.store.files import FileError
from agg_core.store.shipped_runs import SHIPPED_RUNS, load_shipped
from agg_core.store.sizes import Room, check_npz, check_parquet
from tests.agg_core import counted, tiny
from tests.agg_core.sealing import SEALS, unseal
from tests.agg_core.store.no_files import put_in_place_of
from tests.faults import refused

DAMAGED = "result-damaged"
CUTS, FLIPS = 10, 200


@cache
def study():
    return tiny.run(tiny.people_of_two_days(), tiny.settings(iterations=1, replicates=2))[1]


RESULTS = {"study": study, "counts": counted.by_day}
ARTIFACTS = [(kind, name) for kind in RESULTS for name in CODECS[kind].files]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    for kind, made in RESULTS.items():
        save_result(made(), folder / kind)
    return folder


@pytest.fixture
def saved(whole, tmp_path):
    """A copy of a study and one of counts, to be damaged."""
    shutil.copytree(whole, tmp_path / "saved")
    return tmp_path / "saved"


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize(("kind", "name"), ARTIFACTS)
def test_no_cut_and_no_flipped_bit_makes_another_result(saved, kind, name):
    rng = random.Random(f"{kind} {name}")
    path = saved / kind / name
    content = path.read_bytes()
    damaged = [content[: len(content) * i // CUTS] for i in range(CUTS)]
    for _ in range(FLIPS):
        flipped = bytearray(content)
        flipped[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        damaged.append(bytes(flipped))
    for each in damaged:
        path.write_bytes(each)
        with refused(DAMAGED, name):
            _load(saved / kind, harmless=name == "result.json")


def _load(folder, harmless):
    """Open a result; one whose JSON cannot be read or says the same as before is named, too."""
    try:
        load_result(folder)
    except InputError as fault:
        if harmless and "result.json" not in str(fault):
            raise InputError(f"result.json: {fault}", code=fault.code) from fault
        raise


@pytest.mark.parametrize(("kind", "name"), ARTIFACTS)
def test_a_file_that_is_missing_or_anothers_is_named(saved, kind, name):
    path = saved / kind / name
    path.rename(saved / "aside")
    with refused(DAMAGED, name):
        load_result(saved / kind)
    path.write_bytes((saved / "aside").read_bytes() + b" ")
    if name != "result.json":  # where a space more says nothing else
        with refused(DAMAGED, name):
            load_result(saved / kind)


def test_digests_are_of_all_files_and_of_what_is_said(saved):
    for kind in RESULTS:
        about = json.loads((saved / kind / "result.json").read_text())
        assert set(SEALS) <= set(about)
        assert {*about["files"], "result.json"} == set(CODECS[kind].files)
        for seal in SEALS:
            half = {name: about[name] for name in about if name != seal}
            (saved / kind / "result.json").write_text(json.dumps(half))
            with refused(DAMAGED, "result.json"):
                load_result(saved / kind)


def test_a_result_of_before_opens_without_digests(saved):
    for kind, made in RESULTS.items():
        assert load_result(unseal(saved / kind)).summary() == made().summary()


def test_shipped_runs_have_digests():
    for key in SHIPPED_RUNS:
        assert load_shipped(key).summary()
        folder = result_files.Path(__file__).parents[3] / "data" / "runs" / key
        assert set(SEALS) <= set(json.loads((folder / "result.json").read_text()))


def test_a_folder_whose_name_is_no_text(tmp_path):
    folder = tmp_path / "\udcff\udc80"
    for kind, made in RESULTS.items():
        save_result(made(), folder / kind)
        assert load_result(folder / kind).summary() == made().summary()


# ---------------------------------------------------------------- no plain files


@pytest.mark.parametrize("name", ["result.json", "parameters.npz", "ensemble.parquet"])
@pytest.mark.parametrize("what", ["pipe", "link", "device", "folder", "huge"])
@pytest.mark.parametrize("sealed", [True, False])
def test_what_is_no_file_is_named_and_nothing_waits_for_it(saved, name, what, sealed):
    folder = saved / "study"
    path = (folder if sealed else unseal(folder)) / name
    put_in_place_of(path, what, saved / "aside")
    with refused(DAMAGED, name):
        load_result(folder)


# ---------------------------------------------------------------- small files that become large


def npz(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def zipped(header, n_bytes, method=zipfile.ZIP_DEFLATED):
    """An npz with one array of zeros, whatever its header says."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("people.npy", header + bytes(n_bytes))
    return file.getvalue()


def header_of(shape, descr="<f8"):
    file = io.BytesIO()
    said = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, said)
    return file.getvalue()


ARRAYS = {
    "larger than there is room for": npz(a=np.zeros(20_000_000)),
    "many that are": npz(**{f"a{i}": np.zeros(200_000) for i in range(50)}),
    "one that is longer than such a result has": npz(a=np.zeros(1_001)),
    "a header that tells of more": zipped(header_of((1 << 40,)), 8),
    "a header that tells of less": zipped(header_of((1,)), 1_000_000),
    "a negative length": zipped(header_of((-1, -1)), 8),
    "objects": zipped(header_of((1,), "|O"), 8),
    "texts": npz(a=np.array(["x" * 100])),
    "another packing": zipped(header_of((1,)), 8, zipfile.ZIP_LZMA),
}


@pytest.mark.parametrize("content", ARRAYS.values(), ids=ARRAYS)
def test_arrays_are_refused_by_their_headers(content):
    with pytest.raises(FileError):
        check_npz(content, Room(50_000_000, elements=1_000))


def test_arrays_that_fit_are_read():
    room = Room(50_000_000, elements=1_000)
    check_npz(npz(a=np.zeros(1_000), b=np.ones((2, 3), dtype=bool), c=np.int64(3)), room)
    assert 50_000_000 - 10_000 < room.bytes < 50_000_000 - 8_000


def parquet(table, **options):
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def zeros(n):
    return pa.table({"count": np.zeros(n)})


def growing_texts():
    """Each text is the one before and a letter more, of which only the letter is kept."""
    texts = pa.array(["x" * i for i in range(8_000)])
    return parquet(
        pa.table({"time": texts}), use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY"
    )


TABLES = {
    "many rows of nothing": lambda: parquet(zeros(10_000_000)),
    "a page that is packed well": lambda: parquet(
        pa.table({"time": ["x" * 60_000_000]}), compression="zstd"
    ),
    "a long text in every row": lambda: parquet(
        pa.table({"time": pa.array(["x" * 100_000]).take(np.zeros(1_000, dtype=int))})
    ),
    "texts that grow": growing_texts,
    "many columns": lambda: parquet(pa.table({f"c{i}": [1.0] for i in range(1_000)})),
    "lists": lambda: parquet(pa.table({"a": [[1.0], [2.0]]})),
    "structs": lambda: parquet(pa.table({"a": [{"b": 1.0}]})),
    "dictionaries": lambda: parquet(
        pa.table({"a": pa.array(["x" * 1_000_000]).dictionary_encode()})
    ),
    "bytes": lambda: parquet(pa.table({"a": [b"x"]})),
}


@pytest.mark.parametrize("made", TABLES.values(), ids=TABLES)
def test_tables_are_refused_by_their_headers(made):
    with pytest.raises(FileError):
        check_parquet(made(), Room(50_000_000))


def test_a_table_longer_than_such_a_result_has():
    check_parquet(parquet(zeros(1_000)), Room(50_000_000, rows=1_000))
    with pytest.raises(FileError):
        check_parquet(parquet(zeros(1_001)), Room(50_000_000, rows=1_000))


def test_a_page_that_says_another_size_than_the_footer_is_looked_at():
    """The size in the header of a page is what a reader sets aside."""
    table = pa.table({"count": np.arange(1_000.0)})
    content = parquet(table, use_dictionary=False, compression="none", write_statistics=False)
    column = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    at = column.data_page_offset
    assert content[at : at + 3] == b"\x15\x00\x15", "a page of data, and its size next"
    size = content[at + 3 : at + 6]
    assert size[0] & 128
    assert size[1] < 128
    room = Room(50_000_000)
    check_parquet(content, room)
    hurt = content[: at + 3] + b"\xfe\xff" + content[at + 5 :]
    assert len(hurt) == len(content)
    with pytest.raises((FileError, OSError)):
        check_parquet(hurt, Room(50_000_000))


@pytest.mark.parametrize("name", ["", "many pages", "texts"])
def test_tables_of_ours_are_read(name):
    rng = np.random.default_rng(0)
    n = 300_000 if name == "many pages" else 100
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.integers(0, 9, n), "c": n * [True]})
    if name == "texts":
        frame["time"] = [f"{i % 24:02d}:00" for i in range(n)]
        frame["none"] = None
    file = io.BytesIO()
    frame.to_parquet(file, index=False)
    check_parquet(file.getvalue(), Room(50_000_000))


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_takes_no_more_than_there_is_room_for(saved, kind, monkeypatch):
    monkeypatch.setattr(result_files, "LEAST_ROOM", 10_000)
    monkeypatch.setattr(result_files, "UNPACKED_PER_BYTE", 0)
    with refused(DAMAGED, "memory"):
        load_result(saved / kind)


def test_arrays_of_more_states_than_a_result_has_are_refused(saved):
    folder = unseal(saved / "study")
    with np.load(folder / "parameters.npz") as arrays:
        kept = dict(arrays)
    np.savez_compressed(folder / "parameters.npz", **kept, low_1=np.zeros((4_000, 4_000)))
    with refused(DAMAGED, "parameters.npz"):
        load_result(folder)
