# SPDX-License-Identifier: Apache-2.0
"""Ed25519 signatures, by the package `cryptography`, which is imported on use."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opwest.base import commands
from opwest.base.diagnostics import Diagnostic, Diagnostics, Location, OpwestError
from opwest.bundles.format import MAX_SIGNATURES, Bundle, Signature

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PACKAGE = "cryptography>=42"
"""The extra `bundle` of pyproject.toml, which requirements.txt of the Zephyr module lacks: signing builds are few."""
_KEY_ID = 8
"""Bytes that identify a key."""
_MAX_BYTES = 1 << 16
"""Bytes of a file with a key."""
_NEW_KEY = "openssl genpkey -algorithm ed25519 -out key.pem"
_PUBLIC = "openssl pkey -in key.pem -pubout -out public.pem"


def require_cryptography() -> None:
    """Raise OpwestError unless the package `cryptography` is installed."""
    try:
        import cryptography.hazmat.primitives.asymmetric.ed25519  # noqa: F401
    except ImportError as error:
        message = "signatures require the package 'cryptography', which is not installed"
        raise OpwestError([Diagnostic("error", message, hint=commands.pip_install(PACKAGE))]) from error


def read_private_keys(paths: Sequence[Path], faults: Diagnostics) -> list[Ed25519PrivateKey]:
    """Return the keys of PEM files (PKCS #8); report every unusable file."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found: list[Ed25519PrivateKey] = []
    for path in paths:
        data = _read(path, faults)
        if data is None:
            continue
        try:
            key = load_pem_private_key(data, None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            encrypted = isinstance(error, TypeError)
            faults.error(
                "the private key is encrypted" if encrypted else "not a private key in PEM",
                Location(str(path)),
                expected="a private key of Ed25519 (PKCS #8, PEM), not encrypted",
                hint="decrypt it for the run: openssl pkey -in FILE" if encrypted else f"create one: {_NEW_KEY}",
            )
            continue
        if not isinstance(key, Ed25519PrivateKey):
            faults.error(
                "a private key of another algorithm",
                Location(str(path)),
                expected="a private key of Ed25519 (PKCS #8, PEM)",
                hint=f"create one: {_NEW_KEY}",
            )
            continue
        found.append(key)
    return found


def read_public_keys(paths: Sequence[Path], faults: Diagnostics) -> list[Ed25519PublicKey]:
    """Return the keys of PEM files; a file with a private key has the public one. Report every unusable file."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    found: list[Ed25519PublicKey] = []
    for path in paths:
        data = _read(path, faults)
        if data is None:
            continue
        key: object = None
        try:
            is_private = b"PRIVATE KEY" in data
            key = load_pem_private_key(data, None) if is_private else load_pem_public_key(data)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if isinstance(key, Ed25519PrivateKey):
            key = key.public_key()
        if not isinstance(key, Ed25519PublicKey):
            faults.error(
                "not a key of Ed25519 in PEM",
                Location(str(path)),
                expected="a public key of Ed25519 (PEM)",
                hint=f"write one: {_PUBLIC}",
            )
            continue
        found.append(key)
    return found


def _read(path: Path, faults: Diagnostics) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        faults.error(f"cannot read the key: {error.strerror}", Location(str(path)))
        return None
    if len(data) > _MAX_BYTES:
        faults.error(f"the file of a key has more than {_MAX_BYTES} bytes", Location(str(path)))
        return None
    return data


def raw_key(key: Ed25519PublicKey) -> bytes:
    """Return the 32 bytes of a public key."""
    return key.public_bytes_raw()


def key_id(key: bytes) -> bytes:
    """Return the bytes that identify a public key of 32 bytes."""
    return hashlib.sha512(key).digest()[:_KEY_ID]


def sign(signed: bytes, keys: Sequence[Ed25519PrivateKey], earlier: Sequence[Signature] = ()) -> list[Signature]:
    """Return the signatures of all keys over the signed part, after `earlier` ones by other keys.

    Raises OpwestError for too many.
    """
    own = {key_id(raw_key(key.public_key())): key for key in keys}
    kept = [one for one in earlier if one.key not in own]
    made = [Signature(name, key.sign(signed)) for name, key in own.items()]
    if len(kept) + len(made) > MAX_SIGNATURES:
        message = f"the bundle would have {len(kept) + len(made)} signatures"
        raise OpwestError([Diagnostic("error", message, expected=f"at most {MAX_SIGNATURES}")])
    return [*kept, *made]


def valid_keys(bundle: Bundle, keys: Sequence[Ed25519PublicKey]) -> list[int]:
    """Return the indices of the keys with a valid signature of the bundle."""
    from cryptography.exceptions import InvalidSignature

    found = []
    for index, key in enumerate(keys):
        name = key_id(raw_key(key))
        for signature in bundle.signatures:
            if signature.key != name:
                continue
            try:
                key.verify(signature.value, bundle.signed)
            except InvalidSignature:
                continue
            found.append(index)
            break
    return found


def c_initialiser(key: bytes) -> str:
    """Return a public key as the initialiser of a struct opwest_bundle_key."""
    rows = [", ".join(f"0x{byte:02x}" for byte in key[start : start + 8]) for start in range(0, len(key), 8)]
    return "{{\n\t" + ",\n\t".join(rows) + ",\n}}"
