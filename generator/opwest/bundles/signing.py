# SPDX-License-Identifier: Apache-2.0
"""Ed25519 signatures, by the package `cryptography`, which is imported on use."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opwest.base import commands
from opwest.base.diagnostics import Diagnostics, Location, fail
from opwest.base.result import counted
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
        raise fail(message, hint=commands.pip_install(PACKAGE)) from error


def read_private_keys(paths: Sequence[Path], faults: Diagnostics) -> list[Ed25519PrivateKey]:
    """Return the keys of PEM files (PKCS #8); report every unusable file."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    keys: list[Ed25519PrivateKey] = []
    for path, data in _contents(paths, faults):
        message, expected = "not a private key in PEM", "a private key of Ed25519 (PKCS #8, PEM), not encrypted"
        hint = f"create one: {_NEW_KEY}"
        try:
            key = load_pem_private_key(data, None)
            message, expected = "a private key of another algorithm", "a private key of Ed25519 (PKCS #8, PEM)"
        except TypeError:
            key, message, hint = None, "the private key is encrypted", "decrypt it for the run: openssl pkey -in FILE"
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if isinstance(key, Ed25519PrivateKey):
            keys.append(key)
        else:
            faults.error(message, Location(str(path)), expected=expected, hint=hint)
    return keys


def read_public_keys(paths: Sequence[Path], faults: Diagnostics) -> list[Ed25519PublicKey]:
    """Return the keys of PEM files; a file with a private key has the public one. Report every unusable file."""
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    keys: list[Ed25519PublicKey] = []
    for path, data in _contents(paths, faults):
        key: object = None
        with contextlib.suppress(ValueError, TypeError, UnsupportedAlgorithm):
            is_private = b"PRIVATE KEY" in data
            key = load_pem_private_key(data, None) if is_private else load_pem_public_key(data)
        if isinstance(key, Ed25519PrivateKey):
            key = key.public_key()
        if isinstance(key, Ed25519PublicKey):
            keys.append(key)
        else:
            expected, hint = "a public key of Ed25519 (PEM)", f"write one: {_PUBLIC}"
            faults.error("not a key of Ed25519 in PEM", Location(str(path)), expected=expected, hint=hint)
    return keys


def _contents(paths: Sequence[Path], faults: Diagnostics) -> Iterator[tuple[Path, bytes]]:
    """Yield the files of keys with their contents; report those that cannot be read or are too large."""
    for path in paths:
        try:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError as error:
            faults.error(f"cannot read the key: {error.strerror}", Location(str(path)))
            continue
        if len(data) > _MAX_BYTES:
            faults.error(f"the file of a key has more than {_MAX_BYTES} bytes", Location(str(path)))
        else:
            yield path, data


def key_id(key: bytes) -> bytes:
    """Return the bytes that identify a public key of 32 bytes."""
    return hashlib.sha512(key).digest()[:_KEY_ID]


def sign(signed: bytes, keys: Sequence[Ed25519PrivateKey], earlier: Sequence[Signature] = ()) -> list[Signature]:
    """Return the signatures of all keys, after `earlier` ones by other keys. Raises OpwestError for too many."""
    own = {key_id(key.public_key().public_bytes_raw()): key for key in keys}
    kept = [signature for signature in earlier if signature.key not in own]
    made = [Signature(name, key.sign(signed)) for name, key in own.items()]
    if len(kept) + len(made) > MAX_SIGNATURES:
        raise fail(
            f"the bundle would have {counted(len(kept) + len(made), 'signature')}", expected=f"at most {MAX_SIGNATURES}"
        )
    return [*kept, *made]


def valid_keys(bundle: Bundle, keys: Sequence[Ed25519PublicKey]) -> list[int]:
    """Return the indices of the keys with a valid signature of the bundle."""
    from cryptography.exceptions import InvalidSignature

    indices = []
    for index, key in enumerate(keys):
        name = key_id(key.public_bytes_raw())
        for signature in bundle.signatures:
            if signature.key == name:
                with contextlib.suppress(InvalidSignature):
                    key.verify(signature.value, bundle.signed)
                    indices.append(index)
                    break
    return indices


def c_initialiser(key: bytes) -> str:
    """Return a public key as the initialiser of a struct opwest_bundle_key."""
    rows = [", ".join(f"0x{byte:02x}" for byte in key[start : start + 8]) for start in range(0, len(key), 8)]
    return "{{\n\t" + ",\n\t".join(rows) + ",\n}}"
