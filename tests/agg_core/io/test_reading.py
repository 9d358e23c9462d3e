import contextlib
import gzip
import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agg_core.base.errors import InputError
from agg_core.io import Choices, ImportReport, archives, contents, read_trajectories
from agg_core.io.fixes import FixReader
from agg_core.io.formats.registry import open_source

HEADER = "user_id,time,lon,lat\n"
ROWS = "a,2024-02-01 09:00:00,139.7,35.6\na,2024-02-01 09:10:00,139.8,35.7\n"
CSV = (HEADER + ROWS).encode()


def frame(**columns):
    base = {
        "user_id": ["a", "a"],
        "time": pd.to_datetime(["2024-02-01 09:00", "2024-02-01 09:10"], utc=True),
        "lon": [139.7, 139.8],
        "lat": [35.6, 35.7],
    }
    return pd.DataFrame(base | columns)


def as_parquet(table):
    file = io.BytesIO()
    table.to_parquet(file, index=False)
    return file.getvalue()


def utc(trajectories):
    return [str(t)[:19] for t in trajectories.table["time"].dt.tz_localize(None)]


def test_a_path_bytes_an_open_file_and_gzip_give_the_same_table(tmp_path):
    path = tmp_path / "fixes.csv"
    path.write_bytes(CSV)
    expected = read_trajectories(path).table
    packed = gzip.compress(CSV[:30]) + gzip.compress(CSV[30:])
    for source in (str(path), CSV, io.BytesIO(CSV), packed):
        pd.testing.assert_frame_equal(read_trajectories(source).table, expected)


def test_text_parquet_and_frame_give_the_same_table():
    expected = read_trajectories(CSV).table
    for source in (frame(), as_parquet(frame()), gzip.compress(as_parquet(frame()))):
        pd.testing.assert_frame_equal(read_trajectories(source).table, expected)


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", " | "])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends_are_found(separator, line_end):
    text = (HEADER + ROWS).replace(",", separator).replace("\n", line_end)
    report = read_trajectories(text.encode()).report
    assert (report.rows_read, report.rows_kept) == (2, 2)
    words = {",": "comma", "\t": "tab", ";": "semicolon", "|": "pipe"}
    assert report.guesses["separator"].value == words[separator.strip(" ")]


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("cp932", "cp932"),
        ("utf-16", "utf-16"),
    ],
)
def test_japanese_headers_are_read_in_each_encoding(encoding, found):
    text = "ユーザーID,日時,経度,緯度\n花子," + ROWS.splitlines()[0].removeprefix("a,") + "\n"
    trajectories = read_trajectories(text.encode(encoding))
    assert trajectories.table["user_id"].tolist() == ["花子"]
    assert trajectories.report.guesses["encoding"].value == found


def test_latin_1_is_not_taken_for_japanese():
    text = "id;zeit;breite;Länge\nJörg;2024-02-01 09:00;48,20849;16,37208\n"
    trajectories = read_trajectories(text.encode("latin-1"))
    assert trajectories.table["user_id"].tolist() == ["Jörg"]
    assert trajectories.table[["lon", "lat"]].to_numpy().tolist() == [[16.37208, 48.20849]]
    report = trajectories.report
    assert (report.guesses["encoding"].value, report.guesses["decimal mark"].value) == (
        "latin-1",
        "comma",
    )


def test_stated_encoding_and_separator_are_obeyed_or_refused():
    text = CSV.decode().replace(",", ":").replace("09:00:00", "0900").replace("09:10:00", "0910")
    assert len(read_trajectories(text.encode(), separator=":")) == 2
    assert len(read_trajectories(CSV, separator="comma", encoding="latin-1")) == 2
    for choice, code in [
        ({"separator": "ab"}, "unknown-separator"),
        ({"encoding": "klingon"}, "unknown-encoding"),
        ({"encoding": "utf-16"}, "wrong-encoding"),
    ]:
        with pytest.raises(InputError) as told:
            read_trajectories(CSV, **choice)
        assert told.value.code == code


def test_rows_are_set_aside_by_cause_with_lines_of_the_file():
    text = (
        "\nuser_id,time,lon,lat\r\n"  # line 2
        "a,2024-02-01 09:00,139.7,35.6\r\n"
        "\r\n"
        ",2024-02-01 09:00,139.7,35.6\r\n"  # 5
        "a,,139.7,35.6\r\n"
        "a,yesterday,139.7,35.6\r\n"
        'a,2024-02-01 09:05,"139.7\r\n",35.6\r\n'  # 8 and 9
        "a,2024-02-30 09:05,139.7,35.6\r\n"  # 10
        "a,2024-02-01 09:10,,35.6\r\n"
        "a,2024-02-01 09:10,east,35.6\r\n"
        "a,2024-02-01 09:10,181,35.6\r\n"
        "a,2024-02-01 09:10,139.7,-90.5\r\n"
        "a,2024-02-01 09:10,0,0.0\r\n"
        "a,2024-02-01 09:10,139.7\r\n"  # 16
        "a,2024-02-01 09:20,139.7,35.6\r\n"
        "nan,2024-02-01 09:20,139.7,35.6\r\n"
        "a,2024-02-01 09:20,139.8,35.7\r\n"
        "a,2024-02-01 09:30,inf,35.7"
    )
    trajectories = read_trajectories(text.encode())
    report = trajectories.report
    assert {cause: rows.lines for cause, rows in report.set_aside.items()} == {
        "missing user id": (5, 18),
        "missing time": (6,),
        "unreadable time": (7, 10),
        "missing position": (11,),
        "unreadable position": (12, 20),
        "position out of range": (13, 14),
        "position at 0, 0": (15,),
        "wrong number of columns": (16,),
        "duplicate time": (17,),
    }
    assert (report.rows_read, report.rows_kept) == (16, 3)
    assert sum(rows.count for rows in report.set_aside.values()) == 13
    assert trajectories.table["lon"].tolist() == [139.7, 139.7, 139.8]  # the last of the twins
    assert "yesterday" in report.set_aside["unreadable time"].example
    assert report.set_aside["wrong number of columns"].example == "a,2024-02-01 09:10,139.7"


def test_counts_hold_when_quotes_open_nothing():
    text = HEADER + 'a,2024-02-01 09:00,139.7,35.6\n5" a,2024-02-01 09:00,139.7,35.6\n,,,\n'
    report = read_trajectories(text.encode()).report
    assert report.set_aside["missing user id"].lines == (4,)
    assert report.individuals == 2


def test_no_more_than_five_lines_are_named():
    text = HEADER + "a,2024-02-01 09:00,139.7,35.6\n" * 9
    aside = read_trajectories(text.encode()).report.set_aside["duplicate time"]
    assert (aside.count, aside.lines) == (8, (2, 3, 4, 5, 6))


@pytest.mark.parametrize(
    "names",
    [
        "user_id,time,lon,lat",
        " UID , Timestamp , Lng , Latitude ",
        "trajectory_id,tracked_at,longitude,latitude",
        "id,datetime,x_lon,y_lat",
        "User ID,T,Long,LAT",
        "unit,when,x,y",
    ],
)
def test_columns_are_found_by_many_names(names):
    columns = {"user_id": 0} if names.startswith("unit") else None
    trajectories = read_trajectories(f"{names}\n{ROWS}".encode(), columns=columns)
    assert trajectories.table["lat"].tolist() == [35.6, 35.7]


def test_other_candidates_for_a_column_are_named():
    text = "id,user,time,lon,lat\n1,a,2024-02-01 09:00,139.7,35.6\n"
    guess = read_trajectories(text.encode()).report.guesses["user_id"]
    assert (guess.value, guess.alternatives) == ("user", ("id",))


