from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import streamlit as st

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


async def answers(paths: list[str]) -> dict[str, dict[str, str]]:
    """Headers of what the server answers, by path."""
    app, found = st.App(**server(str(ROOT / "app.py"))), {}
    for path in paths:
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
            "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": b"",
            "root_path": "", "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8501),
        }  # fmt: skip

        asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive(asked: Iterator[dict[str, Any]] = asked) -> dict[str, Any]:
            for message in asked:
                return message
            return await asyncio.Future()  # nobody goes away

        async def send(message: Any, path: str = path) -> None:
            if message["type"] == "http.response.start":
                pairs = message["headers"]
                found[path] = {name.decode().lower(): text.decode() for name, text in pairs}

        await app(scope, receive, send)
    return found


def test_every_answer_of_the_server_has_them():
    paths = ["/", "/Flows", "/_stcore/health", "/media/none", "/a/../b", "/_stcore/none"]
    found = asyncio.run(answers(paths))
    assert list(found) == paths
    for path, headers in found.items():
        assert {name: headers.get(name.lower()) for name in HEADERS} == HEADERS, path
