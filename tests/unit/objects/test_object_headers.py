# SPDX-License-Identifier: Apache-2.0
"""Headers that operators include: copied with the model, and inputs of the build that generates it."""

from pathlib import Path

import pytest
from opwest.cli.main import main
from opwest.project.writer import write_dependencies

MANIFEST = """version: 1
model: tiny
objects:
  - {files: [src/f.c]}
  - {target: x86-64, files: [objects/x86-64/f.o], optional: true}
operators: {f: {args: [{name: y, dtype: float32, shape: [1], direction: out}]}}
run: {inputs: {}, outputs: {y: {dtype: float32, shape: [1]}}, steps: [{call: f, args: [y]}]}
"""
OPERATOR = """#include <stdint.h>
{}
int32_t f(float *y)
{{
	*y = LEVEL;
	return 0;
}}
"""


@pytest.fixture
def project(tmp_path):
    for folder in ("src", "common"):
        (tmp_path / folder).mkdir()
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    (tmp_path / "src" / "f.c").write_text(OPERATOR.format('#include "../common/level.h"'))
    (tmp_path / "common" / "level.h").write_text('#include "deep.h"\n')
    (tmp_path / "common" / "deep.h").write_text('#include "level.h"\n#define LEVEL 3\n')
    return tmp_path


def generate(project, capsys):
    """Return the exit code, the messages, and the inputs relative to the project."""
    listed = project / "inputs"
    code = main(["generate", str(project / "manifest.yaml"), "-o", str(project / "app"), "--inputs", str(listed)])
    inputs = {Path(line).relative_to(project).as_posix() for line in listed.read_text().splitlines()}
    return code, capsys.readouterr().err, inputs


def test_headers_are_copied_and_are_inputs(project, capsys):
    code, text, inputs = generate(project, capsys)
    assert code == 0 and "includes" not in text
    assert inputs >= {"manifest.yaml", "src/f.c", "common/level.h", "common/deep.h"}
    assert (project / "app/models/tiny/objects/any/common/deep.h").is_file()


@pytest.mark.parametrize(
    "name", ["absent.h", "a" * 400 + ".h", "../../outside.h", "/etc/hostname", "src/f.c", "deep.h/x.h"]
)
def test_header_outside_its_directory(project, capsys, name):
    (project / "src" / "f.c").write_text(OPERATOR.format(f'#define LEVEL 1\n#include "{name}"'))
    code, text, inputs = generate(project, capsys)
    assert code == 0
    assert f"manifest.yaml:4:14: note: src/f.c:3: header {name!r} not found in the manifest's directory" in text
    # The folder changes when the header comes: the build that generates the model runs again then.
    assert name.startswith(("/", "..")) or "src" in inputs
    assert not [path for path in (project / "app/models").rglob("*.h") if "outside" in path.name]


def test_headers_of_the_runtime(project, capsys):
    """The build provides these headers: TVM's headers include each other in quotes."""
    lines = '#define LEVEL 1\n#include "tvm/runtime/c_backend_api.h"\n#include "opwest/status.h"'
    (project / "src" / "f.c").write_text(OPERATOR.format(lines))
    code, text, _ = generate(project, capsys)
    assert code == 0 and "includes" not in text


def test_absolute_path_into_the_directory(project, capsys):
    name = project / "common" / "level.h"
    (project / "src" / "f.c").write_text(OPERATOR.format(f'#include "{name}"'))
    code, text, _ = generate(project, capsys)
    assert code == 0 and f"src/f.c:2: header '{name}' not found in the manifest's directory" in text


def test_included_source_is_also_compiled(project, capsys):
    (project / "src" / "g.c").write_text("#ifdef G\nint32_t g(void);\n#endif\n")
    (project / "src" / "f.c").write_text(OPERATOR.format('#define LEVEL 1\n#include "g.c"'))
    (project / "manifest.yaml").write_text(MANIFEST.replace("[src/f.c]", "[src/f.c, src/g.c]"))
    assert generate(project, capsys)[0] == 0
    assert "src/g.c" in (project / "app/models/tiny/model.cmake").read_text()


def test_directory_of_a_missing_optional_object_is_an_input(project, capsys):
    assert "." in generate(project, capsys)[2]
    (project / "objects").mkdir()
    assert "objects" in generate(project, capsys)[2]


def test_depfile_escapes_paths(tmp_path):
    """The syntax of make, which ninja and CMake read too: a space and # with a backslash, $ twice."""
    file = tmp_path / "a b.stamp.d"
    write_dependencies(file, [tmp_path / "c d.c", tmp_path / "e#f$g.h"])
    place = str(tmp_path)
    assert file.read_text() == f"{place}/a\\ b.stamp: \\\n  {place}/c\\ d.c \\\n  {place}/e\\#f$$g.h\n"
