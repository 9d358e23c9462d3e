"""Workbooks: the table found among titles and sheets, cells as text, dates in both systems."""

import datetime as dt
import io
import zipfile

import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils.datetime import CALENDAR_MAC_1904

from agg_core.base.errors import InputError
from agg_core.io.formats import excel, workbooks
from agg_core.io.formats.excel import open_excel, recognises_excel
from agg_core.io.formats.workbooks import OLE_MAGIC, Kind, open_workbook
from tests.agg_core.io import books, fuzz
from tests.warm import fork_from_now_on

HEADER = ["user_id", "time", "lat", "lon"]
MORNING = dt.datetime(2021, 1, 1, 9, 0)
SHEET_XML = "xl/worksheets/sheet1.xml"
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Most tests are about what is read, not about the process that reads it."""
    monkeypatch.setattr("agg_core.io.apart.is_confined", lambda: True)


@pytest.fixture
def apart(in_this_process, monkeypatch):
    """By a process of its own, as anybody reads."""
    monkeypatch.setattr("agg_core.io.apart.is_confined", lambda: False)
    fork_from_now_on(monkeypatch)


def saved(book):
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()


def workbook(*rows, title="data", from_1904=False, **more_sheets):
    book = openpyxl.Workbook()
    if from_1904:
        book.epoch = CALENDAR_MAC_1904
    book.active.title = title
    for row in rows:
        book.active.append(row)
    for name, others in more_sheets.items():
        sheet = book.create_sheet(name)
        for row in others:
            sheet.append(row)
    return saved(book)


def patched(data, changes):
    """The workbook with parts replaced by other text; a function changes what is there."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            change = changes.get(info.filename)
            new.writestr(info.filename, change(content) if change else content)
    return target.getvalue()


def with_sheet(xml, data=None):
    """A workbook whose first sheet is this XML."""
    return patched(data or workbook(HEADER), {SHEET_XML: lambda _: xml.encode()})


def sheet_xml(rows, after=""):
    return f"<worksheet {MAIN}><sheetData>{rows}</sheetData>{after}</worksheet>"


def loaded(data, **choices):
    source = open_excel(data, "x.xlsx", **choices)
    rows = source.load(range(len(source.names)))
    columns = [rows.columns[i].to_pylist() for i in range(len(source.names))]
    assert {len(column) for column in columns} == {rows.n_rows}
    return source, columns, rows.line_numbers(np.arange(rows.n_rows)).tolist()


def test_titles_serials_dates_and_text_of_the_messy_file(shared_data):
    data = (shared_data / "messy" / "49_excel_serial_dates.xlsx").read_bytes()
    assert recognises_excel(data[:4096])
    source, columns, lines = loaded(data)
    assert source.names == ("user_id", "time", "lat", "lon")
    assert columns == [
        ["1", "1", "1"],
        ["2021-01-01 09:00:00", "2021-01-01 09:10:00", "2021/1/1 9:20"],
        ["35.6812", "35.6845", "35.6901"],
        ["139.7671", "139.77", "139.7003"],
    ]
    assert lines == [4, 5, 6]
    assert source.guesses["header row"].value == "row 3"
    assert source.guesses["serial numbers"].note.startswith("1 bare numbers")
    assert source.sample[0] == ["1", "2021-01-01 09:00:00", "35.6812", "139.7671"]


@pytest.mark.parametrize("from_1904", [False, True])
def test_dates_in_both_date_systems(from_1904):
    # 44197.375 days after 1899-12-30 and 42735.375 days after 1904-01-01 are 2021-01-01 09:00.
    serial = 42735.375 if from_1904 else 44197.375
    rows = [
        ["a", MORNING, 1, 2],
        ["a", serial, 1, 2],
        ["a", MORNING + dt.timedelta(milliseconds=1500), 1, 2],
    ]
    source, columns, _ = loaded(workbook(HEADER, *rows, from_1904=from_1904))
    assert columns[1] == ["2021-01-01 09:00:00"] * 2 + ["2021-01-01 09:00:01.500"]
    assert ("date system" in source.guesses) == from_1904
    only_serials = workbook(HEADER, ["a", serial, 1, 2], from_1904=from_1904)
    assert loaded(only_serials)[1][1] == ["2021-01-01 09:00:00"]


