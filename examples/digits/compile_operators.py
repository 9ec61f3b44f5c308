# SPDX-License-Identifier: Apache-2.0
"""Compile operators/*.c into one object or archive per target, the objects of manifest.yaml.

Each directory also contains operators.su, the stack usage that the compiler reports.
A target whose compiler is not installed is skipped, unless it is named on the command line. The
outputs contain no absolute paths and no dates, so the same compiler always writes the same bytes.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent
OPERATORS = EXAMPLE / "operators"

FLAGS = [
    *["-std=c11", "-Os", "-Wall", "-Wextra", "-Werror", "-Wconversion", "-Wsign-conversion"],
    # No C library, and a section per function so that the linker can drop unused ones.
    *["-ffreestanding", "-ffunction-sections", "-fdata-sections"],
    *["-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-common"],
    "-fstack-usage",
]
STACK_USAGE = "operators.su"
"""Stack usage files of the operators, in the directory of the objects."""
ARM_TOOLCHAINS = ["arm-none-eabi-", "arm-zephyr-eabi-"]
ARM_HINT = "arm-none-eabi-gcc is not installed (Debian: apt-get install gcc-arm-none-eabi)"


@dataclass(frozen=True)
class Target:
    """A target of the objects."""

    name: str
    output: str
    flags: list[str]
    hosts: tuple[str, ...] = ()
    """Host processors whose native compiler supports the target; empty: an Arm cross compiler is used."""


TARGETS = [
    # Zephyr links a 64-bit native_sim position independent, a 32-bit one not.
    Target("x86-64", "operators.o", ["-m64", "-fPIC", "-fcf-protection=none"], ("x86_64",)),
    Target("i386", "operators.o", ["-m32", "-fno-pic", "-fcf-protection=none"], ("x86_64", "i386", "i686")),
    Target("aarch64-host", "operators.o", ["-fPIC"], ("aarch64", "arm64")),
    # No floating point anywhere: these link into soft-float firmware, Zephyr's default.
    Target("cortex-m3", "liboperators.a", ["-mcpu=cortex-m3", "-mthumb", "-mfloat-abi=soft"]),
    Target("cortex-m4", "liboperators.a", ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft"]),
]


class CompileError(Exception):
    """Compilation for a target failed; the message is shown to the user."""


class SkippedError(CompileError):
    """A target has no compiler on this machine."""


def run(command: list[str]) -> None:
    """Run a tool. Raises CompileError with its error output."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise CompileError(f"{command[0]}: {error.strerror}") from None
    if result.returncode != 0:
        complaint = result.stderr.strip() or f"failed with status {result.returncode}"
        raise CompileError(f"{shlex.join(command)}\n{complaint}")
    sys.stderr.write(result.stderr)


def arm_prefix() -> str:
    """Find an Arm toolchain on the PATH."""
    for prefix in ARM_TOOLCHAINS:
        if shutil.which(prefix + "gcc") and shutil.which(prefix + "ar"):
            return prefix
    raise SkippedError(ARM_HINT)


def host_compiler(target: Target) -> list[str]:
    """Find the host's C compiler, if it generates ELF objects for the target."""
    if not sys.platform.startswith("linux") or platform.machine() not in target.hosts:
        wanted = " or ".join(target.hosts)
        raise SkippedError(f"this host is {platform.system()} on {platform.machine()}, not Linux on {wanted}")
    compiler = shlex.split(os.environ.get("CC") or "cc")
    if not shutil.which(compiler[0]):
        raise SkippedError(f"the C compiler {compiler[0]!r} is not installed (Debian: apt-get install gcc)")
    return compiler


def compile_target(target: Target, output: Path) -> Path:
    """Compile every operator for one target and put them into one file, which is not left behind after a failure."""
    prefix = "" if target.hosts else arm_prefix()
    compiler = host_compiler(target) if target.hosts else [prefix + "gcc"]
    sources = sorted(OPERATORS.glob("*.c"))
    if not sources:
        raise CompileError(f"no operators in {OPERATORS}")

    destination = output / target.name / target.output
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".") as folder:
        objects = []
        for source in sources:
            objects.append(str(Path(folder) / source.with_suffix(".o").name))
            paths = f"-ffile-prefix-map={EXAMPLE}=."
            run([*compiler, *FLAGS, *target.flags, paths, "-c", str(source), "-o", objects[-1]])
        combined = Path(folder) / target.output
        if combined.suffix == ".a":
            run([prefix + "ar", "rcsD", str(combined), *objects])
        else:
            link = ["-r", "-nostdlib", "-Wl,--build-id=none"]
            run([*compiler, *(f for f in target.flags if f.startswith("-m")), *link, *objects, "-o", str(combined)])
        usage = "".join(Path(file).with_suffix(".su").read_text() for file in objects)
        destination.with_name(STACK_USAGE).write_text(usage.replace(f"{EXAMPLE}{os.sep}", ""))
        combined.replace(destination)
    return destination


def shown(path: Path) -> str:
    """Return a path relative to the current directory."""
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else str(path)


def main() -> int:
    """Compile the selected targets, one line each; return 0 if all required targets succeeded."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="The host's compiler is $CC or cc. Arm needs arm-none-eabi-gcc or the Zephyr SDK's\n"
        "arm-zephyr-eabi-gcc on the PATH.",
    )
    names = [target.name for target in TARGETS]
    parser.add_argument(
        "targets", nargs="*", metavar="target", help=f"what to compile for: {', '.join(names)} (default: all)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        default=EXAMPLE / "objects",
        help=f"output directory, with a subdirectory per target (default: {shown(EXAMPLE / 'objects')})",
    )
    options = parser.parse_args()
    for name in options.targets:
        if name not in names:
            parser.error(f"no target {name!r}; the targets are {', '.join(names)}")

    failed = False
    compiled = 0
    for target in TARGETS:
        if options.targets and target.name not in options.targets:
            continue
        try:
            path = compile_target(target, options.output)
        except SkippedError as reason:
            verdict = "ERROR" if options.targets else "SKIPPED"
            print(f"{target.name}: {verdict}: {reason}", file=sys.stderr)
            failed = failed or bool(options.targets)
        except CompileError as error:
            print(f"{target.name}: ERROR: {error}", file=sys.stderr)
            failed = True
        except OSError as error:
            print(f"{target.name}: ERROR: {error.filename}: {error.strerror}", file=sys.stderr)
            failed = True
        else:
            print(f"{target.name}: {shown(path)}, {path.stat().st_size} bytes", flush=True)
            compiled += 1
    if not compiled and not failed:
        print("error: no target has a compiler on this machine", file=sys.stderr)
    return 1 if failed or not compiled else 0


if __name__ == "__main__":
    sys.exit(main())
