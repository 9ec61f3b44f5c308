# SPDX-License-Identifier: Apache-2.0
"""The golden projects and their generation, without a compiler."""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

GOLDEN = Path(__file__).resolve().parent
sys.path.insert(0, str(GOLDEN.parent / "unit" / "objects"))

import projects  # noqa: E402
from elf_writer import build_elf  # noqa: E402
from opwest.base.diagnostics import Diagnostics  # noqa: E402
from opwest.project.lock import Lock  # noqa: E402
from opwest.project.metadata_objects import compile_metadata  # noqa: E402
from opwest.render.project_files import project_record, render_project  # noqa: E402
from opwest.runs.harness import own_renderer  # noqa: E402
from opwest.zephyr.runtime import vendored_files  # noqa: E402

PROJECTS = {
    "minimal": ["manifest.yaml"],
    "many_kinds": ["manifest.yaml"],
    "devices": ["manifest.yaml"],
    "several": ["first/manifest.yaml", "second/manifest.yaml"],
    "targets": ["manifest.yaml"],
    "asynchronous": ["manifest.yaml"],
    "vectors": ["manifest.yaml"],
    "conventions": ["manifest.yaml"],
    "streams": ["manifest.yaml"],
    "tvmgen": ["plain/manifest.yaml", "npu/manifest.yaml"],
    "variants": ["manifest.yaml"],
}

Metadata = Literal["c", "llvm"]
HOST_TARGETS = ("x86-64", "i386", "aarch64-host")

_LEFT_OUT = (".opwest/bases.json", ".opwest/origin.json", ".opwest/mutex")
"""Not compared: merge bases are copies of compared files, the others depend on the place or have no content."""


def copy_project(name: str, folder: Path) -> list[Path]:
    """Copy the manifests of a golden project and their files to a new directory; return the manifests."""
    shutil.copytree(GOLDEN / name, folder)
    if name == "targets":
        _write_objects(folder / "objects")
    return [folder / manifest for manifest in PROJECTS[name]]


def generate_project(name: str, work: Path, *, vendored: bool = True, metadata: Metadata = "c") -> Path:
    """Generate a golden project below `work` and return the application's directory."""
    manifests = copy_project(name, work / "source")
    if metadata == "llvm":
        name_host_targets(manifests)
    projects.generate(manifests, work / "app", vendored=vendored, faults=Diagnostics(), metadata=metadata)
    return work / "app"


def name_host_targets(manifests: Sequence[Path]) -> None:
    """Add an object for this machine to models of C sources: LLVM requires a target."""
    for manifest in manifests:
        text = manifest.read_text(encoding="utf-8")
        if "target: " not in text:
            (manifest.parent / "unused.ll").write_text(
                f"define void @unused_{manifest.parent.name}() {{\n  ret void\n}}\n"
            )
            entry = f"\nobjects:\n  - {{files: [unused.ll], targets: [{', '.join(HOST_TARGETS)}]}}\n"
            manifest.write_text(text.replace("\nobjects:\n", entry, 1), encoding="utf-8")


def generate_quickly(manifests: Sequence[Path], app: Path, *, vendored: bool = False, metadata: Metadata = "c") -> Path:
    """Write the files of `generate` without its journal, which waits for the disk."""
    faults = Diagnostics()
    if metadata == "llvm":
        name_host_targets(manifests)
    planned = projects.check(manifests, faults)
    objects = compile_metadata(planned, faults) if metadata == "llvm" else None
    faults.raise_if_errors()
    runtime = vendored_files([model for model, _ in planned]) if vendored else None
    rendered = render_project(own_renderer(), planned, runtime, objects)
    files = {str(f.path): f.content for f in rendered}
    files[".opwest/lock.json"] = Lock(project_record(planned, vendored=vendored, metadata=metadata)).to_bytes()
    for name, content in files.items():
        path = app / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return app


def lock_of(name: str) -> bytes:
    """Return the lock of a generated golden project."""
    with tempfile.TemporaryDirectory() as folder:
        return (generate_project(name, Path(folder)) / ".opwest" / "lock.json").read_bytes()


def _write_objects(folder: Path) -> None:
    """Write an object per target, the same bytes everywhere."""
    symbols = [
        ("local_helper", 0, 2, 1),
        ("scale_impl", 1, 2, 1),
        ("scale_table", 1, 1, 2),
        ("vendor_start", 1, 0, 0),
        ("memcpy", 1, 0, 0),
    ]
    sections = [(".text", 1, 6, b"\x90" * 16), (".rodata", 1, 2, b"table...")]
    objects = {
        "x86-64": build_elf(bits=64, machine=62, symbols=symbols, sections=sections),
        "big-endian": build_elf(bits=32, machine=20, endian="big", symbols=symbols, sections=sections),
    }
    for target, content in objects.items():
        path = folder / target / "scale.o"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)


def emitted(app: Path) -> dict[str, bytes]:
    """Return the compared files of an application by path."""
    paths = {path.relative_to(app).as_posix(): path for path in sorted(app.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if name not in _LEFT_OUT}