def test_serials_are_rounded_to_milliseconds():
    texts = loaded(workbook(HEADER, ["a", 44197.3819444444, 1, 2], ["a", 60 / 86400 + 50000, 1, 2]))
    assert texts[1][1] == ["2021-01-01 09:10:00", "2036-11-21 00:01:00"]


def test_numbers_stay_numbers_where_nothing_says_time():
    rows = [[44197.375, 44197.375, 44198.0, 44197], [1, 44197.5, 44198.5, 44197]]
    _, columns, _ = loaded(workbook(["id", "time", "lat", "steps"], *rows))
    assert columns[0] == ["44197.375", "1"]
    assert columns[1] == ["2021-01-01 09:00:00", "2021-01-01 12:00:00"]
    assert columns[2:] == [["44198", "44198.5"], ["44197", "44197"]]
    epochs = workbook(HEADER, ["a", 1609491600, 1, 2], ["a", 44197.5, 1, 2])
    assert loaded(epochs)[1][1] == ["1609491600", "44197.5"]


def test_dates_and_clock_times_in_two_columns():
    rows = [["a", dt.date(2021, 1, 1), dt.time(9, 10), dt.timedelta(hours=25, minutes=10), 1, 2]]
    _, columns, _ = loaded(workbook(["id", "date", "time", "service", "lat", "lon"], *rows))
    assert columns[1:4] == [["2021-01-01"], ["09:10:00"], ["25:10:00"]]


def test_texts_among_dates_are_read_alike():
    rows = [["a", value, 1, 2] for value in (MORNING, "25/01/2021 10:00", "2021/1/3 9:20", "soon")]
    _, columns, _ = loaded(workbook(HEADER, *rows))
    assert columns[1] == ["2021-01-01 09:00:00", "2021-01-25 10:00:00", "2021/1/3 9:20", "soon"]


def test_numbers_as_people_write_them():
    values = [1.0, 35.681199999999997, 123456789012.0, -0.5, 1e-7, 1e20, "007"]
    rows = [[value, MORNING, 1, 2] for value in values]
    _, columns, _ = loaded(workbook(HEADER, *rows))
    assert columns[0][:4] == ["1", "35.6812", "123456789012", "-0.5"]
    assert [float(text) for text in columns[0][4:6]] == [1e-7, 1e20]
    assert columns[0][6] == "007"


def test_long_whole_numbers_keep_every_digit():
    cells = row_of('<c r="B1"><v>731904466120957813</v></c><c r="C1"><v>1E2</v></c>')
    assert loaded(with_sheet(sheet_xml(cells)), header_row=0)[1][1:] == [
        ["731904466120957813", None],
        ["100", None],
    ]


def test_cells_without_a_value_are_null_and_counted():
    rows = [["a", MORNING, "#N/A", 2], [True, MORNING, 1, 2], ["c", MORNING, 1, "=A1+1"]]
    source, columns, _ = loaded(workbook([*HEADER, "moving"], *rows))
    assert columns[0] == ["a", None, "c"]
    assert columns[2:4] == [[None, "1", "1"], ["2", "2", None]]
    guess = source.guesses["cells without a value"]
    assert guess.value == "3"
    assert guess.note == (
        "1 TRUE or FALSE, 1 with an error such as #N/A, 1 with a formula that was never calculated"
    )
    flags = workbook([*HEADER, "moving"], ["a", MORNING, 1, 2, True], ["a", MORNING, 1, 2, False])
    assert loaded(flags)[1][4] == ["TRUE", "FALSE"]


def test_only_the_columns_asked_for_are_accounted_for():
    data = workbook([*HEADER, "note"], ["a", MORNING, 1, 2, "#N/A"])
    source = open_excel(data, "x.xlsx")
    assert source.load([1, 0]).columns.keys() == {0, 1}
    assert "cells without a value" not in source.guesses
    source.load([4])
    assert source.guesses["cells without a value"].value == "1"


def test_dates_beyond_the_calendar_are_errors():
    book = openpyxl.load_workbook(io.BytesIO(workbook(HEADER, *[["a", MORNING, 1, 2]] * 3)))
    for row, serial in ((2, -5), (3, 2_958_466)):
        book.active.cell(row, 2, serial).number_format = "yyyy-mm-dd"
    source, columns, _ = loaded(saved(book))
    assert columns[1] == [None, None, "2021-01-01 09:00:00"]
    assert source.guesses["cells without a value"].value == "2"


