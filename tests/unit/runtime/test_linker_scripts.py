# SPDX-License-Identifier: Apache-2.0
"""The linker scripts of models reach the preprocessor from every directory, through Zephyr's list of snippets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from requirements_support import need

MODULE = Path(__file__).resolve().parents[3] / "zephyr_module" / "cmake" / "opwest.cmake"
# As cmake/modules/extensions.cmake of Zephyr 4.2 adds a script to a file of snippets.
ZEPHYR = """\
set(snippets "${CMAKE_BINARY_DIR}/snippets.ld")
file(WRITE "${snippets}" "")
function(zephyr_linker_sources location path)
  file(RELATIVE_PATH relpath ${ZEPHYR_BASE}/include ${path})
  file(STRINGS ${snippets} lines)
  list(APPEND lines "#include \\"${relpath}\\"")
  list(SORT lines)
  string(REPLACE ";" "\\n;" lines "${lines}")
  file(WRITE ${snippets} ${lines} "\\n")
endfunction()
function(zephyr_include_directories folder)
  file(WRITE "${CMAKE_BINARY_DIR}/include_path" "${folder}")
endfunction()
"""


@pytest.mark.parametrize("name", ["plain", "größe", "モデル", "a b", "c++(1)"])
@pytest.mark.parametrize("linked", [False, True])
def test_every_script_is_included_once(tmp_path: Path, linked: bool, name: str) -> None:
    need("cmake")
    need("cc")
    real = tmp_path / "a" / "b" / "zephyr"
    (real / "include").mkdir(parents=True)
    base = tmp_path / "zephyr" if linked else real
    if linked:
        base.symlink_to(real)
    scripts = [tmp_path / name / folder / "model.ld" for folder in ("one", "two", "three")]
    text = MODULE.read_text(encoding="utf-8")
    function = text[text.index("function(opwest_linker_script") :]
    lines = [f'set(ZEPHYR_BASE "{base}")', ZEPHYR, function[: function.index("endfunction()") + len("endfunction()")]]
    for script in scripts:
        script.parent.mkdir(parents=True)
        script.write_text(f"content_{script.parent.name}\n")
        lines.append(f'opwest_linker_script("{script}")')
    (tmp_path / "try.cmake").write_text("\n".join(lines), encoding="utf-8")
    build = tmp_path / name / "build"
    build.mkdir()

    subprocess.run(["cmake", "-P", str(tmp_path / "try.cmake")], cwd=build, check=True)

    command = ["cc", "-E", "-P", "-x", "assembler-with-cpp", "-I", (build / "include_path").read_text("utf-8")]
    done = subprocess.run([*command, str(build / "snippets.ld")], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["content_one", "content_three", "content_two"]
