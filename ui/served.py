"""The server that `streamlit run app.py` starts: Streamlit's own, with headers on every answer."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

from streamlit.runtime.scriptrunner import get_script_run_ctx

from agg_core.base.logs import begin_log
from agg_core.base.memory import tidy_up

__all__ = ["HEADERS", "WithHeaders", "being_served", "server"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Program = Callable[[Message, Receive, Send], Awaitable[None]]

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
"""What every answer says: no page of another origin frames ours, no browser guesses a type, and no
other server is told an address of ours, which may name a run."""


class WithHeaders:
    """A program of the server (ASGI) whose answers have `HEADERS`."""

    def __init__(self, program: Program) -> None:
        self.program = program

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request; a websocket has no headers that a browser heeds."""
        if scope["type"] != "http":
            await self.program(scope, receive, send)
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = {name.lower().encode(): text.encode() for name, text in HEADERS.items()}
                others = [pair for pair in message["headers"] if pair[0].lower() not in ours]
                message = {**message, "headers": [*others, *ours.items()]}
            await send(message)

        await self.program(scope, receive, told)


def being_served() -> bool:
    """Whether a page is run for a session now; otherwise its server is yet to start."""
    return get_script_run_ctx(suppress_warning=True) is not None


def server(script: str) -> dict[str, Any]:
    """What `streamlit.App` takes to serve a script with `HEADERS`; from here on events are kept."""
    begin_log(os.environ)
    tidy_up()  # of what the modules hold nothing is ever free: runs of pages need not look at it
    # Starlette takes what its Middleware is: a class, its arguments, and those by name.
    return {"script_path": script, "middleware": cast(Any, [(WithHeaders, (), {})])}
