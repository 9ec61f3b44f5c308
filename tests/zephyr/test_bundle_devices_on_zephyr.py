# SPDX-License-Identifier: Apache-2.0
"""A bundle that uses two accelerators: devices by type and name, and drivers through the devices of the context."""

import hashlib
import importlib.util
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from bundle_support import FLASH, SLOT_SIZE, TARGETS, bundle, private_key, run_image
from cover import configured
from zephyr_support import ROOT, Workspace

pytestmark = pytest.mark.zephyr
EXAMPLE = ROOT / "examples" / "two_npus"
PROGRAM = ROOT / "tests" / "zephyr" / "programs" / "bundle_devices"
OVERLAYS = ROOT / "examples" / "two_models_ota" / "application" / "boards"
BOARDS = ["mps2/an385", "mps3/corstone300/an547"]
VECTORS = 3


def load_reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bundle_devices_reference", EXAMPLE / "reference.py")
    assert spec is not None and spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = reference  # dataclasses search there
    spec.loader.exec_module(reference)
    return reference


def with_vectors(folder: Path) -> tuple[Path, np.ndarray, list[int]]:
    """Write the example with golden vectors; return its manifest, the images and the results of numpy."""
    shutil.copytree(EXAMPLE, folder)
    text = (EXAMPLE / "application" / "held_out.h").read_text(encoding="ascii")
    rows = re.findall(r'^\t\{"([a-q]{64})", ', text, flags=re.MULTILINE)
    images = (np.array([list(row.encode()) for row in rows]) - ord("a")).astype(np.int8).reshape(-1, 8, 8, 1)
    labels: list[int] = load_reference().predict(images).tolist()
    np.savez(
        folder / "vectors.npz",
        image=images[:VECTORS, None],
        label=np.array(labels[:VECTORS], np.int32).reshape(-1, 1),
    )
    manifest = folder / "manifest.yaml"
    manifest.write_text(manifest.read_text() + "\ntests: {vectors: vectors.npz}\n")
    return manifest, images, labels


@configured("board", BOARDS)
def test_a_bundle_uses_the_devices_of_the_firmware(workspace: Workspace, tmp_path: Path, board: str) -> None:
    manifest, images, labels = with_vectors(tmp_path / "model")
    slot = f"{FLASH[board]:#x}:{SLOT_SIZE:#x}"
    key = private_key(tmp_path, "trusted")
    file = bundle(manifest, "--slot", slot, "--target", TARGETS[board], "--key", key, "-o", tmp_path / "npus.bundle")
    assert labels[0] != -1 and len(labels) == len(images)
    digest = hashlib.sha512(file.read_bytes()).digest()
    rows = ",\n".join("{" + ", ".join(map(str, image.ravel())) + "}" for image in images)
    (tmp_path / "cases.h").write_text(
        f"static const uint8_t digest[] = {{{', '.join(map(str, digest))}}};\n"
        f"static const int32_t labels[] = {{{', '.join(map(str, labels))}}};\n"
        f"static const int8_t images[][64] = {{{rows}}};\n"
    )
    overlay = OVERLAYS / f"{board.replace('/', '_')}.overlay"
    app = tmp_path / "app"
    shutil.copytree(PROGRAM, app)
    (app / "CMakeLists.txt").write_text(
        (PROGRAM / "CMakeLists.txt").read_text().replace("${CMAKE_CURRENT_SOURCE_DIR}/../../../..", str(ROOT))
    )
    keys = ROOT / "tests" / "zephyr" / "programs" / "bundles" / "trusted.pem"
    options = [
        f"-DEXTRA_DTC_OVERLAY_FILE={overlay};{EXAMPLE / 'overlays' / 'npus.overlay'}",
        f"-DBUNDLE={file}",
        f"-DCASES={tmp_path / 'cases.h'}",
        f'-DCONFIG_OPWEST_BUNDLE_KEYS="{keys}"',
    ]
    built = workspace.build(app, board, *options)
    lines = run_image(board, built.folder / "zephyr" / "zephyr.elf", "^END$")
    assert "install: 1 devices 0" in lines  # npu1 is the second device of the bundle; nothing fits the first one
    assert "install: 0 good 0" in lines
    assert f"right: {len(labels)} of {len(labels)}" in lines
    # The program of each branch was loaded into the device of its name.
    loaded = next(line for line in lines if line.startswith("loaded: ")).split()[1:]
    assert all(int(count) > 0 for count in loaded), lines