def test_columns_are_taken_by_name_or_position():
    text = "bike,seen,a,b\n007,2024-02-01 09:00,35.6,139.7\n"
    by_name = {"user_id": " BIKE", "time": "seen", "lon": "b", "lat": "a"}
    by_place = {"user_id": 0, "time": 1, "lon": "3", "lat": 2}
    for columns in (by_name, by_place):
        table = read_trajectories(text.encode(), columns=columns).table
        assert table[["user_id", "lon", "lat"]].to_numpy().tolist() == [["007", 139.7, 35.6]]
    bare = text.splitlines()[1].encode()
    assert read_trajectories(bare, columns=by_place).table["lat"].tolist() == [35.6]


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        (
            "a,b,c,time",
            None,
            "No user id or longitude or latitude column found among: a, b, c, time; say which "
            "columns they are.",
        ),
        (
            "id,b,lon,lat",
            None,
            "No time column found among: id, b, lon, lat; say which column it is.",
        ),
        ("id,time,lon,lat", {"who": "id"}, "No column role is called 'who'; choose among"),
        (
            "id,time,lon,lat",
            {"user_id": "bike"},
            "No column is called 'bike'; the file has: id, time, lon, lat.",
        ),
        ("id,time,lon,lat", {"user_id": 4}, "No column is called '4'; the file has"),
    ],
)
def test_missing_columns_are_named_with_what_the_file_has(header, columns, message):
    with pytest.raises(InputError) as caught:
        read_trajectories(f"{header}\n{ROWS}".encode(), columns=columns)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "header",
    ["利用者,性別,時,y,x,a,b,c,d", "id,gender,date,latitude,longitude,m,s,state,cat", None],
)
def test_nine_columns_of_people_flow_data_are_known_by_position(header):
    text = "0042,1,2013-07-01 09:05:00,35.65,139.7,Shop,Food,STAY,123\n"
    table = read_trajectories((f"{header}\n" if header else "").encode() + text.encode() * 1).table
    assert table[["user_id", "lon", "lat"]].to_numpy().tolist() == [["0042", 139.7, 35.65]]


def test_without_a_header_longitude_beyond_90_settles_the_order():
    for row in ("5,2008/02/02 15:36:08,116.5,39.9\n", "5,2008/02/02 15:36:08,39.9,116.5\n"):
        trajectories = read_trajectories(row.encode())
        assert trajectories.table[["lon", "lat"]].to_numpy().tolist() == [[116.5, 39.9]]
        assert trajectories.report.guesses["header"].value == "no header"
    unsettled = read_trajectories(b"5,2008/02/02 15:36:08,16.5,39.9\n").report
    assert unsettled.guesses["lon"].alternatives == ("column 3",)
    assert "longitude, latitude" in unsettled.guesses["lon"].note


