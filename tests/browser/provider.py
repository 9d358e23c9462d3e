"""A provider of identities on this machine (OpenID Connect), which asks nobody for a password."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.browser.server import HOST

__all__ = ["CLIENT", "Provider", "provider"]

CLIENT = "flows"


@dataclass
class Provider:
    """Where it is, and who signs in next."""

    address: str
    who: str = "anna"
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "1"}))
    nonces: dict[str, str] = field(default_factory=dict)

    def secrets(self, app_url: str) -> str:
        """What the server of the app needs to know (secrets.toml)."""
        values = {
            "redirect_uri": f"{app_url}/oauth2callback",
            "cookie_secret": "a text that nobody else knows, long enough",
            "client_id": CLIENT,
            "client_secret": "between the two of them",
            "server_metadata_url": f"{self.address}/.well-known/openid-configuration",
        }
        return "[auth]\n" + "".join(f'{name} = "{value}"\n' for name, value in values.items())

    def metadata(self) -> dict[str, Any]:
        """What it says of itself."""
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/keys",
            "id_token_signing_alg_values_supported": ["RS256"],
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
        }

    def token(self, code: str) -> dict[str, Any]:
        """Who the person with a code is, signed."""
        now = int(time.time())
        claims = {
            "iss": self.address, "sub": code, "aud": CLIENT, "iat": now, "exp": now + 600,
            "nonce": self.nonces.get(code, ""), "name": code.title(),
        }  # fmt: skip
        signed = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.key)
        return {"access_token": "none", "token_type": "Bearer", "id_token": signed}


@contextmanager
def provider() -> Iterator[Provider]:
    """Run one until the end of the block."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
                found.nonces[found.who] = asked.get("nonce", "")
                back = urlencode({"code": found.who, "state": asked["state"]})
                self.send_response(302)
                self.send_header("Location", f"{asked['redirect_uri']}?{back}")
                self.end_headers()
            elif parts.path == "/keys":
                self._tell({"keys": [found.key.as_dict(private=False)]})
            else:
                self._tell(found.metadata())

        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            asked = parse_qs(self.rfile.read(size).decode())
            self._tell(found.token(asked["code"][0]))

        def _tell(self, values: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(values).encode())

        def log_message(self, *said: object) -> None:
            pass

    with ThreadingHTTPServer((HOST, 0), Answers) as server:
        found = Provider(f"http://{HOST}:{server.server_port}")
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield found
        server.shutdown()
        serving.join()
