# SPDX-License-Identifier: Apache-2.0
"""A toolchain for Zephyr's RISC-V boards from a distribution's riscv64-unknown-elf-gcc, for tests and benchmarks.

    eval "$(python scripts/riscv_toolchain.py build/riscv)"
    west build -b qemu_riscv32 app -- -DCONFIG_MINIMAL_LIBC=y

writes a directory with riscv_gcc.sh as the compilers and links to the other tools, and prints the variables of
Zephyr's toolchain variant `cross-compile` that select it. The first lines of riscv_gcc.sh contain the reason. With the
Zephyr SDK no such toolchain is needed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

PREFIX = "riscv64-unknown-elf-"
_WRAPPER = Path(__file__).with_name("riscv_gcc.sh")


def toolchain(folder: Path) -> None:
    """Write the toolchain into a directory. Raises FileNotFoundError.

    `folder` may exist. The error is for a missing compiler.
    """
    if shutil.which(f"{PREFIX}gcc") is None:
        raise FileNotFoundError(f"{PREFIX}gcc not found in PATH (Debian: apt-get install gcc-riscv64-unknown-elf)")
    folder.mkdir(parents=True, exist_ok=True)
    # A directory of PATH with links to ccache has the compilers only: all directories, the first one wins.
    places = [Path(place) for place in os.get_exec_path() if place and Path(place) != folder.absolute()]
    for tool in (tool for place in reversed(places) for tool in place.glob(f"{PREFIX}*")):
        own = folder / tool.name
        own.unlink(missing_ok=True)
        if tool.name in (f"{PREFIX}gcc", f"{PREFIX}g++"):
            shutil.copy2(_WRAPPER, own)
        else:
            own.symlink_to(tool)


def variables(folder: Path) -> dict[str, str]:
    """Return the variables of a build that select the toolchain in a directory."""
    return {
        "ZEPHYR_TOOLCHAIN_VARIANT": "cross-compile",
        "CROSS_COMPILE": f"{folder.absolute()}/{PREFIX}",
        # ccache compares the compiler by its time, which for a copy does not change with the compiler.
        "CCACHE_COMPILERCHECK": "%compiler% --version",
    }


def main(words: list[str]) -> int:
    """Write the toolchain into the directory of the command line and print its variables; return the exit code."""
    if len(words) != 1 or words[0].startswith("-"):
        print("usage: riscv_toolchain.py DIRECTORY", file=sys.stderr)
        return 2
    folder = Path(words[0])
    try:
        toolchain(folder)
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, value in variables(folder).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
