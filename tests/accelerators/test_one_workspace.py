# SPDX-License-Identifier: Apache-2.0
"""A model with writable state has one open workspace at a time, also if threads open two at once.

test_fault_injection.py tests that each failure of open and run of such models permits the next open.
"""

from pathlib import Path

import pytest
from accelerators_support import PROGRAMS, THREADED, build, generate_quickly, play

OPERATOR = """#include <stdint.h>
int32_t count(const int32_t *x, int32_t *sum, int32_t *y);
int32_t count(const int32_t *x, int32_t *sum, int32_t *y)
{
	static int32_t total;

	total += *x;
	*sum = total;
	*y = *sum;
	return 0;
}
"""
MANIFEST = """version: 1
model: counting
operators:
  count:
    stateful: true
    args:
      - {name: x, dtype: int32, shape: [1]}
      - {name: sum, dtype: int32, shape: [1], direction: scratch}
      - {name: y, dtype: int32, shape: [1], direction: out}
run:
  inputs: {x: {dtype: int32, shape: [1], external: true}}
  outputs: {y: {dtype: int32, shape: [1], external: true}}
  steps: [{call: count, args: [x, y]}]

objects:
  - {files: [count.c]}
"""


@pytest.mark.parametrize("metadata", ["c", "llvm"])
def test_one_workspace_is_open(metadata: str, tmp_path: Path) -> None:
    (tmp_path / "count.c").write_text(OPERATOR)
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    app = generate_quickly([tmp_path / "manifest.yaml"], tmp_path / "app", metadata=metadata)
    assert "returns -EBUSY for others" in (app / "README.md").read_text().replace("\n", " ")
    header = (app / "models" / "counting" / "include" / "counting.h").read_text()
    assert "not reentrant, because operators have writable state: count." in header
    assert "@retval -EBUSY    Another workspace is open" in header
    program = build(app, tmp_path / "build", [PROGRAMS / "one_workspace.c"], THREADED)
    assert play(program) == "done\n"
