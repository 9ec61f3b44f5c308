# SPDX-License-Identifier: Apache-2.0
"""Types that C sources take from headers are compared with the manifest; others are named as not verified."""

import pytest

HEADER = """#include <stdint.h>
#define WINDOW 8
typedef int16_t sample_t;
struct average_state { int16_t last[WINDOW]; int32_t sum; uint32_t n; };
"""
SOURCE = """#include "filter.h"
int32_t average(struct average_state *state, const sample_t *samples, sample_t *y)
{
	y[0] = samples[0];
	state->n++;
	return 0;
}
"""
CPP = """#include <cstdint>
template <typename T> struct Average { T v[8]; };
using average_state = Average<std::int16_t>;
extern "C" int average(average_state *state, const std::int16_t *samples, std::int16_t *y) { return 0; }
"""
MANIFEST = """version: 1
model: alarm
objects: [{{files: [{file}]}}]
operators:
  average:
    args:
      - {{name: state, dtype: uint8, shape: [{size}], align: 4, struct: average_state, direction: inout}}
      - {{name: samples, dtype: {dtype}, shape: [4]}}
      - {{name: y, dtype: int16, shape: [1], direction: out}}
run:
  state: {{s: {{dtype: uint8, shape: [{size}], align: 4}}}}
  inputs: {{x: {{dtype: {dtype}, shape: [4]}}}}
  outputs: {{y: {{dtype: int16, shape: [1]}}}}
  steps: [{{call: average, args: [s, x, y]}}]
"""
DIFFERS = "5:3: error: average.c:2: function 'average' does not fit operator 'average': "
UNVERIFIED = "2:8: note: signatures not verified: average ("


@pytest.mark.parametrize(
    ("size", "dtype", "source", "expected"),
    [
        (24, "int16", SOURCE, ""),
        (
            16,
            "int16",
            SOURCE,
            f"{DIFFERS}argument 'state' is struct average_state with 16 bytes, it has 24 (shape: [24])",
        ),
        (
            24,
            "int32",
            SOURCE,
            f"{DIFFERS}argument 2 'samples' is int32 tensor (const int32_t *), the function takes const",
        ),
        (24, "int16", SOURCE.replace("filter.h", "absent.h"), f"{UNVERIFIED}average.c: unknown type 'sample_t')"),
        (
            16,
            "int16",
            CPP,
            f"{UNVERIFIED}average.cpp: types of C++ are not read; compile it with -g, or add 'signatures: ",
        ),
    ],
)
def test_types_of_sources(opwest, tmp_path, monkeypatch, size, dtype, source, expected):
    monkeypatch.chdir(tmp_path)
    file = "average.cpp" if source == CPP else "average.c"
    (tmp_path / "filter.h").write_text(HEADER)
    (tmp_path / file).write_text(source)
    (tmp_path / "m.yaml").write_text(MANIFEST.format(size=size, dtype=dtype, file=file))
    done = opwest("check", "m.yaml")
    assert (
        (done.code == 1) == (": error: " in expected) and f"m.yaml:{expected}" in done.err if expected else not done.err
    )