def test_where_keeps_rows_by_text_or_number():
    text = "user_id,time,lon,lat,full_day,day\n" + "".join(
        f"a,2024-02-01 09:0{i},139.7,35.6,{full},{d}\n"
        for i, (full, d) in enumerate([("1", "Mo"), ("1.0", "Tu"), ("0", "Mo"), (" 1", "Mo")])
    )
    report = read_trajectories(text.encode(), where={"full_day": "1", "DAY": "Mo"}).report
    assert report.rows_kept == 2
    assert report.set_aside["not full_day=1"].lines == (4,)
    assert report.set_aside["not DAY=Mo"].lines == (3,)
    table = pd.DataFrame(frame(full_day=[1.0, 0.0]))
    assert len(read_trajectories(table, where={"full_day": "1"})) == 1
    with pytest.raises(InputError) as told:
        read_trajectories(text.encode(), where={"week": "1"})
    assert told.value.code == "unknown-column"
    with pytest.raises(InputError) as told:
        read_trajectories(text.encode(), where={"day": "Fr"})
    assert told.value.code == "no-rows-left"
    assert "not day=Fr (4)" in str(told.value)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty-file"),
        (b"\n\r\n\n", "empty-file"),
        (b"user_id,time,lon,lat\n", "no-rows"),
        (b"just a sentence", "not-a-table"),
        (bytes(range(256)) * 8, "binary-data"),
        (b"\x1f\x8b" + bytes(40), "damaged-gzip"),
        (gzip.compress(CSV)[:-9], "breaks-off-early"),
        (gzip.compress(gzip.compress(CSV)), "gzip-within-gzip"),
        (b"PAR1" + bytes(200) + b"PAR1", "damaged-parquet"),
        (as_parquet(frame())[:-30], "damaged-parquet"),
        (as_parquet(frame().iloc[:0]), "no-rows"),
        (b"PK\x03\x04 and so on", "damaged-archive"),
        (b"<?xml version='1.0'?><gpx/>", "no-points"),
        (b'{"locations": []}', "unknown-json-shape"),
        (HEADER.encode() + b"a,2024-02-01,x,y\n", "coordinates-not-numbers"),
        (HEADER.encode() + b"a,,139.7,35.6\n", "empty-time-column"),
        (HEADER.encode() + b"a,noon,139.7,35.6\n", "unreadable-times"),
        (HEADER.encode() + b"a,41,139.7,35.6\n", "numbers-not-times"),
        (HEADER.encode() + b"a,2024-02-01,35.6,139.7\n", "coordinates-swapped"),
        (HEADER.encode() + b"a,2024-02-01,15558802.4,4256843.2\n", "projected-places"),
    ],
)
def test_unusable_content_is_refused_in_one_sentence(content, code):
    with pytest.raises(InputError) as caught:
        read_trajectories(content, filename="up\x1bload.csv")
    assert caught.value.code == code
    assert str(caught.value).count("\n") == 0
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "cause"),
    [
        (b"a,2024-02-01,,\n", "missing position (1)"),
        (b"a,2024-02-01,0,0\n", "position at 0, 0 (1)"),
        (b'"a,2024-02-01 09:00,139.7,35.6\n' * 3, "line break in the user id (1)"),
    ],
)
def test_why_no_row_is_left_is_told(row, cause):
    with pytest.raises(InputError) as told:
        read_trajectories(HEADER.encode() + row)
    assert told.value.code == "no-rows-left"
    assert cause in str(told.value)


def test_files_that_cannot_be_opened_are_refused(tmp_path):
    with pytest.raises(InputError) as told:
        read_trajectories(tmp_path / "absent.csv")
    assert told.value.code == "file-not-opened"
    assert "No such file" in str(told.value)
    with pytest.raises(InputError) as told:
        read_trajectories("no\0name")
    assert told.value.code == "file-not-opened"
    with pytest.raises(InputError) as told:
        read_trajectories(io.StringIO("a,b\n"))
    assert told.value.code == "opened-as-text"


def test_random_bytes_never_raise_anything_else():
    rng = np.random.default_rng(1)
    whole = CSV + ROWS.encode() * 2
    read = 0
    for _ in range(150):
        content = bytearray(whole)
        for at in rng.integers(0, len(content), size=rng.integers(1, 30)):
            content[at] = rng.integers(1, 256)
        with contextlib.suppress(InputError):
            report = read_trajectories(bytes(content)).report
            aside = sum(rows.count for rows in report.set_aside.values())
            assert report.rows_read == report.rows_kept + aside
            read += 1
    assert read > 20


def test_sizes_are_capped(monkeypatch):
    with pytest.raises(InputError) as told:
        contents.read_content(CSV, "It", max_bytes=20)
    assert told.value.code == "file-too-large"
    with pytest.raises(InputError) as told:
        contents.read_content(gzip.compress(b"0" * 10_000), "It", max_bytes=5_000)
    assert told.value.code == "unpacks-too-large"
    monkeypatch.setattr(archives, "RATIO_FREE_BYTES", 1000)
    bomb = gzip.compress(b"0" * 1_000_000)
    with pytest.raises(InputError) as told:
        archives.inflate(bomb, "It")
    assert told.value.code == "unpacks-too-large"
    repeated = as_parquet(pd.concat([frame()] * 100_000))
    with pytest.raises(InputError) as told:
        read_trajectories(repeated)
    assert told.value.code == "implausible-row-count"
    assert "200,000 rows" in str(told.value)
    assert len(read_trajectories(as_parquet(frame()))) == 2