@pytest.mark.parametrize(
    ("code", "serial", "text"),
    [
        ('yyyy"年"m"月"d"日" h:mm', 44197.375, "2021-01-01 09:00:00"),
        ("[$-411]ge.m.d", 44197, "2021-01-01"),
        ("[h]:mm", 1.25, "30:00:00"),
        ("h:mm", 0.375, "09:00:00"),
        ("m/d/yy h:mm", 59.5, "1900-02-28 12:00:00"),
        ("m/d/yy h:mm", 61.5, "1900-03-01 12:00:00"),
        ('0.00" days"', 44197, "44197"),
        ("G/標準", 44197, "44197"),
    ],
)
def test_number_formats(code, serial, text):
    book = openpyxl.load_workbook(io.BytesIO(workbook(["id", "value"], ["a", serial])))
    book.active["B2"].number_format = code
    assert loaded(saved(book))[1][1] == [text]


def test_built_in_dates_of_japanese_excel():
    data = workbook(["id", "value"], ["a", 44197])
    book = openpyxl.load_workbook(io.BytesIO(data))
    book.active["B2"].number_format = "yyyy-mm-dd"
    styles = {"xl/styles.xml": lambda xml: xml.replace(b'<xf numFmtId="164"', b'<xf numFmtId="31"')}
    assert loaded(patched(saved(book), styles))[1][1] == ["2021-01-01"]


def test_blank_rows_and_columns_around_the_table():
    rows = [
        [None, "People flow of one day"],
        [None, None, None, "made by the office, 2021"],
        [None],
        [None, *HEADER],
        [None, "a", MORNING, 1, 2],
        [None],
        [None, "b", MORNING, 3, 4, None, "a note"],
    ]
    source, columns, lines = loaded(workbook(*rows))
    assert source.names == (*HEADER, "")
    assert columns == [["a", "b"], ["2021-01-01 09:00:00"] * 2, ["1", "3"], ["2", "4"],
                       [None, "a note"]]  # fmt: skip
    assert lines == [5, 7]


def test_headers_of_unknown_names_and_none_at_all():
    unknown = workbook(["Title"], ["wer", "wann", "wo", "wohin"], ["a", MORNING, 1, 2])
    assert loaded(unknown)[0].names == ("wer", "wann", "wo", "wohin")
    source, columns, lines = loaded(workbook(["Title"], ["a", MORNING, 1, 2], ["b", MORNING, 1, 2]))
    assert (source.has_header, source.names) == (False, ("",) * 4)
    assert (columns[0], lines) == (["a", "b"], [2, 3])
    assert source.guesses["header row"].value == "no header"


def test_a_stated_header_row():
    data = workbook(HEADER, ["wer", "wann", "wo", "wohin"], ["a", MORNING, 1, 2])
    assert loaded(data, header_row=2)[0].names == ("wer", "wann", "wo", "wohin")
    assert loaded(data, header_row=0)[1][0] == ["user_id", "wer", "a"]
    with pytest.raises(InputError) as told:
        open_excel(data, "x.xlsx", header_row=9)
    assert told.value.code == "no-table-found"
    assert "under row 9" in str(told.value)


def test_merged_cells_hold_their_value_in_every_row():
    book = openpyxl.load_workbook(io.BytesIO(workbook(
        ["user_id", "time", "place", None], [None, None, "lat", "lon"],
        ["a", MORNING, 1, 2], [None, MORNING, 3, 4], ["b", MORNING, 5, 6], [None, MORNING, 7, 8],
    )))  # fmt: skip
    for block in ("A1:A2", "B1:B2", "C1:D1", "A3:A4", "A5:A6"):
        book.active.merge_cells(block)
    source, columns, lines = loaded(saved(book))
    assert source.names == tuple(HEADER)
    assert columns[0] == ["a", "a", "b", "b"]
    assert columns[2] == ["1", "3", "5", "7"]
    assert lines == [3, 4, 5, 6]


