"""What the tests of document formats share: rows of a source, tables to write, damaged copies."""

import random
from datetime import datetime

from hypothesis import strategies as st

from agg_core.base.errors import InputError

PERSON = st.text("abcxyz0189 -_<>&\"'é東", min_size=1, max_size=12).filter(
    lambda name: name == " ".join(name.split())
)
FIX = st.tuples(
    st.datetimes(datetime(1990, 1, 1), datetime(2035, 1, 1)).map(
        lambda time: time.replace(microsecond=0).isoformat() + "Z"
    ),
    st.integers(-180_00000, 180_00000).map(lambda i: i / 1e5),
    st.integers(-90_00000, 90_00000).map(lambda i: i / 1e5),
)
JOURNEYS = st.dictionaries(PERSON, st.lists(FIX, min_size=2, max_size=5), min_size=1, max_size=4)
"""Tables by person: (time, lon, lat) at five decimals."""


def columns(source, *names):
    """Rows of these columns; all of them if none is named."""
    names = names or source.names
    positions = [source.names.index(name) for name in names]
    loaded = source.load(positions)
    return list(zip(*(loaded.columns[at].to_pylist() for at in positions), strict=True))


def left_out(source):
    """Count and numbers of the points that are no rows, by cause."""
    found = source.load([]).set_aside
    return {cause: (rows.count, rows.lines) for cause, rows in found.items()}


def as_rows(journeys):
    return [(person, *fix) for person, fixes in journeys.items() for fix in fixes]


def outcomes(open_document, document, count=300, seed=0):
    """How many damaged copies of a document were read and refused, nothing else happening."""
    chance = random.Random(seed)
    refusals = []
    for _ in range(count):
        try:
            source = open_document(damaged(document, chance), "damaged")
            source.load(range(len(source.names)))
        except InputError as refusal:
            refusals.append(str(refusal))
    assert all(text.endswith(".") and text.isprintable() for text in refusals)
    return count - len(refusals), len(refusals)


def damaged(document, chance):
    """A copy with flipped bits, a missing end, or a slice that is doubled, dropped or moved."""
    copy = bytearray(document)
    for _ in range(chance.randint(1, 3)):
        kind = chance.randrange(5)
        start, end = sorted(chance.randrange(len(copy) + 1) for _ in range(2))
        if kind == 0 and copy:
            copy[chance.randrange(len(copy))] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del copy[end:]
        elif kind == 2:
            copy[start:start] = copy[start:end]
        elif kind == 3:
            del copy[start : start + 9]
        else:
            copy[start:start] = chance.choice(
                (b"\0", b"<", b"[[[[", b"{", b'"', b"&a;", b"1e999", b"\xff\xfe", b"\\ud800")
            )
    return bytes(copy)
