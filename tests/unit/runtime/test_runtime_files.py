# SPDX-License-Identifier: Apache-2.0
"""The table of the runtime's features: complete, closed under includes, and equal to the files that CMake compiles."""

import posixpath
import re
from pathlib import Path, PurePosixPath

import pytest
from golden_support import copy_project
from opwest.diagnostics import Diagnostics
from opwest.zephyr.runtime import FEATURES, NOT_COPIED, features_of, files_of, vendored_files
from projects import check

RUNTIME = Path(__file__).resolve().parents[3] / "zephyr_module"
SHARED = {"dts/bindings/vendor-prefixes.txt", "include/opwest/accelerator_functions.h"}
BUNDLE = ("bundle/CMakeLists.txt", "bundle/zephyr/llext.cmake", "bundle/zephyr/sending.cmake")
INCLUDED = {"bundle/ext/libsodium/hash_sha512_cp.c", "bundle/ext/monocypher/monocypher.c"}
"""Vendored sources that another one includes."""


def closure(name):
    """Return a feature with its dependencies."""
    found, waiting = {"core"}, [name]
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting += FEATURES[name].needs
    return found


def test_every_file_is_in_one_feature_or_is_not_copied():
    there = {path.relative_to(RUNTIME).as_posix() for path in RUNTIME.rglob("*") if path.is_file()}
    there = {path for path in there if "__pycache__" not in path}
    left = {path for path in there if path.startswith(tuple(name for name in NOT_COPIED if name.endswith("/")))}
    listed = [path for name in FEATURES for path in files_of([name])]
    listed += [*left, *(name for name in NOT_COPIED if not name.endswith("/"))]
    assert sorted(set(listed)) == sorted(there)
    assert {path for path in listed if listed.count(path) > 1} == SHARED


@pytest.mark.parametrize("name", FEATURES)
def test_included_files_of_a_feature_are_copied(name):
    files = set(files_of(closure(name)))
    for path in files:
        for quoted, header in re.findall(r'^#include ([<"])([^>"]+)[>"]', (RUNTIME / path).read_text(), re.MULTILINE):
            beside = posixpath.normpath(PurePosixPath(path).parent / header)
            if quoted == '"':
                assert beside in files, (path, header)
            elif header.startswith(("opwest/", "tvm/", "dlpack/")):
                assert {f"include/{header}", f"include_tvm/{header}"} & files, (path, header)


def test_cmake_compiles_what_is_copied():
    texts = [(RUNTIME / name).read_text() for name in ("CMakeLists.txt", *BUNDLE)]
    compiled = set(re.findall(r"(?<![\w/])(?:src|drivers|bundle)/[\w/]+\.(?:c|ld)\b", "".join(texts)))
    copied = {path for path in files_of(FEATURES) if path.endswith((".c", ".ld"))} - INCLUDED
    assert compiled == copied


def test_options_are_those_of_kconfig():
    kconfig = "\n".join(path.read_text() for path in RUNTIME.rglob("Kconfig"))
    options = {feature.option for feature in FEATURES.values() if feature.option}
    assert options <= {f"CONFIG_{name}" for name in re.findall(r"^(?:menu)?config (\w+)$", kconfig, re.MULTILINE)}
    bindings = {path.stem for path in (RUNTIME / "dts/bindings").glob("*/*.yaml")}
    assert {feature.compatible for feature in FEATURES.values() if feature.compatible} == bindings


def models_of(folder, name, *edits):
    manifests = copy_project(name, folder)
    for old, new in edits:
        text = manifests[0].read_text()
        assert old in text
        manifests[0].write_text(text.replace(old, new, 1))
    return [model for model, _ in check(manifests, Diagnostics())]


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("minimal", {"core", "sources"}),
        ("vectors", {"core", "sources", "vectors"}),
        ("asynchronous", {"core", "sources", "devices", "syscalls", "drivers"}),
        ("conventions", {"core", "sources", "devices", "syscalls", "drivers", "tvm", "halide", "memref"}),
        ("many_kinds", {"core", "errors", "sources", "service", "shell", "model_list"}),
        ("several", {"core", "sources", "shell", "model_list", "profile"}),
    ],
)
def test_features_of_models(tmp_path, name, features):
    models = models_of(tmp_path / "source", name)
    assert features_of(models) == features
    assert {str(path) for path in vendored_files(models)} == set(files_of(features))


@pytest.mark.parametrize("option", sorted(f.option for f in FEATURES.values() if f.option))
def test_option_of_the_manifest_selects_a_feature(tmp_path, option):
    edit = ("model: minimal", f"model: minimal\napplication: {{kconfig: {{{option}: %s}}}}")
    (selected,) = [name for name, feature in FEATURES.items() if feature.option == option]
    assert selected in features_of(models_of(tmp_path / "y", "minimal", (edit[0], edit[1] % "y")))
    assert features_of(models_of(tmp_path / "n", "minimal", (edit[0], edit[1] % "n"))) == {"core", "sources"}


@pytest.mark.parametrize(
    ("header", "feature"),
    [
        ("opwest/npu_emul.h", "npu_emul"),
        ("opwest/ethos_u.h", "ethos_u"),
        ("tvm/runtime/c_runtime_api.h", "tvm"),
        ("opwest/compare.h", "vectors"),
    ],
)
def test_included_header_selects_its_feature(tmp_path, header, feature):
    (manifest,) = copy_project("minimal", tmp_path / "source")
    (source,) = (path for path in manifest.parent.rglob("*.c"))
    text = source.read_text()
    source.write_text(f"#include <opwest/port.h>\n{text}")
    assert features_of([model for model, _ in check([manifest], Diagnostics())]) == {"core", "sources"}
    source.write_text(f"  #  include <{header}>\n{text}")
    assert features_of([model for model, _ in check([manifest], Diagnostics())]) == closure(feature) | {"sources"}


def test_overlay_selects_the_driver_of_its_nodes(tmp_path):
    for compatible, feature in (("opwest,npu-emul", "npu_emul"), ("opwest,ethos-u", "ethos_u")):
        (manifest,) = copy_project("minimal", tmp_path / feature)
        (manifest.parent / "board.overlay").write_text(f'/ {{ npu {{ compatible = "{compatible}"; }}; }};\n')
        text = manifest.read_text()
        manifest.write_text(text + "application: {overlays: {qemu_cortex_m3: board.overlay}}\n")
        assert features_of([model for model, _ in check([manifest], Diagnostics())]) == closure(feature) | {"sources"}
