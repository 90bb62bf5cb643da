"""A relay node in its own process, and the certificate and tokens it needs."""

from __future__ import annotations

import asyncio
import datetime
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tabhub.cli import main
from tests.harness.process import tabhub

_URL = re.compile(rb"is running on (wss?://127\.0\.0\.1:\d+)")


@asynccontextmanager
async def relay_process(home: Path, *words: str) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    process = await tabhub(home, "relay", "start", "--port", "0", *words)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            first = await process.stdout.readline()
        found = _URL.search(first)
        assert found is not None, first
        yield found[1].decode(), process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


def issue_token(capsys: pytest.CaptureFixture[str], key: Path, *words: str) -> str:
    assert main(["relay", "token", "issue", "--user", "ann", "--key-file", str(key), *words]) == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    return out.strip()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "relay")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(private, hashes.SHA256())
    )
    cert, key = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(Encoding.PEM))
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return cert, key
