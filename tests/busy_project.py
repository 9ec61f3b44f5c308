# SPDX-License-Identifier: Apache-2.0
"""A model whose first operator calls pause_here() of the test, and whose state counts the runs."""

from pathlib import Path

OPERATORS = """#include <stdint.h>
void pause_here(void);
int32_t triple(const int32_t *x, int32_t *y);
int32_t triple(const int32_t *x, int32_t *y)
{
	pause_here();
	for (int i = 0; i < 64; i++) {
		y[i] = 3 * x[i];
	}
	return 0;
}
int32_t total(const int32_t *x, int32_t *count, int32_t *y);
int32_t total(const int32_t *x, int32_t *count, int32_t *y)
{
	y[0] = 0;
	for (int i = 0; i < 64; i++) {
		y[0] += x[i];
	}
	y[1] = ++count[0];
	return 0;
}
"""
MANIFEST = """version: 1
model: busy
operators:
  triple: {{args: [{{name: x, dtype: int32, shape: [64]}}, {{name: y, dtype: int32, shape: [64], direction: out}}]}}
  total:
    args:
      - {{name: x, dtype: int32, shape: [64]}}
      - {{name: count, dtype: int32, shape: [1], direction: inout}}
      - {{name: y, dtype: int32, shape: [2], direction: out}}
externals: [{{symbol: pause_here, from: the test}}]
run:
  inputs: {{x: {{dtype: int32, shape: [64], external: true}}}}
  outputs: {{y: {{dtype: int32, shape: [2], external: true}}}}
  state: {{count: {{dtype: int32, shape: [1]}}}}
  steps:
    - {{call: triple, args: [x, tripled]}}
    - {{call: total, args: [tripled, count, y]}}
{checks}
objects:
  - {{files: [operators.c]}}
"""


def write_manifest(folder: Path, checks: str = "", more: str = "") -> Path:
    """Write the manifest and its operators; `checks` are lines of `run`, `more` are further keys."""
    (folder / "operators.c").write_text(OPERATORS)
    (folder / "manifest.yaml").write_text(MANIFEST.format(checks=checks) + more)
    return folder / "manifest.yaml"
