# SPDX-License-Identifier: Apache-2.0
"""Write the C array of the public keys that firmware trusts: in the build, with CONFIG_OPWEST_BUNDLE_KEYS.

Reads PEM files (RFC 7468) with one or more Ed25519 public keys as SubjectPublicKeyInfo (RFC 8410, section 4). It
requires Python 3.8 and the standard library only.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import re
import sys
from collections.abc import Sequence
from pathlib import Path

PREFIX = bytes.fromhex("302a300506032b6570032100")
"""The DER encoding of SubjectPublicKeyInfo with Ed25519 (1.3.101.112), before the 32 bytes of the key."""
KEY_BYTES = 32
MAX_KEYS = 255
EXPECTED = "a PEM file with Ed25519 public keys (-----BEGIN PUBLIC KEY-----)"
HINT = "write the public key of a pair with: openssl pkey -in private.pem -pubout -out public.pem"
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)


class KeyFileError(Exception):
    """A file without usable keys: what was found."""


def keys_of(text: str) -> list[bytes]:
    """Return the keys in the text of a PEM file, 32 bytes each."""
    keys = []
    blocks = _BLOCK.findall(text)
    if text.count("-----BEGIN ") != len(blocks):
        raise KeyFileError("incomplete PEM block")
    for label, body in blocks:
        if "PRIVATE KEY" in label:
            raise KeyFileError("found a private key: firmware contains only public keys")
        if label != "PUBLIC KEY":
            raise KeyFileError(f"found '{label}'")
        try:
            der = base64.b64decode("".join(body.split()), validate=True)
        except binascii.Error as error:
            raise KeyFileError(f"damaged base64: {error}") from error
        if len(der) != len(PREFIX) + KEY_BYTES or not der.startswith(PREFIX):
            raise KeyFileError("found a public key of another algorithm")
        keys.append(der[len(PREFIX) :])
    if not keys:
        raise KeyFileError("found no PEM block")
    return keys


def header_of(count: int) -> str:
    """Return the text of opwest/bundle_keys.h."""
    return f"""\
/* SPDX-License-Identifier: Apache-2.0 */
/* Written by the build: the files of CONFIG_OPWEST_BUNDLE_KEYS. */
#ifndef OPWEST_BUNDLE_KEYS_H_
#define OPWEST_BUNDLE_KEYS_H_

#include <opwest/bundle_format.h>

/** The number of keys. */
#define OPWEST_BUNDLE_KEY_COUNT {count}U

/** The trusted keys. */
extern const struct opwest_bundle_key opwest_bundle_keys[OPWEST_BUNDLE_KEY_COUNT];

#endif /* OPWEST_BUNDLE_KEYS_H_ */
"""


def source_of(keys: Sequence[tuple[str, bytes]]) -> str:
    """Return the text of the C file; each key has the name of its file."""
    rows = []
    for name, key in keys:
        numbers = [f"0x{byte:02x}," for byte in key]
        lines = [" ".join(numbers[i : i + 8]) for i in range(0, KEY_BYTES, 8)]
        rows.append(f"\t/* {name} */\n\t{{{{" + "\n\t  ".join(lines)[:-1] + "}},\n")
    return (
        "/* SPDX-License-Identifier: Apache-2.0 */\n#include <opwest/bundle_keys.h>\n\n"
        "const struct opwest_bundle_key opwest_bundle_keys[OPWEST_BUNDLE_KEY_COUNT] = {\n" + "".join(rows) + "};\n"
    )


def main() -> int:
    """Write the files; report every file that has no usable keys."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--header", required=True, type=Path)
    parser.add_argument("--source", required=True, type=Path)
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args()
    keys: list[tuple[str, bytes]] = []
    failed = False
    for path in given.files:
        try:
            keys += [(path.name, key) for key in keys_of(path.read_text(encoding="ascii"))]
        except (OSError, UnicodeDecodeError, KeyFileError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            reason = "not a text file" if isinstance(error, UnicodeDecodeError) else reason
            print(f"{path}: error: cannot read '{path.name}': {reason}", file=sys.stderr)
            print(f"  expected: {EXPECTED}\n  hint: {HINT}", file=sys.stderr)
            failed = True
    values = [key for _, key in keys]
    for index, (name, key) in enumerate(keys):
        if key in values[:index]:
            print(f"{name}: error: duplicate key {key.hex()}", file=sys.stderr)
            failed = True
    if len(keys) > MAX_KEYS:
        print(f"error: found {len(keys)} keys\n  expected: {MAX_KEYS} or less", file=sys.stderr)
        failed = True
    if failed:
        return 1
    given.header.parent.mkdir(parents=True, exist_ok=True)
    for path, text in ((given.header, header_of(len(keys))), (given.source, source_of(keys))):
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # a newer file would be compiled again
            path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
