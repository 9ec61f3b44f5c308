# SPDX-License-Identifier: Apache-2.0
"""Two models with operators in C++, whose functions and classes have the same names, and an application in C++."""

from pathlib import Path

MODELS = {"times_two": 2, "times_five": 5}
"""Model and the factor that it multiplies its input by."""

_HEADER = """\
#ifndef OPS_H
#define OPS_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
int32_t scale(const int8_t *x, int8_t *y);
#ifdef __cplusplus
}

/* Inline functions: without a prefix the linker would keep one of both models. */
class Tile {
public:
	explicit Tile(const int8_t *data) : data_(data) {}
	int8_t at(int i) const;

private:
	const int8_t *data_;
};

__attribute__((noinline)) inline int8_t Tile::at(int i) const
{
	return (int8_t)(data_[i] * @factor@);
}

namespace kernels {
__attribute__((noinline)) inline int bias(int v)
{
	return v + 0 * @factor@;
}
template <typename T, int N> __attribute__((noinline)) T unit(T v)
{
	return (T)(v + N - N * @factor@ + N * (@factor@ - 1));
}
}
#endif
#endif
"""

_SOURCE = """\
#include <cstdint>
#include "ops.h"

namespace {
constexpr int count = 4;
}

/* The header declares it extern "C". */
int32_t scale(const int8_t *x, int8_t *y)
{
	const Tile tile(x);

	for (int i = 0; i < count; i++) {
		y[i] = (int8_t)kernels::unit<int, 1>(kernels::bias(tile.at(i)));
	}
	return 0;
}

int shared_name(int a)
{
	return a * @factor@;
}
"""

_SECOND = """\
#include <stdint.h>

extern int shared_name(int);

extern "C" int32_t negate(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = (int8_t)(shared_name(x[i]) / -@factor@);
	}
	return 0;
}
"""

_PLAIN = """\
#include <stdint.h>

int32_t copy(const int8_t *x, int8_t *y)
{
	for (int i = 0; i < 4; i++) {
		y[i] = x[i];
	}
	return 0;
}
"""

_MANIFEST = """\
version: 1
model: @model@
boards: [native_sim/native/64, mps2/an385]
objects:
  - {files: [ops.cpp, more/negate.cc, copy.c]}
operators:
  scale: &tensors
    args:
      - {name: x, dtype: int8, shape: [4]}
      - {name: y, dtype: int8, shape: [4], direction: out}
  negate: *tensors
  copy: *tensors
run:
  inputs: {x: {dtype: int8, shape: [4]}}
  outputs: {y: {dtype: int8, shape: [4]}}
  steps:
    - {call: scale, args: [x, a]}
    - {call: negate, args: [a, b]}
    - {call: copy, args: [b, y]}
tests:
  vectors: cases.npz
"""

_APPLICATION = """\
application:
  sources: [main.cpp, labels.cc, labels.hpp]
  console: ["times_two: -2 4 -6 8", "times_five: -5 10 -15 20"]
"""

_MAIN = """\
#include <stdio.h>
#include <stdint.h>

#include <times_two.h>
#include <times_five.h>
#ifdef __ZEPHYR__
#include <times_two_devicetree.h>
#include <times_five_devicetree.h>
#endif
#include "labels.hpp"

TIMES_TWO_WORKSPACE_DEFINE(two);
TIMES_FIVE_WORKSPACE_DEFINE(five);
static const struct times_two_devices two_devices = TIMES_TWO_DEVICES_DT_INIT;
static const struct times_five_devices five_devices = TIMES_FIVE_DEVICES_DT_INIT;

template <typename Inputs, typename Outputs, typename Workspace, typename Devices>
static void show(const char *name, int (*run)(const Inputs *, const Outputs *, Workspace *, const Devices *),
		 int opened, Workspace *workspace, const Devices *devices)
{
	static const int8_t x[4] = {1, -2, 3, -4};
	int8_t y[4] = {};
	const Inputs inputs = {x};
	const Outputs outputs = {y};
	const int result = opened != 0 ? opened : run(&inputs, &outputs, workspace, devices);

	printf("%s: %d %d %d %d", name, y[0], y[1], y[2], y[3]);
	printf(result == 0 ? "\\n" : " failed\\n");
}

int main(void)
{
	show(labels[0], times_two_run, times_two_open(&two, &two_devices), &two, &two_devices);
	show(labels[1], times_five_run, times_five_open(&five, &five_devices), &five, &five_devices);
	return 0;
}
"""

_LABELS = '#include "labels.hpp"\n\nconst char *const labels[2] = {"times_two", "times_five"};\n'


def write_models(folder: Path) -> list[Path]:
    """Write the manifests with their sources; return the manifests."""
    import numpy as np

    manifests = []
    for model, factor in MODELS.items():
        place = folder / model
        (place / "more").mkdir(parents=True)
        manifest = _MANIFEST if manifests else _MANIFEST + _APPLICATION
        texts = {
            "ops.h": _HEADER,
            "ops.cpp": _SOURCE,
            "more/negate.cc": _SECOND,
            "copy.c": _PLAIN,
            "manifest.yaml": manifest,
        }
        if not manifests:
            texts |= {"main.cpp": _MAIN, "labels.cc": _LABELS, "labels.hpp": "extern const char *const labels[2];\n"}
        for name, text in texts.items():
            (place / name).write_text(text.replace("@factor@", str(factor)).replace("@model@", model))
        x = np.array([1, -2, 3, -4], np.int8)
        np.savez(place / "cases.npz", x=x[None], y=(x * -factor).astype(np.int8)[None])
        manifests.append(place / "manifest.yaml")
    return manifests
