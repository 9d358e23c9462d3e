"""Owners: a session by itself, a person over all sessions."""

from __future__ import annotations

import re
from typing import Any

import pytest
import streamlit as st

from ui.owner import owner


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a session remembers, and nobody logged in."""
    kept: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", kept)
    monkeypatch.setattr(st, "user", {})
    return kept


def test_a_session_keeps_its_owner_and_another_has_another(session: dict[str, Any]) -> None:
    first = owner()
    assert re.fullmatch(r"[0-9a-f]{32}", first)
    assert owner() == first
    session.clear()
    assert owner() != first


def test_a_person_is_the_same_in_all_sessions_and_no_other_person(
    session: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def who(issuer: str, subject: str) -> str:
        monkeypatch.setattr(st, "user", {"is_logged_in": True, "iss": issuer, "sub": subject})
        session.clear()
        return owner()

    assert who("https://a", "1") == who("https://a", "1")
    assert len({who("https://a", "1"), who("https://a", "2"), who("https://b", "1")}) == 3
