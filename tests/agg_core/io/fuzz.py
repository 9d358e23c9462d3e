"""Files with damage of every sort, by the thousand, through the one door that all files take.

``python -m tests.agg_core.io.fuzz 10000`` reads so many and says what became of them; the
tests read fewer. Whatever is not read must be refused by an `InputError` of one sentence, in less
than ten seconds and a gigabyte.
"""

from __future__ import annotations

import gzip
import io
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import geopandas as gpd
import numpy as np
import openpyxl
import pandas as pd
import pytest

from agg_core.base.errors import InputError
from agg_core.base.memory import peak_bytes
from agg_core.io import read_trajectories
from tests.agg_core.io import books
from tests.agg_core.io.formats import fits
from tests.warm import fork_from_now_on

SECONDS = 10.0


def table(n_people: int = 3, n_fixes: int = 8) -> pd.DataFrame:
    """People who walk about Tokyo, a fix every ten minutes."""
    number = np.arange(n_people * n_fixes)
    return pd.DataFrame(
        {
            "user_id": [f"u{i}" for i in number // n_fixes],
            "time": pd.Timestamp("2024-02-01 09:00")
            + pd.to_timedelta(number % n_fixes * 10, "min"),
            "lon": 139.7 + 0.01 * number,
            "lat": 35.6 + 0.005 * (number % 7),
        }
    )


def _text(**how: object) -> bytes:
    return str(table().to_csv(index=False, **how)).encode()


def _parquet() -> bytes:
    out = io.BytesIO()
    table().to_parquet(out)
    return out.getvalue()


def _excel() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in _rows():
        sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _rows() -> list[list[Any]]:
    made = table()
    return [["Fixes"], list(made.columns), *(
        [row.user_id, row.time.to_pydatetime(), row.lon, row.lat]
        for row in made.itertuples(index=False)
    )]  # fmt: skip


def _points() -> gpd.GeoDataFrame:
    made = table()
    return gpd.GeoDataFrame(
        {"user_id": made["user_id"], "time": made["time"].astype(str)},
        geometry=gpd.points_from_xy(made["lon"], made["lat"]),
        crs="EPSG:4326",
    )


def _vector(driver: str) -> bytes:
    out = io.BytesIO()
    _points().to_file(out, driver=driver)
    return out.getvalue()


def _geoparquet() -> bytes:
    out = io.BytesIO()
    _points().to_parquet(out)
    return out.getvalue()


def _fit() -> bytes:
    return fits.fit(fits.definition(), *(
        fits.record(
            int(row.time.timestamp()) - fits.EPOCH_UNIX, fits.semicircles(row.lat),
            fits.semicircles(row.lon),
        )
        for row in table().itertuples()
    ))  # fmt: skip


def _gpx() -> bytes:
    points = "".join(
        f'<trkpt lat="{row.lat}" lon="{row.lon}"><time>{row.time.isoformat()}Z</time></trkpt>'
        for row in table().itertuples()
    )
    return f"<gpx><trk><name>a</name><trkseg>{points}</trkseg></trk></gpx>".encode()


def _kml() -> bytes:
    marks = "".join(
        f"<Placemark><name>{row.user_id}</name><TimeStamp><when>{row.time.isoformat()}Z</when>"
        f"</TimeStamp><Point><coordinates>{row.lon},{row.lat}</coordinates></Point></Placemark>"
        for row in table().itertuples()
    )
    return (
        f"<kml xmlns='http://www.opengis.net/kml/2.2'><Document>{marks}</Document></kml>".encode()
    )


def _google() -> bytes:
    records = ",".join(
        f'{{"latitudeE7": {int(row.lat * 1e7)}, "longitudeE7": {int(row.lon * 1e7)},'
        f' "timestamp": "{row.time.isoformat()}Z", "accuracy": 20}}'
        for row in table().itertuples()
    )
    return f'{{"locations": [{records}]}}'.encode()


def _zip() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/1.csv", _text())
        archive.writestr("b/2.csv", _text())
    return out.getvalue()


def _plt() -> bytes:
    lines = "".join(
        f"{row.lat},{row.lon},0,492,45323.5,{row.time:%Y-%m-%d,%H:%M:%S}\n"
        for row in table().itertuples()
    )
    head = (
        "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8\n0\n"
    )
    return (head + lines).encode()


SEEDS: dict[str, Callable[[], bytes]] = {
    "CSV": _text,
    "TSV": lambda: _text(sep="\t"),
    "semicolons": lambda: _text(sep=";", decimal=","),
    "CP932": lambda: _text().decode().replace("user_id", "ユーザーID").encode("cp932"),
    "UTF-16": lambda: _text().decode().encode("utf-16"),
    "gzip": lambda: gzip.compress(_text()),
    "PLT": _plt,
    "Parquet": _parquet,
    "Excel": _excel,
    "xls": lambda: books.xls(_rows()),
    "xlsb": lambda: books.xlsb(_rows()),
    "ods": lambda: books.ods(_rows()),
    "FIT": _fit,
    "GPX": _gpx,
    "KML": _kml,
    "GeoJSON": lambda: _points().to_json().encode(),
    "Google": _google,
    "JSON rows": lambda: str(table().to_json(orient="records", date_format="iso")).encode(),
    "JSON lines": lambda: str(
        table().to_json(orient="records", date_format="iso", lines=True)
    ).encode(),
    "GeoPackage": lambda: _vector("GPKG"),
    "FlatGeobuf": lambda: _vector("FlatGeobuf"),
    "GeoParquet": _geoparquet,
    "zip": _zip,
}
"""One good file of each kind."""


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """The content with some bytes changed, cut, doubled, moved or put in."""
    made = bytearray(content)
    for _ in range(int(random.integers(1, 6))):
        if not made:
            break
        at = int(random.integers(len(made)))
        length = int(random.integers(1, max(2, len(made) // 8)))
        match int(random.integers(7)):
            case 0:
                made[at] ^= 1 << int(random.integers(8))
            case 1:
                del made[at:]
            case 2:
                del made[at : at + length]
            case 3:
                made[at:at] = made[at : at + length]
            case 4:
                made[at : at + 1] = random.bytes(int(random.integers(1, 20)))
            case 5:
                made[at : at + length] = bytes(length)
            case _:
                words = (b",", b'"', b"\n", b"nan", b"-1e999", b"99999999999999999999", b"<", b"{")
                made[at:at] = words[int(random.integers(len(words)))]
    return bytes(made)


def outcomes(count: int, seed: int = 0) -> Iterator[tuple[str, str, float]]:
    """Read so many damaged files: kind, "read" or "refused", and seconds, of each.

    Raises
    ------
    AssertionError
        If a file is answered by anything but a table or one sentence in time.
    """
    random = np.random.default_rng(seed)
    kinds = {kind: make() for kind, make in SEEDS.items()}
    for number in range(count):
        kind = list(kinds)[number % len(kinds)]
        content = damaged(kinds[kind], random)
        began = time.monotonic()
        fault = ""
        try:
            read_trajectories(content, filename="file")
        except InputError as told:
            fault = str(told)
        except Exception as error:
            raise AssertionError(f"{kind} {number}: {type(error).__name__}: {error}") from error
        took = time.monotonic() - began
        assert took < SECONDS, (kind, number, took)
        assert "\n" not in fault, (kind, number, fault)
        yield kind, "refused" if fault else "read", took


def main(count: int) -> None:
    found = Counter[tuple[str, str]]()
    longest = 0.0
    with pytest.MonkeyPatch.context() as patch:
        fork_from_now_on(patch)
        for kind, outcome, took in outcomes(count):
            found[kind, outcome] += 1
            longest = max(longest, took)
    for kind in SEEDS:
        print(f"{kind:<12}{found[kind, 'read']:>7,} read{found[kind, 'refused']:>7,} refused")
    peak = peak_bytes() / 1e6
    print(f"{count:,} files; the longest took {longest:.2f} s; peak memory {peak:,.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]))
