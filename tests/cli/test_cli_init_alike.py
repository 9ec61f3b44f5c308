# SPDX-License-Identifier: Apache-2.0
"""`opwest init` drafts the same operators from C, from an object with -g, and from a stripped one with a header."""

import re
import subprocess

from requirements_support import need

TARGET_DEPENDENT = ("hash", "wide")
"""Functions with `size_t` and `long`: their dtype is known in objects only."""
SOURCE = """
#include <stdint.h>
#include <stdbool.h>
#include <stddef.h>
struct biquad_state { float z[2]; int32_t n; };
struct tiny { uint8_t a, b; };
typedef struct { float gain; float bias; } config_t;
typedef float sample_t;
enum mode { MODE_A, MODE_B };
struct device;
struct npu;
float mean(const float *x, int n) { return x[0] * n; }
uint8_t top(const float *x) { return x[0] > 1; }
int32_t argmax(const float *x) { return x[0] > 1; }
int count(const int16_t *x, int16_t limit) { return x[0] > limit; }
bool any(const uint8_t *x) { return x[0]; }
double energy(const double *x, double scale) { return x[0] * scale; }
int64_t total(const int32_t *x, unsigned n) { return x[n]; }
uint32_t hash(const uint8_t *x, size_t n) { return x[n]; }
void scale(const float *x, float by, float *y) { y[0] = x[0] * by; }
int32_t biquad(struct biquad_state *s, const float *x, float *y) { s->n++; y[0] = x[0] + s->z[0]; return 0; }
float envelope(struct biquad_state *s, const float *x) { s->n++; return x[0] + s->z[0]; }
int32_t configured(const config_t *c, const float *x, float *y) { y[0] = x[0] * c->gain; return 0; }
int32_t launch(const int8_t *x, int8_t *y, const struct device *dev) { y[0] = x[0]; return dev != 0; }
int32_t vendor(const int8_t *x, int8_t *y, struct npu *npu) { y[0] = x[0]; return npu != 0; }
int32_t last(const int8_t *x, int8_t *y, struct tiny *t) { y[0] = x[0]; t->a++; return 0; }
void samples(const sample_t *x, sample_t *y) { y[0] = x[0]; }
void moded(const float *x, enum mode m, float *y) { y[0] = x[0] * m; }
signed char sign(const signed char *x) { return x[0]; }
unsigned short crc(const unsigned char *x, unsigned short seed) { return x[0] + seed; }
void inplace(float *x) { x[0] *= 2; }
void matrix(const float x[4][8], float y[8][4]) { y[0][0] = x[0][0]; }
float dot(float *a, float *b, int n) { return a[0] * b[0] * n; }
void flags(const _Bool *x, _Bool invert, char *y) { y[0] = x[0] ^ invert; }
long wide(const long *x) { return x[0]; }
"""


def operators(text):
    """Return the lines of each drafted operator, without comments and shapes, which only C has."""
    found = {}
    for block in re.split(r"\n  (?=\w+:)", text.partition("\noperators:\n")[2].partition("\nrun:")[0]):
        name = block.strip().partition(":")[0]
        lines = [
            re.sub(r"\s*#.*|, shape: \[\d+, \d+\]|, shape: (&\w+ )?FILL_IN", "", line) for line in block.splitlines()
        ]
        found[name] = [line.strip() for line in lines[1:] if line.strip()]
    return found


def test_sources_objects_and_headers_give_the_same_draft(tmp_path, succeed):
    need("gcc", "strip")
    (tmp_path / "s.c").write_text(SOURCE)
    (tmp_path / "s.h").write_text(re.sub(r" \{ (?=.*return|.*=).*\}$", ";", SOURCE, flags=re.MULTILINE))
    subprocess.run(["gcc", "-g", "-O1", "-c", "s.c", "-o", "s.o"], cwd=tmp_path, check=True)
    subprocess.run(["strip", "--strip-debug", "s.o", "-o", "plain.o"], cwd=tmp_path, check=True)
    drafts = []
    for files in (["s.c"], ["s.o"], ["plain.o", "s.h"]):
        succeed("init", *(tmp_path / name for name in files), "-o", tmp_path / f"{files[0]}.yaml")
        drafts.append(operators((tmp_path / f"{files[0]}.yaml").read_text()))
    assert drafts[0].keys() == drafts[1].keys() == drafts[2].keys() and len(drafts[0]) > 23
    for name in drafts[1].keys() - set(TARGET_DEPENDENT):
        assert drafts[0][name] == drafts[1][name] == drafts[2][name], name