def test_typed_columns_keep_their_meaning():
    table = frame(
        user_id=pd.array([7, None], dtype="Float64"),
        time=pd.to_datetime(["2024-02-01 09:00", "2024-02-01 09:10"]).tz_localize("Asia/Tokyo"),
    )
    trajectories = read_trajectories(as_parquet(table))
    assert trajectories.table["user_id"].tolist() == ["7"]
    assert trajectories.timezone == "Asia/Tokyo"
    assert utc(trajectories) == ["2024-02-01 00:00:00"]
    assert trajectories.report.set_aside["missing user id"].lines == (2,)
    odd = frame(lon=[139, 140], user_id=pd.Categorical(["x", "y"]), time=[1706745600, 1706745660])
    assert read_trajectories(as_parquet(odd)).table["user_id"].tolist() == ["x", "y"]
    nested = pa.table({"id": [[1]], "time": [1706745600], "lon": [1.0], "lat": [1.0]})
    file = io.BytesIO()
    pq.write_table(nested, file)
    with pytest.raises(InputError) as told:
        read_trajectories(file.getvalue())
    assert told.value.code == "unusable-column-type"


def test_stamps_beyond_the_calendar_are_set_aside():
    stamps = pa.array([1706745600_000_000, 2**62, None], pa.timestamp("us", "UTC"))
    table = pa.table({"id": ["a"] * 3, "time": stamps, "lon": [1.0] * 3, "lat": [1.0] * 3})
    file = io.BytesIO()
    pq.write_table(table, file)
    aside = read_trajectories(file.getvalue()).report.set_aside
    assert {cause: rows.lines for cause, rows in aside.items()} == {
        "missing time": (3,),
        "unreadable time": (2,),
    }
    assert aside["unreadable time"].example == "user_id=a, time=out of range, lon=1.0, lat=1.0"


def test_the_report_goes_to_json_and_back_and_to_text():
    text = HEADER + ROWS + "b,2024-02-01 09:00,999,35.6\n" + "c,2024-02-01 12:00,139.6,35.5\n"
    report = read_trajectories(text.encode()).report
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["set_aside"] == {"position out of range": 1}
    assert plain["set_aside_examples"]["position out of range"]["lines"] == [4]
    assert plain["guesses"]["separator"] == {
        "value": "comma",
        "alternatives": ["tab", "semicolon", "pipe"],
        "option": "separator",
    }
    assert "not stated" in plain["guesses"]["time zone"]["note"]
    assert plain["individuals"] == 2
    assert plain["fixes_per_individual"] == [1, 1.5, 2]
    assert plain["bbox"] == [139.6, 35.5, 139.8, 35.7]
    assert plain["first_utc"] == "2024-02-01T09:00:00+00:00"
    assert plain["timezone"] == "UTC"
    assert ImportReport.from_dict(plain) == report
    shown = report.to_text()
    assert "Rows kept               3" in shown
    assert "position out of range" in shown
    assert "(line 4: user_id=b" in shown


def test_names_from_the_file_are_shown_without_control_characters():
    text = "user_id,time,lon,lat\n\x1b[31ma\x07,never,139.7,35.6\nb,2024-02-01,139.7,35.6\n"
    report = read_trajectories(text.encode()).report
    assert "\x1b" not in report.to_text()
    assert report.set_aside["unreadable time"].example.startswith("user_id=?[31ma?")


