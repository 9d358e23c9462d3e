"""What `agg-core inspect` prints."""

import csv
import io

import pandas as pd
import pytest

from tests.agg_core.cli.told import (
    only_sentence,
    strict_json,
)


def test_inspect_tells_what_the_file_holds(run, file):
    code, out, err = run("inspect", file)
    assert (code, err) == (0, "")
    told = dict(line.split("  ", 1) for line in out.splitlines() if "  " in line.strip())
    told = {label.strip(): value.strip() for label, value in told.items()}
    assert told["Rows read"] == told["Rows kept"] == "1,440"
    assert told["Rows set aside"] == "0"
    assert told["Individuals"] == "60"
    assert told["First fix"] == "2024-05-01 00:10:00 UTC"
    assert told["Last fix"] == "2024-05-01 23:10:00 UTC"


def test_inspect_json(run, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text(
        "user_id,time,lon,lat\n"
        "a,2024-05-01T09:00:00+09:00,139.5,35.5\n"
        "a,2024-05-01T10:00:00+09:00,139.75,35.25\n"
        "b,2024-05-02T09:00:00+09:00,not known,35.5\n"
        "b,2024-05-02T09:30:00+09:00,139.6,35.6\n"
    )
    code, out, err = run("inspect", path, "--json")
    report = strict_json(out)
    assert (code, err) == (0, "")
    assert {"rows_read", "rows_kept", "set_aside", "guesses", "individuals"} <= report.keys()
    assert (report["rows_read"], report["rows_kept"], report["individuals"]) == (4, 3, 2)
    assert sum(report["set_aside"].values()) == 1
    assert pd.Timestamp(report["first_utc"]) == pd.Timestamp("2024-05-01T00:00Z")
    assert pd.Timestamp(report["last_utc"]) == pd.Timestamp("2024-05-02T00:30Z")
    assert report["bbox"] == [139.5, 35.25, 139.75, 35.6]
    assert all("value" in guess for guess in report["guesses"].values())


def test_inspect_rows_prints_canonical_csv(run, tmp_path):
    path = tmp_path / "own.tsv"
    path.write_text(
        "who\twhen\tlatitude\tlongitude\tkind\n"
        '"x, y"\t2024-05-01 09:00:00\t35.5\t139.25\t1\n'
        '"x, y"\t2024-05-01 09:00:01.5\t35.5\t-0.125\t1\n'
        "z\t2024-05-01 09:00:00\t35.5\t139.25\t2\n"
        "w\t2024-05-01 23:00:00\t35.5\t139.25\t1\n"
    )
    code, out, err = run(
        "inspect", path, "--rows", "3", "--tz", "Asia/Tokyo", "--where", "kind=1",
        "--column", "user_id=who", "--column", "time=1",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert list(csv.reader(io.StringIO(out))) == [
        ["user_id", "time", "lon", "lat"],
        ["x, y", "2024-05-01T00:00:00Z", "139.25", "35.5"],
        ["x, y", "2024-05-01T00:00:01.500000Z", "-0.125", "35.5"],
        ["w", "2024-05-01T14:00:00Z", "139.25", "35.5"],
    ]
    assert "\r" not in out


@pytest.mark.parametrize(("n", "lines"), [(0, 1), (1, 2), (5, 6), (10**6, 1441)])
def test_inspect_prints_as_many_rows_as_asked_or_there_are(run, file, n, lines):
    _, out, _ = run("inspect", file, "--rows", n)
    assert len(out.splitlines()) == lines


def test_canonical_rows_read_back_as_they_are(run, file, tmp_path):
    _, first, _ = run("inspect", file, "--rows", "40")
    (tmp_path / "again.csv").write_text(first)
    _, second, _ = run("inspect", tmp_path / "again.csv", "--rows", "40")
    assert second == first


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ([], "2019-02-01T08:00:00Z"),
        (["--date-order", "month"], "2019-01-02T08:00:00Z"),
        (["--time-format", "month/day/year"], "2019-01-02T08:00:00Z"),
        (["--tz", "Asia/Tokyo"], "2019-01-31T23:00:00Z"),
        (["--swap-axes"], "2019-02-01T08:00:00Z"),
    ],
)
def test_what_the_person_says_of_the_file(run, tmp_path, options, first):
    file = tmp_path / "dates.csv"
    file.write_text("user_id,time,lon,lat\na,01/02/2019 08:00,12.5,35.6\n")
    code, out, _ = run("inspect", file, "--rows", "1", *options)
    place = "35.6,12.5" if "--swap-axes" in options else "12.5,35.6"
    assert (code, out.splitlines()[1]) == (0, f"a,{first},{place}")


def test_two_words_for_one_thing(run, tmp_path):
    file = tmp_path / "dates.csv"
    file.write_text("user_id,time,lon,lat\na,01/02/2019 08:00,139.5,35.6\n")
    options = ["--date-order", "day", "--time-format", "year-month-day"]
    code, _, err = run("inspect", file, *options)
    assert code == 2
    assert "give one of them" in only_sentence(err)


def test_counts_without_a_header_are_told_by_their_columns_and_summed_where_it_is_said(
    run, tmp_path
):
    file = tmp_path / "grid.txt"
    file.write_text("".join(
        f"{cell}\t{1383260400000 + 600_000 * step}\t{country}\t{count}\n"
        for cell in (1, 2) for step in range(12) for country, count in ((39, 2.5), (0, 0.25))
    ))  # fmt: skip
    assert run("inspect", file, "--json")[0] == 2
    stated = [word for role in ("cell=0", "time=1", "count=3") for word in ("--column", role)]
    code, _, err = run("inspect", file, *stated, "--json")
    assert (code, "--duplicates=sum" in err) == (2, True)
    code, out, _ = run("inspect", file, *stated, "--json", "--duplicates", "sum")
    told = strict_json(out)
    assert (code, told["kind"], told["rows_kept"]) == (0, "counts", 48)


def test_a_kind_that_is_never_summed(run, file):
    code, _, err = run("inspect", file, "--duplicates", "sum")
    assert (code, "never added up" in only_sentence(err)) == (2, True)