def test_the_sheet_that_tells_who_when_and_where_is_taken():
    data = workbook(
        ["This workbook holds:"], ["1", "fixes"], title="About",
        stations=[["name", "lat", "lon"], *[["s", 1, 2]] * 50],
        few=[HEADER, ["a", MORNING, 1, 2]],
        many=[HEADER, *[["b", MORNING, 1, 2]] * 5],
        empty=[],
    )  # fmt: skip
    source, columns, _ = loaded(data)
    assert columns[0] == ["b"] * 5
    guess = source.guesses["sheet"]
    assert (guess.value, guess.option) == ("many", "sheet")
    assert guess.alternatives == ("About", "stations", "few")
    for wanted in ("few", " FEW ", "3"):
        chosen, columns, _ = loaded(data, sheet=wanted)
        assert columns[0] == ["a"]
        assert chosen.guesses["sheet"].alternatives == ()
    with pytest.raises(InputError) as told:
        open_excel(data, "x.xlsx", sheet="9")
    assert told.value.code == "unknown-sheet"
    assert "it has: About, sta" in str(told.value)
    with pytest.raises(InputError) as told:
        open_excel(data, "x.xlsx", sheet="empty")
    assert told.value.code == "no-table-found"
    assert "in sheet empty" in str(told.value)


def test_shared_texts_with_furigana_runs_and_breaks():
    strings = (
        f"<sst {MAIN}><si><t>東京</t><rPh><t>トウキョウ</t></rPh></si>"
        "<si><r><t>Shin</t></r><r><t>juku</t></r></si><si><t> a_x000D_\nb </t></si><si/></sst>"
    )
    cells = "".join(
        f'<row r="{i + 2}"><c r="A{i + 2}" t="s"><v>{i}</v></c><c r="B{i + 2}"><v>1</v></c></row>'
        for i in range(4)
    )
    base = with_sheet(sheet_xml(cells))
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(base)) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "xl/_rels/workbook.xml.rels":
                content = content.replace(
                    b"</Relationships>",
                    b'<Relationship Id="s" Type="http://x/sharedStrings" Target="strings.xml"/>'
                    b"</Relationships>",
                )
            new.writestr(info.filename, content)
        new.writestr("xl/strings.xml", strings)
    columns = loaded(target.getvalue(), header_row=0)[1]
    assert columns == [["東京", "Shinjuku", "a b", None], ["1"] * 4]


def test_prefixes_and_cells_without_references_are_understood():
    xml = (
        '<x:worksheet xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        "<x:sheetData><x:row><x:c t='str'><x:v>id</x:v></x:c><x:c t='str'><x:v>time</x:v></x:c>"
        "</x:row><x:row r='5'><x:c t='inlineStr'><x:is><x:t>a</x:t></x:is></x:c>"
        "<x:c t='d'><x:v>2021-01-01T09:00:00</x:v></x:c></x:row></x:sheetData></x:worksheet>"
    )
    source, columns, lines = loaded(with_sheet(xml))
    assert source.names == ("id", "time")
    assert (columns, lines) == ([["a"], ["2021-01-01 09:00:00"]], [5])


def test_a_peer_library_reads_the_same_cells(tmp_path):
    data = workbook(HEADER, ["a", MORNING, 1.5, "x"], ["b", 3, None, True])
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    theirs = {
        (cell.row, cell.column, str(cell.value).upper())
        for row in book["data"].iter_rows()
        for cell in row
        if cell.value is not None
    }
    sheet = open_workbook(data, "x.xlsx", tmp_path).sheet("data")
    ours = set()
    for column, cells in enumerate(sheet.columns, sheet.first_column):
        for line, kind, number, text in zip(
            sheet.lines, cells.kinds, cells.numbers, cells.texts.to_pylist(), strict=True
        ):
            when = np.datetime64(int(number), "ms").item() if kind == Kind.DATE else None
            shown = text or when or f"{number:g}"
            if kind != Kind.BLANK:
                ours.add((line, column, str(shown).upper()))
    assert ours == theirs
    assert sheet.lines.tolist() == [1, 2, 3]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=9)
            .filter(lambda text: text.upper() not in ("TRUE", "FALSE")),
            st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2099, 12, 31)),
            st.floats(-90, 90), st.floats(-180, 180),
        ),
        min_size=1, max_size=20,
    ),
    st.booleans(), st.integers(0, 3),
)  # fmt: skip
def test_tables_come_back(rows, from_1904, blank_rows):
    whole = [(who, when.replace(microsecond=0), lat, lon) for who, when, lat, lon in rows]
    data = workbook(*[["title"]] * blank_rows, HEADER, *whole, from_1904=from_1904)
    source, columns, lines = loaded(data)
    assert source.names == tuple(HEADER)
    assert lines == [blank_rows + 2 + i for i in range(len(rows))]
    assert columns[0] == [who for who, *_ in whole]
    midnight = all(when.time() == dt.time() for _, when, *_ in whole)
    assert columns[1] == [str(when)[: 10 if midnight else 19] for _, when, *_ in whole]
    # What writes the workbook keeps 16 digits.
    assert [float(text) for text in columns[2]] == pytest.approx([lat for *_, lat, _ in whole])
    assert [float(text) for text in columns[3]] == pytest.approx([lon for *_, lon in whole])


