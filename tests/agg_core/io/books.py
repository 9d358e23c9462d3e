"""Small workbooks of the kinds that no library of ours writes, from rows of Python's values."""

from __future__ import annotations

import datetime as dt
import io
import struct
import zipfile
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

import xlwt

__all__ = ["ods", "xls", "xlsb"]

Value = str | float | bool | dt.datetime | None
Rows = Iterable[Sequence[Value]]


def _serial(when: dt.datetime, from_1904: bool = False) -> float:
    first = dt.datetime(1904, 1, 1) if from_1904 else dt.datetime(1899, 12, 30)
    return (when - first) / dt.timedelta(days=1)


def _zipped(parts: dict[str, bytes | str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def xls(rows: Rows, merged: Sequence[tuple[int, int, int, int]] = (), **more_sheets: Rows) -> bytes:
    """By xlwt; ``merged`` are first and last row, first and last column, from 0."""
    book = xlwt.Workbook()
    stamp = xlwt.easyxf(num_format_str="yyyy-mm-dd hh:mm:ss")
    for title, content in {"data": rows, **more_sheets}.items():
        sheet = book.add_sheet(title)
        for r, row in enumerate(content):
            for c, value in enumerate(row):
                if value is not None:
                    style = [stamp] if isinstance(value, dt.datetime) else []
                    sheet.write(r, c, value, *style)
    for block in merged:
        book.get_sheet(0).merge(*block)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _record(kind: int, content: bytes = b"") -> bytes:
    """A record of BIFF12 ([MS-XLSB] 2.1.4): its kind and size in groups of seven bits."""
    head = bytes([kind]) if kind < 128 else bytes([kind & 0x7F | 0x80, kind >> 7])
    size, length = b"", len(content)
    while length > 127:
        size, length = size + bytes([length & 0x7F | 0x80]), length >> 7
    return head + size + bytes([length]) + content


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text.encode("utf-16-le")) // 2) + text.encode("utf-16-le")


def _xlsb_cell(column: int, value: Value, from_1904: bool) -> bytes:
    style = int(isinstance(value, dt.datetime))
    place = struct.pack("<II", column, style)
    if isinstance(value, dt.datetime):
        return _record(5, place + struct.pack("<d", _serial(value, from_1904)))
    if isinstance(value, bool):
        return _record(4, place + bytes([value]))
    if isinstance(value, str):
        return _record(6, place + _wide(value))
    return _record(5, place + struct.pack("<d", value))


def xlsb(rows: Rows, from_1904: bool = False) -> bytes:
    """[MS-XLSB] 2.1.7: a workbook, one sheet, and two styles: none, and number format 22."""
    cells = b"".join(
        _record(0, struct.pack("<IIHBBBI", r, 0, 300, 0, 0, 0, 0))
        + b"".join(_xlsb_cell(c, v, from_1904) for c, v in enumerate(row) if v is not None)
        for r, row in enumerate(rows)
        if row
    )
    sheet = (
        _record(129) + _record(148, struct.pack("<IIII", 0, 0, 0, 0)) + _record(145)
        + cells + _record(146) + _record(130)
    )  # fmt: skip
    book = (
        _record(131) + _record(153, struct.pack("<III", int(from_1904), 0, 0)) + _record(143)
        + _record(156, struct.pack("<II", 0, 1) + _wide("rId1") + _wide("data"))
        + _record(144) + _record(132)
    )  # fmt: skip
    xf = [struct.pack("<HHHHHBBH", 0, number, 0, 0, 0, 0, 0, 0) + bytes(2) for number in (0, 22)]
    styles = (
        _record(278) + _record(617, struct.pack("<I", 2)) + b"".join(_record(47, x) for x in xf)
        + _record(618) + _record(279)
    )  # fmt: skip
    link = '<Relationship Id="{}" Type="http://x/{}" Target="{}"/>'
    links = "<Relationships>{}</Relationships>"
    return _zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": links.format(link.format("a", "officeDocument", "xl/workbook.bin")),
            "xl/workbook.bin": book,
            "xl/_rels/workbook.bin.rels": links.format(
                link.format("rId1", "worksheet", "worksheets/sheet1.bin")
                + link.format("rId2", "styles", "styles.bin")
            ),
            "xl/worksheets/sheet1.bin": sheet,
            "xl/styles.bin": styles,
        }
    )


def _ods_cell(value: Value) -> str:
    kind = {
        str: "string", bool: "boolean", dt.datetime: "date", float: "float", int: "float",
    }.get(type(value))  # fmt: skip
    if kind is None:
        return "<table:table-cell/>"
    name = {"date": "date-value", "boolean": "boolean-value"}.get(kind, "value")
    told = value.isoformat() if isinstance(value, dt.datetime) else str(value).lower()
    stated = "" if kind == "string" else f' office:{name}="{told}"'
    return (
        f'<table:table-cell office:value-type="{kind}"{stated}>'
        f"<text:p>{escape(str(value))}</text:p></table:table-cell>"
    )


def ods(rows: Rows) -> bytes:
    """OpenDocument 1.3, part 3, chapter 9: one table."""
    told = "".join(
        f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows
    )
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    return _zipped(
        {
            "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {names}><office:body><office:spreadsheet>"
            f'<table:table table:name="data">{told}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        }
    )
