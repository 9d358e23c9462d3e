from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.testclient import TestClient

from ui.served import HEADERS, WithHeaders, being_served, server

ROOT = Path(__file__).resolve().parents[2]


def told(scope: dict[str, Any], *answer: dict[str, Any]) -> list[dict[str, Any]]:
    """What goes out when the program within sends this answer."""
    sent = []

    async def program(scope: Any, receive: Any, send: Any) -> None:
        for message in answer:
            await send(message)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(WithHeaders(program)(scope, None, send))
    return sent


def test_headers_are_added_once_and_others_stay():
    start = {"type": "http.response.start", "status": 404,
             "headers": [(b"X-Frame-Options", b"ALLOWALL"), (b"etag", b"1")]}  # fmt: skip
    body = {"type": "http.response.body", "body": b"x"}
    first, second = told({"type": "http"}, start, body)
    assert first["status"] == 404
    names = [name for name, _ in first["headers"]]
    assert names == [b"etag", *(name.lower().encode() for name in HEADERS)]
    assert dict(first["headers"])[b"x-frame-options"] == b"SAMEORIGIN"
    assert second == body
    assert len(start["headers"]) == 2


def test_a_websocket_is_left_as_it_is():
    accepted = {"type": "websocket.accept", "headers": []}
    assert told({"type": "websocket"}, accepted) == [accepted]


def test_no_page_is_run_here():
    assert not being_served()


def test_every_answer_of_the_server_has_them():
    with TestClient(st.App(**server(str(ROOT / "app.py")))) as client:
        for path in ("/", "/Flows", "/_stcore/health", "/media/none", "/a/../b", "/_stcore/none"):
            answer = client.get(path)
            assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, path
