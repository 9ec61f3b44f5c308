# SPDX-License-Identifier: Apache-2.0
"""Programs with the portable core of bundles."""

from collections.abc import Sequence
from pathlib import Path

from bundle_files import PROGRAMS
from c_support import RUNTIME, SANITIZED, compile_all, run
from session_support import digest, digest_of_files, made_once

BUNDLE = RUNTIME / "bundle"
CORE = tuple(path for path in sorted((BUNDLE / "src").glob("*.c")) if path.stem != "signature_psa")
VENDORED = (BUNDLE / "ext/libsodium/opwest_sha512.c", BUNDLE / "ext/monocypher/opwest_monocypher.c")
RUNTIME_PARTS = tuple(RUNTIME / "src" / f"{name}.c" for name in ("compare", "metadata", "port_host", "port_sync_host"))
FLAGS = (*SANITIZED, "-O1", "-D_GNU_SOURCE", "-pthread")  # signatures and hashes take most of the time
INCLUDES = (f"-I{RUNTIME / 'include'}", f"-I{BUNDLE / 'src'}", f"-I{PROGRAMS}")


def _headers() -> str:
    return digest(*map(digest_of_files, (RUNTIME / "include", PROGRAMS, BUNDLE)))


def _objects(sources: Sequence[Path], flags: Sequence[str]) -> list[Path]:
    """Return objects, compiled once in a session."""
    key = digest(*flags, *map(str, sources), _headers())
    folder = made_once(f"bundles/objects_{key}", lambda folder: compile_all(folder, sources, "gcc", flags, INCLUDES))
    return sorted(folder.glob("*.o"))


def built(name: str, sources: Sequence[str], flags: Sequence[str] = FLAGS) -> Path:
    """Return a program of `programs/` with the core, compiled once in a session."""
    # GCC needs minutes for the vendored curve with UndefinedBehaviorSanitizer; fuzz/fuzz_device.py uses it, with clang.
    light = [flag.replace("address,undefined", "address") for flag in flags]
    objects = _objects(VENDORED, light) + _objects([*CORE, *RUNTIME_PARTS], flags)

    def make(folder: Path) -> None:
        own = compile_all(folder / "own", [PROGRAMS / f"{source}.c" for source in sources], "gcc", flags, INCLUDES)
        run(["gcc", *flags, *own, *objects, "-o", folder / name], folder)

    return made_once(f"bundles/{name}_{digest(*flags, _headers())}", make) / name
