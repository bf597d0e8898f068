"""Certificates for tests, good ones and bad ones, each in a file with its key. Nobody trusts them by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Issued:
    """A certificate, its key, and the file with both."""

    made: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    pem: Path


def issue(pem: Path, name: str, *, by: Issued | None = None, expired: bool = False) -> Issued:
    """For the server `name`. By nobody: it is its own authority, and may issue others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    until = datetime.now(UTC) + (-DAY if expired else DAY)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.made.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - 2 * DAY)
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None if by else 0), critical=True)
        .sign(by.key if by else key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return Issued(made, key, pem)
