# SPDX-License-Identifier: Apache-2.0
"""opwest_add_bundle(): bundles made in the build of the firmware."""

import shutil
import subprocess
from pathlib import Path

import pytest
from bundle_support import PROGRAM, digits_model, private_key
from cover import configured
from opwest.bundles.explanation import as_json
from opwest.bundles.format import unpack
from opwest.bundles.linked import named_symbols
from opwest.objects.elf import parse_elf
from zephyr_support import ROOT, Built, Workspace, again

pytestmark = pytest.mark.zephyr
OVERLAYS = ROOT / "examples" / "two_models_ota" / "application" / "boards"
LINES = """cmake_minimum_required(VERSION 3.20.0)
find_package(Zephyr REQUIRED HINTS $ENV{ZEPHYR_BASE})
project(bundled)
opwest_add_bundle(first MANIFEST digits/manifest.yaml SLOT bundle_slot0 KEY trusted.pem VERSION 1.2.3)
opwest_add_bundle(second MANIFEST other/manifest.yaml SLOT 0x21040000:256K UNSIGNED VECTORS 2 OBSERVABLE
  OUTPUT b/two.bundle)
target_sources(app PRIVATE main.c)
target_link_libraries(app PRIVATE first)
"""
MAIN = """#include <digits_bundle.h>
int main(void)
{
	static struct opwest_session session;
	int8_t image[64] = {0};
	int32_t label;

	return digits_bundle_run(&session, &(struct digits_inputs){image}, &(struct digits_outputs){&label}) +
		(DIGITS_BUNDLE_INTERFACE == 0U);
}
"""


@configured(board="mps2/an385")
def test_bundles_are_made_with_the_toolchain_of_the_build(workspace: Workspace, tmp_path: Path) -> None:
    signs = _is_importable(workspace, "cryptography")
    app = tmp_path / "bundled"
    digits_model(app / "digits")
    digits_model(app / "other")
    (app / "boards").mkdir()
    shutil.copy(OVERLAYS / "mps2_an385.overlay", app / "boards")
    private_key(app, "trusted")
    (app / "CMakeLists.txt").write_text(LINES if signs else LINES.replace("KEY trusted.pem", "UNSIGNED"))
    (app / "main.c").write_text(MAIN)
    (app / "prj.conf").write_text((PROGRAM / "prj.conf").read_text().replace('"trusted', f'"{PROGRAM}/trusted'))
    status, built = workspace.try_build(app, "mps2/an385", f"-DEXTRA_ZEPHYR_MODULES={ROOT}")
    assert status == 0, built.log
    first = unpack((built.folder / "first.bundle").read_bytes())
    assert (first.content.slot_address, first.content.version) == (0x21000000, (1, 2, 3))
    assert as_json("", first)["abi"]["cpu"] == ["ARMV7M"]
    assert len(first.signatures) == int(signs)
    second = unpack((built.folder / "b" / "two.bundle").read_bytes())
    assert (second.content.slot_address, second.signatures, second.content.abi.layout & 1) == (0x21040000, (), 1)

    # An input of the manifest changes the bundle; nothing else runs the command again. Firmware is compiled again, in
    # the same build, if the interface of the model changes, and only then.
    bundle, compiled = built.folder / "first.bundle", built.folder / "CMakeFiles" / "app.dir" / "main.c.obj"
    before, of_main = bundle.stat().st_mtime_ns, compiled.stat().st_mtime_ns
    assert "Making bundle" not in rebuilt(workspace, built)
    assert bundle.stat().st_mtime_ns == before
    manifest = app / "digits" / "manifest.yaml"
    manifest.write_text(manifest.read_text().replace("arg_max:", "arg_max:\n    description: changed", 1))
    assert "Making bundle first" in rebuilt(workspace, built)
    assert unpack(bundle.read_bytes()).content.image != first.content.image
    assert compiled.stat().st_mtime_ns == of_main
    manifest.write_text(manifest.read_text().replace("scale: 1.0", "scale: 2.0", 1))
    rebuilt(workspace, built)
    other = unpack(bundle.read_bytes())
    assert other.content.interface_hash != first.content.interface_hash
    assert compiled.stat().st_mtime_ns > of_main
    # The model is not part of the firmware.
    elf = parse_elf((built.folder / "zephyr" / "zephyr.elf").read_bytes())
    assert "digits_run" not in {name for name, _ in named_symbols(elf)}


def rebuilt(workspace: Workspace, built: Built) -> str:
    status, log = again(workspace, built.folder, built.board)
    assert status == 0, log
    return log


def _is_importable(workspace: Workspace, module: str) -> bool:
    """Whether the Python of the workspace, which runs opwest in builds, has a module."""
    python = Path(workspace.west).parent / "python3"
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