def test_parquet_may_name_the_zone_of_its_clock():
    table = pa.table(
        {"user_id": ["a"], "time": ["2020-01-01 08:00:00"], "lon": [139.7], "lat": [35.6]}
    )

    def read(zone: str, **choices: str):
        out = io.BytesIO()
        pq.write_table(table.replace_schema_metadata({"timezone": zone}), out)
        return read_trajectories(out.getvalue(), **choices)

    named = read("Asia/Tokyo")
    assert named.timezone == "Asia/Tokyo"
    assert named.table["time"][0] == pd.Timestamp("2019-12-31 23:00", tz="UTC")
    assert read("Asia/Tokyo", tz="UTC").timezone == "UTC"
    assert read("Nowhere/At_all").timezone == "UTC"


@pytest.mark.parametrize(
    "header",
    [
        "User ID,Time (UTC),Longitude [deg],Latitude [deg]",
        "individual-local-identifier,timestamp,location-long,location-lat",
        "imei,GPS Time,gps_lon,gps_lat",
        "person,date_time,LON_WGS84,LAT_WGS84",
        "uid,日時（日本）,経度(度),緯度(度)",
        "tid,t,x,y",
    ],
)
def test_columns_by_the_names_that_people_give_them(header):
    text = header + "\na,2024-02-01 09:00,139.7,35.6\n"
    table = read_trajectories(text.encode()).table
    assert table[["lon", "lat"]].to_numpy().tolist() == [[139.7, 35.6]]


def test_two_columns_with_the_word_are_not_chosen_between():
    text = "user,time,home_lat,home_lon,work_lat,work_lon\na,2024-02-01 09:00,1,2,3,4\n"
    with pytest.raises(InputError) as told:
        read_trajectories(text.encode())
    assert told.value.code == "column-not-found"
    assert told.value.option == "--column lon=NAME --column lat=NAME"


def test_a_frame_of_dates_and_clock_times_is_read_as_its_file(tmp_path):
    frame = pd.DataFrame(
        {"user_id": "a", "date": ["2024-05-01", "20240502"], "time": ["08:05", "0910"],
         "lon": [139.5, 139.6], "lat": 35.5}
    )  # fmt: skip
    frame.to_csv(tmp_path / "a.csv", index=False)
    for source in (frame[:1], frame[1:]):
        whole = read_trajectories(source).time_utc.tolist()
        source.to_csv(tmp_path / "a.csv", index=False)
        assert read_trajectories(tmp_path / "a.csv").time_utc.tolist() == whole
    assert str(whole[0])[:16] == "2024-05-02 09:10"


@pytest.mark.parametrize("word", ["NA", "n/a", "#N/A", "NaT", "<NA>", "null", "missing"])
def test_words_for_nothing_are_missing_wherever_they_stand(word):
    good = "a,2024-02-01 09:00,139.7,35.6"
    rows = (f"a,{word},139.7,35.6", f"a,2024-02-01 09:05,{word},35.6", "NA,2024-02-01 09:10,139,35")
    report = read_trajectories("\n".join(["user_id,time,lon,lat", good, *rows]).encode()).report
    aside = {cause: rows.count for cause, rows in report.set_aside.items()}
    assert aside == {"missing time": 1, "missing position": 1}
    assert report.individuals == 2  # somebody may be called so


def test_people_are_numbered_as_they_are_met_however_many_come_at_once():
    """Few and many ids in turn, known and new, some alike but for blanks around them."""
    rng = np.random.default_rng(0)
    sizes = [3, 400, 5, 1, 900, 2, 40, 1_000, 1]
    batches = [rng.integers(2_000, size=size) for size in sizes]
    ids = [[f"{' ' * (i % 2)}p{number}" for i, number in enumerate(each)] for each in batches]
    files = {
        f"{number}.csv": pd.DataFrame(
            {"user_id": each, "time": "2024-05-01 08:00", "lon": 139.5, "lat": 35.5}
        )
        .to_csv(index=False)
        .encode()
        for number, each in enumerate(ids)
    }
    reader = FixReader(open_source(files, Choices()), Choices())
    user = np.concatenate([fixes.user for fixes in reader.batches()])
    met = [each.strip() for part in ids for each in part]
    assert reader.user_ids == list(dict.fromkeys(met))
    assert [reader.user_ids[number] for number in user] == met
