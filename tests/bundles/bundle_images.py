# SPDX-License-Identifier: Apache-2.0
"""Models for tests of `opwest bundle`, and machines of QEMU that run their images."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from opwest.base.diagnostics import Diagnostics
from opwest.bundles.build import BundleRequest, Made, make_bundle
from opwest.bundles.slots import Slot
from opwest.bundles.toolchain import machine_options
from opwest.model.inputs.targets import make_target
from opwest.objects.targets import named_targets
from opwest.tuning.machines import machines
from opwest.tuning.measure import HERE as QEMU
from requirements_support import need, need_x86_64
from session_support import made_once, session_folder

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
DIGITS_KEY = "digits-with-objects"
DIGITS = session_folder() / DIGITS_KEY / "digits" / "manifest.yaml"
"""The example with compiled operators, after make_digits(): for tests with the fixture digits_objects."""
MODULE = ROOT / "zephyr_module"
PROGRAMS = Path(__file__).parent / "programs"
FLOATS = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-3, -1e-3, 2.5, -2.5, 3.14159, 10.0, -10.0, 20.0, -20.0, 42.0, 80.0),
        *(-80.0, 88.0, 88.7, 88.8, 89.0, 100.0, 1e3, 1e10, 1e22, 1e30, 3e38, -87.0, -88.0, -100.0, -104.0, -1e3),
        *(-1e30, 1e-10, 1e-20, 1e-38, 1e-40, 1e-45, -1e-45, np.inf, -np.inf, np.nan, 0.1, 0.7, 7.7, 55.5, 1.0000001),
    ],
    np.float32,
)


RUNTIME = ("compare.c", "metadata.c")
HOST_SLOT = 0x10000000


class Run(NamedTuple):
    """A machine of QEMU with the target of its bundles and a slot in its memory."""

    core: str
    target: str
    slot: int


RUNS = {
    one.target: one
    for one in (
        Run("cortex-m3", "cortex-m3", 0x200000),
        Run("cortex-m4", "cortex-m4f", 0x200000),
        Run("cortex-m7", "cortex-m7f", 0x200000),
        Run("cortex-m55", "cortex-m55f-mve", 0x01080000),
        Run("rv32", "rv32imac", 0x83000000),
    )
}


def need_host() -> None:
    """Skip the running test unless bundles for x86-64 are made and run here."""
    need("cc")
    need_x86_64()


def make_digits() -> None:
    """Copy the digits example and compile its operators, once in a session."""

    def make(folder: Path) -> None:
        copy = folder / DIGITS.parent.name
        shutil.copytree(EXAMPLES / "digits", copy, ignore=shutil.ignore_patterns("objects", "__pycache__"))
        subprocess.run([sys.executable, copy / "compile_operators.py"], check=True, capture_output=True)

    made_once(DIGITS_KEY, make)


def small_model(folder: Path, text: str, sources: Mapping[str, str]) -> Path:
    """Write a model with one operator per source and a vector of zeros; return its manifest.

    The manifest has the input x and the output y, int8 [4].
    """
    for name, source in sources.items():
        (folder / name).write_text(source)
    values = np.arange(8, dtype=np.int8).reshape(2, 4)
    np.savez(folder / "vectors.npz", x=values, y=values)
    manifest = folder / "manifest.yaml"
    manifest.write_text(text)
    return manifest


def float_model(folder: Path) -> Path:
    """Write the model that calls libm, with vectors of numpy; return its manifest."""
    for source in (Path(__file__).parent / "float_model").iterdir():
        shutil.copy(source, folder)
    with np.errstate(all="ignore"):
        x = FLOATS.astype(np.float64)
        rows = [np.exp(x), np.tanh(x), np.log(x), np.sqrt(x), np.power(x, float(np.float32(1.7))), np.sin(x)]
        expected = np.stack(rows).astype(np.float32)
    np.savez(folder / "vectors.npz", x=FLOATS[None], y=expected[None])
    return folder / "manifest.yaml"


def bundle(manifest: Path, target: str | None, address: int, **options) -> Made:
    """Return a bundle without signatures. Raises OpwestError."""
    return make_bundle(BundleRequest(manifest, Slot(address, None), target=target, **options), Diagnostics())


def run(made: Made, target: str, work: Path, reference: Sequence[Path] = ()) -> str:
    """Run the golden vectors of a bundle in QEMU and return the output.

    `reference` are sources whose function `functions` the output is compared with.
    """
    one = RUNS[target]
    machine = machines()[one.core]
    bundle_file = work / "model.bundle"
    bundle_file.write_bytes(made.signed)
    runtime = [MODULE / "src" / name for name in RUNTIME]
    sources = [QEMU / machine.start, PROGRAMS / "run_image.c", *runtime, *reference]
    processor = machine_options(make_target(target, named_targets()[target]))
    compiler = [machine.compiler[0], *processor] if machine.start == "startup_arm.c" else [*machine.compiler]
    words = [*compiler, "-std=gnu11", "-Os", "-ffreestanding", f"-DSLOT={one.slot:#x}U"]
    words += [f"-I{QEMU}", f"-I{MODULE / 'include'}", *(["-DREFERENCE"] if reference else [])]
    objects = []
    for source in sources:
        objects.append(str(work / f"{source.stem}.o"))
        _execute([*words, "-Wall", "-Wextra", "-Werror", "-c", str(source), "-o", objects[-1]])
    starts = [f"-Wl,--defsym={name}={start:#x}" for name, start in machine.memories]
    link = ["-nostartfiles", "-nostdlib", "-Wl,--gc-sections", "-T", str(QEMU / "image.ld"), *starts]
    program = work / "run.elf"
    libraries = ["-Wl,--start-group", "-lm", "-lc", "-lgcc", "-Wl,--end-group"]
    _execute([*compiler, *link, *objects, *libraries, "-o", str(program)])
    loaded = f"loader,file={bundle_file},addr={one.slot:#x},force-raw=on"
    emulator = [*machine.emulator, "-nographic", "-monitor", "none", "-serial", "none", "-kernel", str(program)]
    return _execute([*emulator, "-semihosting-config", "enable=on,target=native", "-device", loaded])


def run_on_host(made: Made, work: Path) -> str:
    """Run the golden vectors of a bundle for HOST_SLOT in a process of this machine and return the output."""
    bundle_file = work / "model.bundle"
    bundle_file.write_bytes(made.signed)
    program = work / "run_on_host"
    sources = [PROGRAMS / "run_image_host.c", PROGRAMS / "run_image.c", *(MODULE / "src" / n for n in RUNTIME)]
    words = ["cc", "-std=gnu11", "-O1", "-no-pie", f"-DSLOT={HOST_SLOT:#x}U", f"-I{QEMU}", f"-I{MODULE / 'include'}"]
    _execute([*words, "-Wall", "-Wextra", "-Werror", *map(str, sources), "-o", str(program)])
    return _execute([str(program), str(bundle_file)])


def _execute(words: Sequence[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr
