# SPDX-License-Identifier: Apache-2.0
"""Bundles of the digits example, the package of tests/zephyr/programs/bundles, and its runs in QEMU."""

import base64
import hashlib
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from digits_support import of_sources
from in_process import succeed
from requirements_support import need
from zephyr_support import ROOT, Built, console_of

PROGRAM = ROOT / "tests" / "zephyr" / "programs" / "bundles"
MACHINES = {
    "mps2/an385": ["-M", "mps2-an385"],
    "mps3/corstone300/an547": ["-M", "mps3-an547", "-cpu", "cortex-m55"],
}
FLASH = {"mps2/an385": 0x2100_0000, "mps3/corstone300/an547": 0x6000_0000}
TARGETS = {"mps2/an385": "cortex-m3", "mps3/corstone300/an547": "cortex-m55"}
"""The targets of the bundles: the float ABI is that of Zephyr without CONFIG_FPU."""
SLOT_SIZE = 0x4_0000
PACKAGE_OFFSET = 0x80_0000
ADDED_IN_QEMU = ["-icount", "shift=6,align=off,sleep=off", "-rtc", "clock=vm"]
"""Zephyr's options for a counter of instructions; each one takes 64 ns."""
_PKCS8 = bytes.fromhex("302e020100300506032b657004220420")
SEEDS = {
    "trusted": "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "next": "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    "other": "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
}
"""The private keys of RFC 8032, section 7.1; the program trusts the first two."""


def slots_of(board):
    """Return the file with the slots of a board, that of the example two_models_ota."""
    return ROOT / "examples" / "two_models_ota" / "application" / "boards" / f"{board.replace('/', '_')}.overlay"


def private_key(folder, name):
    """Write a private key as PEM."""
    body = base64.b64encode(_PKCS8 + bytes.fromhex(SEEDS[name])).decode()
    path = folder / f"{name}.pem"
    path.write_text(f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
    return path


def digits_model(folder, rolled=0):
    """Write the digits example with its operators in C; `rolled` is added to each label, modulo 10."""
    manifest = of_sources(folder)
    parameters = dict(np.load(folder / "parameters.npz"))
    vectors = dict(np.load(folder / "vectors.npz"))
    for name in ("dense_weight", "dense_bias"):
        parameters[name] = np.roll(parameters[name], rolled, axis=0)
    vectors["label"] = ((vectors["label"] + rolled) % 10).astype(vectors["label"].dtype)
    np.savez(folder / "parameters.npz", **parameters)
    np.savez(folder / "vectors.npz", **vectors)
    return manifest


def bundle(*arguments):
    """Run `opwest bundle ... -o FILE`; return the file."""
    need("cryptography")
    succeed("bundle", *arguments)
    return Path(str(arguments[arguments.index("-o") + 1]))


def held_out_cases(rolled=0):
    """Return the 360 images that were not used for training, with the predictions of the reference."""
    text = (ROOT / "examples" / "digits" / "application" / "held_out.h").read_text()
    found = re.findall(r'\{"([a-q]{64})", \d, (\d)\}', text)
    assert len(found) == 360
    inputs = b"".join(bytes(ord(pixel) - ord("a") for pixel in pixels) for pixels, _ in found)
    labels = struct.pack("<360i", *((int(label) + rolled) % 10 for _, label in found))
    return struct.pack("<4I", len(found), 64, 4, 0) + inputs + labels


def package_of(script, parts):
    """Return the script and the parts of a run in one file, behind a table of their places."""
    table, content = [], b""
    start = 8 + 8 * (1 + len(parts))
    for part in (script.encode(), *parts):
        content += bytes(-(start + len(content)) % 64)
        table.append((start + len(content), len(part)))
        content += part
    return struct.pack("<2I", 0x5057_504F, len(table)) + b"".join(struct.pack("<2I", *row) for row in table) + content


@dataclass
class Board:
    """The program of a board."""

    name: str
    built: Built

    def slot(self, index):
        return f"{FLASH[self.name] + index * SLOT_SIZE:#x}:{SLOT_SIZE:#x}"

    def run(self, script, parts, *options, seconds=120):
        """Run a script; return the lines that it prints."""
        content = package_of(script, parts)
        package = self.built.folder / f"package-{hashlib.sha256(content).hexdigest()[:12]}.bin"
        package.write_bytes(content)
        loader = f"loader,file={package},addr={FLASH[self.name] + PACKAGE_OFFSET:#x},force-raw=on"
        return run_image(self.name, self.built.elf, "^END$", "-device", loader, *options, seconds=seconds)


def run_image(board, elf, until, *options, seconds=120):
    """Run an image in QEMU up to a line; return its lines."""
    need("qemu-system-arm")
    command = ["qemu-system-arm", *MACHINES[board], "-nographic", "-kernel", str(elf), *options]
    console = console_of(command, until, seconds)
    return [line for line in console.splitlines() if not line.startswith("***")]


def signed_again(content, offset=0, form="", value=0, seed="trusted"):
    """Return a bundle with another number in its header, signed with one key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    changed = bytearray(content)
    if form:
        struct.pack_into(form, changed, offset, value)
    (length,) = struct.unpack_from("<I", changed, 8)
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(SEEDS[seed]))
    changed[length + 8 : length + 16] = hashlib.sha512(key.public_key().public_bytes_raw()).digest()[:8]
    changed[length + 24 : length + 88] = key.sign(bytes(changed[:length]))
    return bytes(changed)
