# SPDX-License-Identifier: Apache-2.0
"""Programs with the portable core of bundles, and the console that controls it."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bundle_files import PROGRAMS
from c_support import RUNTIME, SANITIZED, compile_all, run
from session_support import digest, digest_of_files, made_once

BUNDLE = RUNTIME / "bundle"
CORE = tuple(
    BUNDLE / "src" / f"{name}.c"
    for name in "abi checks descriptor faults format host install placement sessions signature".split()
) + tuple(BUNDLE / "src" / f"{name}.c" for name in "signature_monocypher slots steps trial upload".split())
VENDORED = (BUNDLE / "ext/libsodium/opwest_sha512.c", BUNDLE / "ext/monocypher/opwest_monocypher.c")
RUNTIME_PARTS = tuple(RUNTIME / "src" / f"{name}.c" for name in ("compare", "metadata", "port_host", "port_sync_host"))
FLAGS = (*SANITIZED, "-O1", "-D_GNU_SOURCE", "-pthread")  # signatures and hashes take most of the time
INCLUDES = (f"-I{RUNTIME / 'include'}", f"-I{BUNDLE / 'src'}", f"-I{PROGRAMS}")


def _headers() -> str:
    return digest(*map(digest_of_files, (RUNTIME / "include", PROGRAMS, BUNDLE)))


def _objects(sources: Sequence[Path], flags: Sequence[str], compiler: str) -> list[Path]:
    """Return objects, compiled once in a session."""
    key = digest(compiler, *flags, *(str(path) for path in sources), _headers())

    def make(folder: Path) -> None:
        compile_all(folder, sources, compiler, flags, INCLUDES)

    return sorted(made_once(f"bundles/objects_{key}", make).glob("*.o"))


def built(name: str, sources: Sequence[str], flags: Sequence[str] = FLAGS, compiler: str = "gcc") -> Path:
    """Return a program of `programs/` with the core, compiled once in a session."""
    # GCC needs minutes for the vendored curve with UndefinedBehaviorSanitizer: fuzz_device.py has it, with clang.
    light = [flag.replace("address,undefined", "address") for flag in flags]
    objects = _objects(VENDORED, light, compiler) + _objects([*CORE, *RUNTIME_PARTS], flags, compiler)

    def make(folder: Path) -> None:
        own = compile_all(folder / "own", [PROGRAMS / f"{source}.c" for source in sources], compiler, flags, INCLUDES)
        run([compiler, *flags, *own, *objects, "-o", folder / name], folder)

    return made_once(f"bundles/{name}_{digest(compiler, *flags, _headers())}", make) / name


class Console:
    """A manager of slots in a process of its own. Answers are lists of words; the first is the return code."""

    def __init__(self, slots: int = 2, write_size: int = 4, erased: int = 0xFF) -> None:
        program = built("console", ["console", "simulated"])
        environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
        self._process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._files: dict[Path, str] = {}
        self("open", slots, write_size, hex(erased))

    def __call__(self, *words: object) -> list[str]:
        """Execute a command and return the words of its answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        assert answer, f"{words}: the program ended with {self._process.wait()}"
        return answer

    def rc(self, *words: object) -> int:
        """Execute a command and return its code."""
        return int(self(*words)[0])

    def close(self) -> None:
        """End the program, which must have found no fault."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(timeout=20) == 0
