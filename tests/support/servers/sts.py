"""A stand-in for Amazon's STS, of which no server is to be had: it takes a token, and gives a key that soon expires.

A process of its own: delta-rs waits for answers without letting other Python threads run. The S3 server is
told of the last few alone, so that whoever keeps an old one is refused. The session token is empty: versitygw takes
none.
"""

import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from support.servers.ports import free_ports
from support.servers.s3 import S3Server

__all__ = ["LIFE_SECONDS", "ROLE", "Sts", "running_sts"]

ROLE: Final = "arn:aws:iam::123456789012:role/lakewarden"
_ANSWER: Final = """\
<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult>
<AssumedRoleUser><Arn>{role}/s</Arn><AssumedRoleId>AROA:s</AssumedRoleId></AssumedRoleUser>
<Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>
<SessionToken></SessionToken><Expiration>{expiration}</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
</AssumeRoleWithWebIdentityResponse>"""
LIFE_SECONDS: Final = 2
"""Of a key."""
_AT_ONCE: Final = 3
"""So many of its keys are valid: who has just asked may not be refused because somebody else did."""


@dataclass(frozen=True, kw_only=True)
class Sts:
    """A running one. `asked` holds the token of each call, a line each."""

    endpoint: str
    asked: Path
    certificate: Path

    def tokens(self) -> list[str]:
        """What was shown to it, call by call."""
        return self.asked.read_text().splitlines() if self.asked.exists() else []


@contextmanager
def running_sts(folder: Path, s3: S3Server) -> Iterator[Sts]:
    """Start it in `folder`, by TLS with a certificate of its own; its keys are for `s3`. It ends with the block."""
    certificate, key = folder / "sts.pem", folder / "sts.key"
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    named = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    not_an_authority = ("-addext", "basicConstraints=critical,CA:FALSE")
    subprocess.run(
        [*made, *named, *not_an_authority, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    port, asked = free_ports(1)[0], folder / "asked"
    command = [sys.executable, __file__, *map(str, (port, asked, s3.accounts, certificate, key))]
    path = os.pathsep.join(filter(None, sys.path))
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield Sts(endpoint=f"https://localhost:{port}", asked=asked, certificate=certificate)
        finally:
            process.terminate()


def _serve(port: int, asked: Path, accounts: Path, certificate: Path, key: Path) -> None:
    s3 = S3Server(endpoint="", folder=Path(), accounts=accounts)
    count = 0

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            nonlocal count
            # delta-rs says it in the address, Amazon's own libraries in the body.
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            told = parse_qs(body or urlsplit(self.path).query)
            if told["Action"] != ["AssumeRoleWithWebIdentity"] or told["RoleArn"] != [ROLE]:
                self.send_error(400)
                return
            with asked.open("a") as lines:
                lines.write(f"{told['WebIdentityToken'][0]}\n")
            name, secret = f"issued-{count}", f"issued-secret-{count}"
            s3.let_in(name, secret)
            if count >= _AT_ONCE:
                s3.shut_out(f"issued-{count - _AT_ONCE}")
            count += 1
            expiration = (datetime.now(UTC) + timedelta(seconds=LIFE_SECONDS)).strftime("%Y-%m-%dT%H:%M:%SZ")
            answer = _ANSWER.format(role=ROLE, key=name, secret=secret, expiration=expiration).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing: `asked` has it."""

    server = HTTPServer(("127.0.0.1", port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), *map(Path, sys.argv[2:6]))
