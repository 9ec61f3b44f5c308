# SPDX-License-Identifier: Apache-2.0
"""Drafts for tests, as text and as YAML."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
import yamlcore
from opwest.base.diagnostics import Diagnostics
from opwest.drafting.draft import draft_manifest

SOURCE = """
#ifdef __riscv
typedef signed char int8_t; typedef unsigned short uint16_t; typedef long int int32_t;
#else
#include <stdint.h>
#endif
struct device; struct npu_handle;
int32_t conv(const int8_t *image, const int8_t *weight, int8_t *features)
{ features[0] = image[0] + weight[0]; return 0; }
void scale(const uint16_t *features, uint16_t *new, float factor, _Bool fast) { new[0] = features[0] * factor + fast; }
int32_t npu(const int8_t *x, int8_t *y, const struct device *dev) { y[0] = x[0] + (dev != 0); return 0; }
int32_t vendor(const int8_t *x, int8_t *y, struct npu_handle *h) { y[0] = x[0] + (h != 0); return 0; }
void relu(float *data) { data[0] = 1; }
"""
UNFIT = {
    "float *leak(float *x) { return x; }": "return type float *, expected void or a number",
    "void helper(const int *a, int b) { (void)a[b]; }": "no tensor is written, and nothing is returned",
    "int twice(int ***a) { return ***a; }": "parameter 1 is a pointer to a pointer",
    "int variadic(char *x, ...) { return *x; }": "variable arguments",
    "int nothing(void) { return 1; }": "no parameter is a tensor",
    "int back(int *a, int (*f)(int)) { return f(a[0]); }": "parameter 2 is a pointer to a function",
    "struct s; int first(struct s *s, int *a) { return s ? *a : 0; }": "parameter 1 is ",
    "struct s { int a; }; int value(int *a, struct s s) { return s.a + *a; }": "parameter 2 is a struct",
}


def draft(
    *paths: Path,
    folder: Path | None = None,
    model: str | None = None,
    targets: tuple[str, ...] = (),
    patterns: Sequence[str] = (),
) -> str:
    """Return the text of a draft in the directory of the first file."""
    faults = Diagnostics()
    return draft_manifest(paths, (folder or paths[0].parent) / "manifest.yaml", model, targets, faults, patterns).text


def drafted(*paths: Path, **options: Any) -> dict[str, Any]:
    return yaml.load(draft(*paths, **options), Loader=yamlcore.CoreLoader)


def arguments(manifest: dict[str, Any], operator: str) -> list[str]:
    """Return the arguments of an operator, one line each: name dtype direction-or-scalar."""
    args = manifest["operators"][operator]["args"]
    return [f"{a['name']} {a['dtype']} {'scalar' if a.get('scalar') else a.get('direction', 'in')}" for a in args]