def test_a_sheet_as_wide_as_excel_allows():
    source, columns, _ = loaded(workbook([*HEADER, *(f"c{i}" for i in range(16_380))],
                                         ["a", MORNING, 1, *range(16_381)]))  # fmt: skip
    assert len(source.names) == 16_384
    assert columns[-1] == ["16380"]


# Other kinds of workbook

OTHERS = {"xls": books.xls, "xlsb": books.xlsb, "ods": books.ods}


@pytest.mark.parametrize("kind", OTHERS)
def test_other_kinds_of_workbook_are_read_alike(kind):
    noon = MORNING + dt.timedelta(hours=3)
    rows = [
        ["Fixes of one day"],
        ["user_id", "time", "lat", "lon", "moving"],
        ["007", MORNING, 35.5, -1, True],
        [" 東京\n駅 ", noon, 1e15, 44197, False],
        [90123456789, noon, None, 2, None],
        [None] * 5,
        ["c", "2021/1/3 9:20", 0.1, 4, True],
    ]
    data = OTHERS[kind](rows)
    assert recognises_excel(data[:4096])
    source, columns, lines = loaded(data)
    assert source.names == ("user_id", "time", "lat", "lon", "moving")
    assert columns == [
        ["007", "東京 駅", "90123456789", "c"],
        ["2021-01-01 09:00:00", *["2021-01-01 12:00:00"] * 2, "2021/1/3 9:20"],
        ["35.5", "1000000000000000", None, "0.1"],
        ["-1", "44197", "2", "4"],
        ["TRUE", "FALSE", None, "TRUE"],
    ]
    assert lines == [3, 4, 5, 7]


def test_old_workbooks_have_sheets_merged_cells_and_serials():
    rows = [HEADER, ["a", 44197.375, 1, 2], [None, 44197.5, 3, 4], ["b", 44198, 5, 6]]
    data = books.xls(rows, [(1, 2, 0, 0)], About=[["name", "value"], ["made", "2021"]])
    source, columns, _ = loaded(data)
    assert source.guesses["sheet"].alternatives == ("About",)
    assert columns[0] == ["a", "a", "b"]
    assert columns[1] == ["2021-01-01 09:00:00", "2021-01-01 12:00:00", "2021-01-02 00:00:00"]
    assert loaded(data, sheet="about")[0].names == ("name", "value")


@pytest.mark.parametrize("from_1904", [False, True])
def test_binary_workbooks_have_both_date_systems(from_1904):
    serial = 42735.375 if from_1904 else 44197.375
    data = books.xlsb([HEADER, ["a", MORNING, 1, 2], ["a", serial, 1, 2]], from_1904)
    source, columns, _ = loaded(data)
    assert columns[1] == ["2021-01-01 09:00:00"] * 2
    assert ("date system" in source.guesses) == from_1904


def test_old_workbooks_count_from_1904_too():
    # xlwt writes the record Date1904 ([MS-XLS] 2.4.77) as 0.
    record = b"\x22\x00\x02\x00"
    data = books.xls([HEADER, ["a", 42735.375, 1, 2]])
    assert data.count(record + b"\0\0") == 1
    source, columns, _ = loaded(data.replace(record + b"\0\0", record + b"\1\0"))
    assert columns[1] == ["2021-01-01 09:00:00"]
    assert source.guesses["date system"].value == "1904"


