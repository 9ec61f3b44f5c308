# SPDX-License-Identifier: Apache-2.0
"""Bundles of the digits example, the package of tests/zephyr/programs/bundles, and its runs in QEMU."""

import base64
import hashlib
import os
import re
import shutil
import struct
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from in_process import succeed
from requirements_support import need
from zephyr_support import ROOT, Built

PROGRAM = ROOT / "tests" / "zephyr" / "programs" / "bundles"
MACHINES = {
    "mps2/an385": ["-M", "mps2-an385"],
    "mps2_an385": ["-M", "mps2-an385"],
    "mps3/corstone300/an547": ["-M", "mps3-an547", "-cpu", "cortex-m55"],
}
FLASH = {"mps2/an385": 0x2100_0000, "mps2_an385": 0x2100_0000, "mps3/corstone300/an547": 0x6000_0000}
TARGETS = {"mps2/an385": "cortex-m3", "mps2_an385": "cortex-m3", "mps3/corstone300/an547": "cortex-m55"}
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


def private_key(folder: Path, name: str) -> Path:
    """Write a private key as PEM."""
    body = base64.b64encode(_PKCS8 + bytes.fromhex(SEEDS[name])).decode()
    path = folder / f"{name}.pem"
    path.write_text(f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
    return path


def digits_model(folder: Path, rolled: int = 0) -> Path:
    """Write the digits example with its operators in C; `rolled` is added to each label, modulo 10."""
    shutil.copytree(ROOT / "examples" / "digits", folder, ignore=shutil.ignore_patterns("objects", "__pycache__"))
    manifest = folder / "manifest.yaml"
    sources = ", ".join(f"operators/{path.name}" for path in sorted((folder / "operators").glob("*.c")))
    text, count = re.subn(
        r"^objects:\n(?: +\S.*\n)+", f"objects: [{{files: [{sources}]}}]\n", manifest.read_text(), flags=re.MULTILINE
    )
    assert count == 1
    manifest.write_text(text)
    parameters = dict(np.load(folder / "parameters.npz"))
    vectors = dict(np.load(folder / "vectors.npz"))
    for name in ("dense_weight", "dense_bias"):
        parameters[name] = np.roll(parameters[name], rolled, axis=0)
    vectors["label"] = ((vectors["label"] + rolled) % 10).astype(vectors["label"].dtype)
    np.savez(folder / "parameters.npz", **parameters)
    np.savez(folder / "vectors.npz", **vectors)
    return manifest


def bundle(*arguments: object) -> Path:
    """Run `opwest bundle ... -o FILE`; return the file."""
    need("cryptography")
    succeed("bundle", *arguments)
    return Path(str(arguments[arguments.index("-o") + 1]))


def held_out_cases(rolled: int = 0) -> bytes:
    """Return the 360 images that were not used for training, with the predictions of the reference."""
    text = (ROOT / "examples" / "digits" / "application" / "held_out.h").read_text()
    found = re.findall(r'\{"([a-q]{64})", \d, (\d)\}', text)
    assert len(found) == 360
    inputs = b"".join(bytes(ord(pixel) - ord("a") for pixel in pixels) for pixels, _ in found)
    labels = struct.pack("<360i", *((int(label) + rolled) % 10 for _, label in found))
    return struct.pack("<4I", len(found), 64, 4, 0) + inputs + labels


def write_package(path: Path, script: str, parts: Sequence[bytes]) -> None:
    """Write the script and the parts of a run."""
    whole = [script.encode(), *parts]
    table, content = [], b""
    start = 8 + 8 * len(whole)
    for part in whole:
        content += bytes(-(start + len(content)) % 64)
        table.append((start + len(content), len(part)))
        content += part
    head = struct.pack("<2I", 0x5057_504F, len(whole)) + b"".join(struct.pack("<2I", *row) for row in table)
    path.write_bytes(head + content)


@dataclass
class Board:
    """The program of a board."""

    name: str
    built: Built

    @property
    def elf(self) -> Path:
        return self.built.folder / "zephyr" / "zephyr.elf"

    def slot(self, index: int) -> str:
        return f"{FLASH[self.name] + index * SLOT_SIZE:#x}:{SLOT_SIZE:#x}"

    def run(self, script: str, parts: Sequence[bytes], *options: str, seconds: float = 120) -> list[str]:
        """Run a script; return the lines that it prints."""
        folder = self.built.folder
        digest = hashlib.sha256(script.encode() + b"".join(parts)).hexdigest()[:12]
        package = folder / f"package-{digest}.bin"
        write_package(package, script, parts)
        loader = f"loader,file={package},addr={FLASH[self.name] + PACKAGE_OFFSET:#x},force-raw=on"
        return run_image(self.name, self.elf, "^END$", "-device", loader, *options, seconds=seconds)


def run_image(board: str, elf: Path, until: str, *options: str, seconds: float = 120) -> list[str]:
    """Run an image in QEMU up to a line; return its lines."""
    need("qemu-system-arm")
    command = ["qemu-system-arm", *MACHINES[board], "-nographic", "-kernel", str(elf), *options]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    console = b""
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline and process.poll() is None:
            console += process.stdout.read() or b""
            text = console.decode(errors="replace").replace("\r", "")
            if re.search(until, text, re.MULTILINE):
                return [line for line in text.splitlines() if not line.startswith("***")]
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    pytest.fail(f"{board}: no {until!r} within {seconds} s:\n{console.decode(errors='replace')[-6000:]}")


def signed_again(content: bytes, offset: int = 0, form: str = "", value: int = 0, seed: str = "trusted") -> bytes:
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
