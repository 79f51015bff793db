"""OpenID provider for tests: a real HTTP server with discovery, consent, signed id tokens, keys and user info."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, SECRET = "llm-eval", "the-secret-of-the-client"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Provider:
    """A running provider. Change its attributes to change its answers.

    claims: of the person who signs in; `id_token` and `userinfo` are added to the claims of one of the two. error: the
    code with which it refuses consent. key: what signs id tokens. failing: paths that get status 503.
    """

    url: str
    claims: dict[str, Any] = field(default_factory=dict)
    id_token: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    error: str = ""
    key: rsa.RSAPrivateKey = KEY
    algorithm: str = "RS256"
    failing: set[str] = field(default_factory=set)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
        names |= {"userinfo_endpoint": "userinfo", "end_session_endpoint": "logout"}
        methods = {"token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"]}
        return {"issuer": self.url, **{n: f"{self.url}/{p}" for n, p in names.items()}, **methods, **self.metadata}

    def jwks(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}

    def signed(self, nonce: str) -> str:
        now = int(time.time())
        times = {"iat": now, "exp": now + 300}
        claims = {"iss": self.url, "aud": CLIENT_ID, "nonce": nonce, **times, **self.claims, **self.id_token}
        claims = {name: value for name, value in claims.items() if value is not None}
        key = self.key if self.algorithm.startswith("RS") else "x" * 64
        return jwt.encode(claims, key, algorithm=self.algorithm, headers={"kid": "one"})


@contextmanager
def openid_provider() -> Iterator[Provider]:
    """Serve until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, query = urlsplit(self.path).path, urlsplit(self.path).query
            sent = {name: values[0] for name, values in parse_qs(query).items()}
            provider.requests.append((path, sent))
            if path in provider.failing:
                self.answer(503, {"error": "busy"})
            elif path == "/.well-known/openid-configuration":
                self.answer(200, provider.document())
            elif path == "/authorize":
                self.authorize(sent)
            elif path == "/jwks":
                self.answer(200, provider.jwks())
            elif path == "/userinfo" and self.headers["Authorization"] == "Bearer the-access-token":
                self.answer(200, {**provider.claims, **provider.userinfo})
            else:
                self.answer(404, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            sent = {name: values[0] for name, values in parse_qs(body).items()}
            provider.requests.append((self.path, {**sent, "authorization": self.headers["Authorization"] or ""}))
            if self.path in provider.failing:
                return self.answer(503, {"error": "busy"})
            asked = provider.codes.pop(sent.get("code", ""), None)
            verifier = hashlib.sha256(sent.get("code_verifier", "").encode()).digest()
            challenge = base64.urlsafe_b64encode(verifier).rstrip(b"=").decode()
            basic = "Basic " + base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
            known = sent.get("client_secret") == SECRET or self.headers["Authorization"] == basic
            if asked is None or not known or asked["code_challenge"] != challenge:
                return self.answer(400, {"error": "invalid_grant"})
            if sent["redirect_uri"] != asked["redirect_uri"]:
                return self.answer(400, {"error": "invalid_grant"})
            token = provider.signed(asked["nonce"])
            return self.answer(200, {"access_token": "the-access-token", "token_type": "Bearer", "id_token": token})

        def authorize(self, sent: dict[str, str]) -> None:
            """Redirect back at once, as a provider does at which the person is signed in."""
            answer = {"state": sent["state"]}
            if provider.error:
                answer["error"] = provider.error
            else:
                answer["code"] = secrets.token_hex(8)
                provider.codes[answer["code"]] = sent
            self.send_response(302)
            self.send_header("Location", f"{sent['redirect_uri']}?{urlencode(answer)}")
            self.end_headers()

        def answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
