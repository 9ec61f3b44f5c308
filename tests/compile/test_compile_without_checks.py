# SPDX-License-Identifier: Apache-2.0
"""`run: checks` with every feature: streams, devices, states, views, microTVM's interface, variants."""

import itertools
import re
from pathlib import Path

import pytest
from c_support import STRICT, compile_all, includes, portable_sources, read_record
from campaign import sized
from golden_support import PROJECTS, Metadata, copy_project, generate_quickly
from requirements_support import need_compiler, need_x86_64

LEFT_OUT = ("busy: false", "buffers: false", "busy: false, buffers: false")
BUILT = sized(
    [*((name, LEFT_OUT[-1]) for name in PROJECTS), ("streams", LEFT_OUT[0]), ("devices", LEFT_OUT[1])],
    [*itertools.product(PROJECTS, LEFT_OUT)],
)


def without_checks(name: str, folder: Path, checks: str, metadata: Metadata = "c") -> Path:
    """Generate a golden project whose models leave checks out."""
    manifests = copy_project(name, folder / "source")
    for manifest in manifests:
        text = re.sub(r"^  checks: .*\n", "", manifest.read_text(encoding="utf-8"), flags=re.MULTILINE)
        changed = re.sub(r"^run:\n", f"run:\n  checks: {{{checks}}}\n", text, flags=re.MULTILINE)
        assert changed != text
        manifest.write_text(changed, encoding="utf-8")
    return generate_quickly(manifests, folder / "app", vendored=True, metadata=metadata)


@pytest.mark.parametrize(("name", "checks"), BUILT)
def test_every_project_compiles_without_checks(name: str, checks: str, tmp_path: Path) -> None:
    need_compiler("gcc")
    app = without_checks(name, tmp_path, checks)
    sources = [*portable_sources(app), *sorted((app / "src").glob("*.c"))]
    compile_all(tmp_path / "c", sources, "gcc", STRICT, includes(app))
    for model in read_record(app)["models"]:
        name = model["name"]
        folder = app / "models" / name
        text = (folder / "src" / f"{name}_run.c").read_text(encoding="utf-8")
        header = (folder / "include" / f"{name}.h").read_text(encoding="utf-8")
        assert ("opwest_port_take(&workspace->running)" in text) == ("busy" not in checks)
        assert ("opwest_port_flag_t running;" in header) == ("busy" not in checks)
        assert ("overlap" in text) == ("buffers" not in checks)


@pytest.mark.parametrize("name", ["streams", "several"])
def test_llvm_without_checks(name: str, tmp_path: Path) -> None:
    """The objects refer to the functions of neither check."""
    need_x86_64()
    app = without_checks(name, tmp_path, LEFT_OUT[-1], "llvm")
    objects = list(app.rglob("*_metadata.o"))
    assert objects
    for path in objects:
        assert b"opwest_buffers" not in path.read_bytes() and b"opwest_port_take" not in path.read_bytes()