@pytest.mark.parametrize("part", ["workbook", "styles"])
def test_parts_under_other_names_are_found(part):
    data, target = workbook(HEADER, ["a", MORNING, 1, 2]), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name).replace(f"{part}.xml".encode(), f"{part}2.xml".encode())
            new.writestr(name.replace(f"{part}.xml", f"{part}2.xml"), content)
    assert loaded(target.getvalue())[1][1] == ["2021-01-01 09:00:00"]


# The process that reads


@pytest.mark.usefixtures("apart")
def test_a_process_of_its_own_reads_the_same(monkeypatch):
    rows = [["a", MORNING, "#N/A", 2], [True, "25/01/2021 10:00", 1, "=A1+1"], ["c", 44198, 1, 4]]
    data = workbook(["title"], HEADER, *rows, other=[["name", "value"], ["x", 1]])
    there, columns, lines = loaded(data)
    monkeypatch.setattr("agg_core.io.apart.is_confined", lambda: True)
    here = loaded(data)
    assert (columns, lines) == here[1:]
    assert there.names == here[0].names
    assert there.sample == here[0].sample
    assert there.guesses == here[0].guesses
    assert set(there.guesses) == {"sheet", "header row", "cells without a value", "serial numbers"}


@pytest.mark.usefixtures("apart")
def test_a_fault_of_the_process_is_its_sentence():
    with pytest.raises(InputError) as told:
        open_excel(workbook(HEADER, ["a", MORNING, 1, 2]), "x.xlsx", sheet="none")
    assert (told.value.code, told.value.option) == ("unknown-sheet", "--sheet NAME")


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("kind", ["xlsx", "xlsb"])
def test_a_cell_so_far_away_that_the_sheet_has_no_room_is_refused(kind):
    if kind == "xlsx":
        far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
        data = with_sheet(sheet_xml(row_of('<c r="B1"><v>1</v></c>') + far))
    else:
        data = books.xlsb([["a", 1], *[[]] * 1_048_574, [*[None] * 16_383, 1]])
    with pytest.raises(InputError) as told:
        open_excel(data, "x")
    assert told.value.code == "reading-limit-met"


def test_without_the_library_it_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr(excel, "find_spec", lambda _: None)
    with pytest.raises(InputError) as told:
        open_excel(workbook(HEADER), "x.xlsx")
    assert told.value.code == "package-missing"
    assert "agg-core[excel]" in str(told.value)


# What is refused


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b"PK\x03\x04" + bytes(26) + b"one.csv", False),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", True),
        (b"id,time\n", False),
        (b"", False),
    ],
)
def test_workbooks_are_told_by_content(head, known):
    assert recognises_excel(head) == known


def zipped(**files):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/"), content)
    return target.getvalue()


def test_other_kinds_are_refused_by_name():
    old = OLE_MAGIC + bytes(600)
    rels = '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="{}"/>'
    cases = [
        (old, "unsupported-office-format", "(.xls)"),
        (old + "EncryptedPackage".encode("utf-16-le"), "password-protected", "x.xlsx"),
        (
            zipped(mimetype="application/vnd.oasis.opendocument.text"),
            "unsupported-office-format",
            "(.ods)",
        ),
        (zipped(_rels__X=""), "not-a-workbook", "x.xlsx"),
        (b"id,time\n", "not-a-workbook", "x.xlsx"),
    ]
    for target, kind in [("ppt/presentation.xml", "a Power"), ("word/document.xml", "a Word")]:
        target_xml = rels.format(target) + "</Relationships>"
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            archive.writestr("_rels/.rels", target_xml)
        cases.append((data.getvalue(), "unsupported-office-format", kind))
    for data, code, kind in cases:
        with pytest.raises(InputError) as told:
            open_excel(data, "x.xlsx")
        assert told.value.code == code
        assert kind in str(told.value)


def row_of(cell):
    return f'<row r="1"><c r="A1"><v>1</v></c>{cell}</row><row r="2"><c r="A2"><v>1</v></c></row>'


