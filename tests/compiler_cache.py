# SPDX-License-Identifier: Apache-2.0
"""A cache of compiled objects for the tests, where ccache is installed.

Many tests compile the same files: the runtime, and generated files that differ in their directories only. The cache is
in build/ccache, so that it also serves the next run. Its programs are in a directory in front of PATH, as Debian's
/usr/lib/ccache is.
"""

import os
import shutil
import tempfile
from pathlib import Path

CACHE = Path(__file__).resolve().parents[1] / "build" / "ccache"
COMPILERS = (
    *("cc", "gcc", "g++", "clang", "clang++", "clang-14", "clang-19", "x86_64-w64-mingw32-gcc"),
    *("arm-none-eabi-gcc", "arm-none-eabi-g++", "riscv64-unknown-elf-gcc", "riscv64-unknown-elf-g++"),
)


def use_compiler_cache(folder: Path) -> None:
    """Let all compilers of this process and its child processes use the cache; `folder` is that of the session."""
    cache = shutil.which("ccache")
    if cache is None:
        return
    programs = folder / "compilers"
    programs.mkdir()
    for name in COMPILERS:
        if shutil.which(name):
            (programs / name).symlink_to(cache)
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    os.environ.setdefault("CCACHE_DIR", str(CACHE))
    os.environ.setdefault("CCACHE_MAXSIZE", "2G")
    # The directories of tests differ in each run: paths below them are compared as relative paths.
    os.environ.setdefault("CCACHE_BASEDIR", tempfile.gettempdir())
    os.environ.setdefault("CCACHE_NOHASHDIR", "true")
