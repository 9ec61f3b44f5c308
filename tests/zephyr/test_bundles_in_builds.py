# SPDX-License-Identifier: Apache-2.0
"""opwest_add_bundle(): bundles made in the build of the firmware."""

import shutil
import subprocess
from pathlib import Path

import pytest
from bundle_support import PROGRAM, digits_model, private_key, slots_of
from cover import configured
from opwest.bundles.explanation import as_json
from opwest.bundles.format import unpack
from zephyr_support import ROOT

pytestmark = pytest.mark.zephyr
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
def test_bundles_are_made_with_the_toolchain_of_the_build(workspace, tmp_path):
    # The Python of the workspace runs opwest in builds.
    python = Path(workspace.west).parent / "python3"
    signs = subprocess.run([python, "-c", "import cryptography"], capture_output=True).returncode == 0
    app = tmp_path / "bundled"
    digits_model(app / "digits")
    digits_model(app / "other")
    (app / "boards").mkdir()
    shutil.copy(slots_of("mps2/an385"), app / "boards")
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
    assert "Making bundle" not in built.rebuilt()
    assert bundle.stat().st_mtime_ns == before
    manifest = app / "digits" / "manifest.yaml"
    manifest.write_text(manifest.read_text().replace("arg_max:", "arg_max:\n    description: changed", 1))
    assert "Making bundle first" in built.rebuilt()
    assert unpack(bundle.read_bytes()).content.image != first.content.image
    assert compiled.stat().st_mtime_ns == of_main
    manifest.write_text(manifest.read_text().replace("scale: 1.0", "scale: 2.0", 1))
    built.rebuilt()
    other = unpack(bundle.read_bytes())
    assert other.content.interface_hash != first.content.interface_hash
    assert compiled.stat().st_mtime_ns > of_main
    assert "digits_run" not in built.symbols, "the model is not part of the firmware"
