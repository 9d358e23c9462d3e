"""Days that a person names for learning from counts: holidays of a place, and labels of a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import streamlit as st

from agg_core.base.errors import InputError
from agg_core.base.options import options_of
from agg_core.base.report import printable
from agg_core.counts.public_holidays import country_names, part_names
from agg_core.io.day_labels import read_day_labels
from agg_core.study.settings import CountLearnSettings
from ui import cached
from ui.shell import plain, tell_fault
from ui.state import Dataset, state

__all__ = ["choose_holidays", "choose_named_days", "tell_named_days"]

TABLES = ("csv", "tsv", "txt", "xlsx", "xls", "parquet", "json")
MOST_MEGABYTES = 5

FAULT = "counts.day_labels.fault"
"""Why the last file of labels could not be used."""


def choose_named_days(learn: CountLearnSettings) -> CountLearnSettings:
    """Holidays of a country or a part of it, and a file of labels; returns what they say."""
    learn = replace(learn, holidays=choose_holidays(learn.holidays, "counts.holidays"))
    st.file_uploader(
        "Labels of days", TABLES, key="counts.day_labels", on_change=_take_labels,
        max_upload_size=MOST_MEGABYTES,
        help=f"{options_of(learn)['day_labels'].help} A table with the columns date and label; "
        "the file stays in this session, dates and labels are kept with what is learned.",
    )  # fmt: skip
    fault = st.session_state.get(FAULT)
    if fault is not None:
        tell_fault(fault)
    if learn.day_labels:
        numbers = Counter(label for _, label in learn.day_labels)
        listed = ", ".join(f"{printable(label)} ({n:,})" for label, n in sorted(numbers.items()))
        st.caption(plain(f"Labelled days: {listed}."))
        st.button(
            "Leave out the labels", key="counts.day_labels.drop", icon=":material/close:",
            type="tertiary", on_click=_drop_labels,
        )  # fmt: skip
    return learn


def choose_holidays(chosen: str | None, key: str) -> str | None:
    """A country, and a part of it where there are some, by controls of a key."""
    country, _, part = (chosen or "").partition("-")
    countries = country_names()
    options = ["", *countries]
    country = st.selectbox(
        "Holidays", options, options.index(country), key=key,
        help=options_of(CountLearnSettings)["holidays"].help,
        format_func=lambda code: f"{countries[code]} ({code})" if code else "Days like others",
    )  # fmt: skip
    parts = part_names(country) if country else {}
    if not parts:
        return country or None
    # Another country has other parts, and so a control of its own.
    of_country = ["", *sorted(parts, key=parts.__getitem__)]
    part = st.selectbox(
        "Part of the country", of_country, of_country.index(part) if part in of_country else 0,
        key=f"{key}.{country}",
        format_func=lambda code: f"{parts[code]} ({code})" if code else "The whole country",
    )  # fmt: skip
    return f"{country}-{part}" if part else country


def _take_labels() -> None:
    """Callback of the uploader: a file that cannot be used leaves the labels as they were."""
    upload, now = st.session_state.get("counts.day_labels"), state()
    st.session_state[FAULT] = None
    if upload is None:
        return
    try:
        labels = read_day_labels(upload.getvalue(), upload.name)
        now.count_learn = replace(now.count_learn, day_labels=labels)
    except InputError as fault:
        st.session_state[FAULT] = str(fault)


def _drop_labels() -> None:
    now = state()
    now.count_learn = replace(now.count_learn, day_labels=())


def tell_named_days(opened: Dataset, learn: CountLearnSettings) -> bool:
    """Say how many days of each type these counts have; False where they cannot be honoured."""
    if not learn.days.is_asked:
        return True
    try:
        found = cached.typed_days(opened.key, learn.days)
    except InputError as fault:
        tell_fault(str(fault))
        return False
    if found is not None:
        listed = ", ".join(
            f"{name} {len(days):,}" for name, days in zip(found.names, found.dates, strict=True)
        )
        st.caption(plain(" ".join([f"Days of each type: {listed}.", *found.sentences])))
    return True
