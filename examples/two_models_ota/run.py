# SPDX-License-Identifier: Apache-2.0
"""Replace models in a running image in QEMU: python examples/two_models_ota/run.py kws_ref_model.tflite."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "scripts")]
from demo_steps import ROOT, Workspace, find_workspace, step  # noqa: E402

MACHINES = {
    "mps2/an385": ["-cpu", "cortex-m3", "-machine", "mps2-an385"],
    "mps3/corstone300/an547": ["-cpu", "cortex-m55", "-machine", "mps3-an547"],
}
"""The emulated boards with an overlay in application/boards/."""
SLOTS = ("bundle_slot0", "bundle_slot1")
OPWEST = [sys.executable, "-m", "opwest"]
DIGITS = ROOT / "examples" / "digits"


def make_keys(work: Path) -> tuple[Path, Path]:
    """Return the private and the public key, which are made once."""
    private, public = work / "private.pem", work / "public.pem"
    if not private.exists():
        step("making a key pair", ["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(private)])
    step("writing the public key", ["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public)])
    return private, public


def build_firmware(workspace: Workspace, board: str, public: Path, folder: Path) -> None:
    """Build the application, which contains no model."""
    words = [workspace.west, "build", "-p", "auto", "-b", board, "-S", "opwest-bundle-service", "-d", str(folder)]
    words += [str(HERE / "application"), "--"]
    words += [f'-DCONFIG_OPWEST_BUNDLE_KEYS="{public}"', "-DCONFIG_MINIMAL_LIBC=y"]
    step(f"building firmware without a model for {board}", words, env=workspace.environment(board))


def make_bundles(name: str, manifest: Path, version: str, private: Path, build: Path) -> list[str]:
    """Make a bundle for each slot: a server has all of them."""
    files = []
    for slot in SLOTS:
        files.append(str(build.parent / f"{name}-{version}-{slot}.bundle"))
        words = ["bundle", str(manifest), "--slot", slot, "--build", str(build), "--key", str(private)]
        step(
            f"bundling {name} {version} for {slot}",
            [*OPWEST, *words, "--model-version", version, "--vectors", "4", "-o", files[-1]],
        )
    return files


def digits_in_c(folder: Path, *, wrong: bool = False) -> Path:
    """Return the manifest of a copy of digits with its operators as C sources, for any processor.

    With `wrong`, its first golden vector expects another label.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DIGITS, folder)
    sources = ", ".join(f"operators/{path.name}" for path in sorted((folder / "operators").glob("*.c")))
    manifest = folder / "manifest.yaml"
    objects = re.compile(r"^objects:\n(?: +\S.*\n)+", re.MULTILINE)
    manifest.write_text(objects.sub(f"objects: [{{files: [{sources}]}}]\n", manifest.read_text()))
    if wrong:
        with np.load(DIGITS / "vectors.npz") as vectors:
            arrays = {name: vectors[name].copy() for name in vectors.files}
        arrays["label"].flat[0] = (arrays["label"].flat[0] + 1) % 10
        np.savez(folder / "vectors.npz", **arrays)
    return manifest


@contextmanager
def running(board: str, build: Path) -> Iterator[str]:
    """Run the image in QEMU; yield the serial device of its UART."""
    image = str(build / "zephyr" / "zephyr.elf")
    words = ["qemu-system-arm", *MACHINES[board], "-nographic", "-vga", "none", "-net", "none", "-monitor", "none"]
    process = subprocess.Popen(
        [*words, "-serial", "pty", "-kernel", image],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            found = re.search(r"char device redirected to (\S+)", line)
            if found is not None:
                print(f"== the image runs in QEMU; its UART is {found[1]}", flush=True)
                yield found[1]
                return
        raise SystemExit("error: QEMU did not start")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def send(title: str, files: list[str], device: str, *, accepted: bool = True) -> None:
    """Install a bundle; print what the command prints."""
    print(f"== {title}", flush=True)
    begin = time.monotonic()
    command = [*OPWEST, "bundle", "install", *files, "--serial", device]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print("".join(f"   {line}\n" for line in done.stdout.splitlines()), end="")
    if (done.returncode == 0) is not accepted:
        raise SystemExit(f"error: {title}: exit code {done.returncode}")
    print(f"   done in {time.monotonic() - begin:.1f} s", flush=True)


def main() -> int:
    """Run the example; the last lines list the slots."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="keyword spotting: an int8 TFLite file")
    parser.add_argument("--board", choices=MACHINES, default="mps2/an385", help="emulated board (default: %(default)s)")
    given = parser.parse_args()
    workspace = find_workspace()
    if workspace is None:
        return 1
    work = ROOT / "build" / "two_models_ota" / re.sub(r"\W", "_", given.board)
    work.mkdir(parents=True, exist_ok=True)
    build = work / "build"
    private, public = make_keys(work)
    shutil.rmtree(work / "kws", ignore_errors=True)
    words = ["import", str(given.model.resolve()), "-o", str(work / "kws"), "--model", "keyword_spotting"]
    step("importing keyword spotting", [*OPWEST, *words])
    build_firmware(workspace, given.board, public, build)
    digits = make_bundles("digits", digits_in_c(work / "digits"), "1.0.0", private, build)
    spotting = make_bundles("keyword_spotting", work / "kws" / "manifest.yaml", "1.0.0", private, build)
    wrong = make_bundles("wrong_digits", digits_in_c(work / "wrong", wrong=True), "2.0.0", private, build)
    with running(given.board, build) as device:
        send("installing digits", digits, device)
        send("replacing digits by keyword spotting", spotting, device)
        send("sending digits 2.0.0 with wrong golden vectors", wrong, device, accepted=False)
        listing = [*OPWEST, "bundle", "list", "--serial", device]
        step("listing the slots", listing, show=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