@pytest.mark.parametrize(
    "xml",
    [
        sheet_xml(row_of('<c r="ZZZZZZZZ1"><v>1</v></c>')),
        sheet_xml(row_of('<c r="XFE1"><v>1</v></c>')),
        sheet_xml(row_of('<c r="B1" t="s"><v>7</v></c>')),
        sheet_xml('<row r="99999999999"><c r="A1"><v>1</v></c></row>'),
        sheet_xml('<row r="2"/><row r="1"/>'),
        sheet_xml('<row r="x"/>'),
        sheet_xml(row_of("")) + "<",
        f'<!DOCTYPE w [<!ENTITY a "aaaa">]><worksheet {MAIN}>&a;</worksheet>',
        sheet_xml(row_of(f'<c r="B1" t="str"><v>{"a" * (3 << 20)}</v></c>')),
    ],
)  # fmt: skip
def test_sheets_that_no_excel_wrote_are_refused(xml):
    with pytest.raises(InputError) as told:
        open_excel(with_sheet(xml), "x.xlsx")
    assert told.value.code == ("xml-doctype" if "DOCTYPE" in xml else "damaged-workbook")


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        (sheet_xml(row_of('<c r="A1"><v>1</v></c>')), None),
        (sheet_xml(row_of('<c r="B1" s="999"><v>7</v></c>')), "7"),
        (sheet_xml("<a>" * 60_000), None),
        (sheet_xml(f'<row r="1" x="{"a" * (3 << 20)}"/>'), None),
        (
            sheet_xml(row_of(f'<c r="B1" t="inlineStr"><is>{"<t>a</t>" * 20_000}</is></c>')),
            "a" * 20_000,
        ),
    ],
)
def test_sheets_that_no_excel_wrote_are_read_as_far_as_they_go(xml, text):
    if text is None:
        with pytest.raises(InputError) as told:
            open_excel(with_sheet(xml), "x.xlsx")
        assert told.value.code == "no-table-found"
    else:
        assert loaded(with_sheet(xml), header_row=0)[1][1] == [text, None]


def test_texts_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr(workbooks, "MAX_LOADED_CHARACTERS", 1000)
    monkeypatch.setattr(workbooks, "CHUNK_CELLS", 4)
    data = workbook(HEADER, *[["a" * 300, MORNING, 1, 2]] * 9)
    with pytest.raises(InputError) as told:
        open_excel(data, "x.xlsx")
    assert told.value.code == "too-much-text"
    monkeypatch.setattr(workbooks, "MAX_MERGES", 3)
    merges = "".join(f'<mergeCell ref="A{i}:A{i + 1}"/>' for i in range(1, 9, 2))
    with pytest.raises(InputError) as told:
        open_excel(with_sheet(sheet_xml(row_of(""), f"<mergeCells>{merges}</mergeCells>")), "x")
    assert told.value.code == "too-many-merges"
    assert "more than 3" in str(told.value)


def test_damage_is_only_ever_an_input_error():
    rng = np.random.default_rng(8)
    original = workbook(HEADER, *[["a", MORNING, 1.5, 2], ["b", 44197.5, "3", True]] * 3)
    outcomes = {"read": 0, "refused": 0}

    def damaged(content):
        data = bytearray(content)
        for _ in range(rng.integers(1, 4)):
            start, length = int(rng.integers(len(data))), int(rng.integers(1, 12))
            choice = rng.integers(4)
            if choice == 0:
                data[start] ^= 1 << int(rng.integers(8))
            elif choice == 1:
                del data[start : start + length]
            elif choice == 2:
                data[start:start] = data[start : start + length]
            else:
                data[start : start + 1] = rng.choice([b"9", b"<", b"\0", b"-", b"z"]).tobytes()
        return bytes(data)

    parts = [SHEET_XML, "xl/workbook.xml", "xl/styles.xml", "xl/_rels/workbook.xml.rels"]
    for i in range(400):
        part = parts[i % 5] if i % 5 < 4 else None
        data = patched(original, {part: damaged}) if part else damaged(original)
        try:
            loaded(data)
            outcomes["read"] += 1
        except InputError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 50


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("kind", OTHERS)
def test_damage_of_other_kinds_is_only_ever_an_input_error(kind):
    random = np.random.default_rng(8)
    original = OTHERS[kind]([HEADER, *[["a", MORNING, 1.5, 2], ["b", 44197.5, "3", True]] * 3])
    outcomes = {"read": 0, "refused": 0}
    for _ in range(100):
        try:
            loaded(fuzz.damaged(original, random))
            outcomes["read"] += 1
        except InputError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 30
