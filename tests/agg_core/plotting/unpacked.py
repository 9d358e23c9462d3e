"""What a browser reads from packed flows, read here by the layout's description alone."""

import base64
import json
import struct

import numpy as np

from tests.agg_core.plotting.pages import elements_of

KINDS = {"u1": "u1", "u2": "<u2", "u4": "<u4", "f4": "<f4", "f8": "<f8"}


class Unpacked:
    """The header, and columns by their descriptions in it."""

    def __init__(self, sent):
        (length,) = struct.unpack("<I", sent[:4])
        self.header = json.loads(sent[4 : 4 + length])
        begin = 4 + length
        self.body = sent[begin + -begin % 8 :]

    def column(self, about):
        """One column of numbers."""
        assert about["at"] % 8 == 0
        kind = np.dtype(KINDS[about["type"]])
        return np.frombuffer(self.body, kind, about["length"], about["at"])

    def table(self, source, time, step=None):
        """The header of a table."""
        (found,) = (
            table
            for table in self.header["tables"]
            if (table["source"], table["time"], table["step"]) == (source, time, step)
        )
        return found

    def flows(self, source, time, step=None, column="count"):
        """A column of each flow, by origin and dest."""
        table = self.table(source, time, step)
        origin, dest, values = (self.column(table[n]).tolist() for n in ("origin", "dest", column))
        return dict(zip(zip(origin, dest, strict=True), values, strict=True))

    def total(self, source, time, name, step=None):
        """A total of each cell."""
        return self.column(self.table(source, time, step)[name]).tolist()


def unpacked_page(content):
    """The flows within a page."""
    (text,) = (
        text for tag, about, text in elements_of(content) if about.get("id") == "flow-map-data"
    )
    return Unpacked(base64.b64decode(text))
