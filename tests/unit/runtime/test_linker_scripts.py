# SPDX-License-Identifier: Apache-2.0
"""The paths of linker scripts, if ZEPHYR_BASE is a symbolic link: the preprocessor follows it before `..`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from requirements_support import need

MODULE = Path(__file__).resolve().parents[3] / "zephyr_module" / "cmake" / "opwest.cmake"
# As zephyr_linker_sources() of cmake/modules/extensions.cmake computes the path.
SCRIPT = """\
function(zephyr_linker_sources location file)
  file(RELATIVE_PATH relpath ${ZEPHYR_BASE}/include ${file})
  message("${location} ${relpath}")
endfunction()
"""


@pytest.mark.parametrize("linked", [False, True])
def test_included_path_exists_below_a_linked_tree(tmp_path: Path, linked: bool) -> None:
    need("cmake")
    real = tmp_path / "a" / "b" / "c" / "zephyr"
    (real / "include").mkdir(parents=True)
    base = tmp_path / "zephyr" if linked else real
    if linked:
        base.symlink_to(real)
    notes = tmp_path / "build" / "opwest_notes.ld"
    notes.parent.mkdir()
    notes.write_text("text")
    text = MODULE.read_text()
    function = text[text.index("function(opwest_linker_script") :]
    function = function[: function.index("endfunction()") + len("endfunction()")]
    script = tmp_path / "try.cmake"
    script.write_text(f'{SCRIPT}{function}\nset(ZEPHYR_BASE "{base}")\nopwest_linker_script("{notes}")\n')

    done = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True, check=True)

    location, path = done.stderr.split()
    assert location == "SECTIONS"
    assert (base / "include" / path).read_text() == "text"
