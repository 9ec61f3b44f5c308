# SPDX-License-Identifier: Apache-2.0
"""The parameters that the text of a C function writes."""

import pytest
from opwest.objects.c_writes import written_parameters
from opwest.objects.inspect import inspect_object

HEAD = "struct s { int n; float v[4]; };\nint before(float *y) { y[0] = 1; return 0; }\n"
BODIES = {
    "y[0] = x[0];": {"y": "out"},
    "*y = *x; *y += 1;": {"y": "out"},
    "y[1] += x[1];": {"y": "inout"},
    "for (int i = 0; i < 4; i++) *y++ = *x++;": {"y": "out"},
    "(*y)++; float t = 2 * *y;": {"y": "inout"},
    "if (*x > y[0]) y[0] = *x;": {"y": "inout"},
    "memcpy(y, x, 4);": {"y": "out"},
    "y[(int)x[0]] <<= 2; ++x[1];": {"x": "inout", "y": "inout"},
    "c->v[2] = 1; *y = c->n;": {"c": "inout", "y": "out"},
    "float *p = &y[1]; if (y == x) return 0; return y[0] == x[0] && *x * *y <= 1;": {},
    'other.y[0] = 1; c->y = x; /* y[0] = 1; */ "y[0] = 1";': {"c": "inout"},
    "return f(y) * (*x) * y[1];": {},
    "": {},
}


@pytest.mark.parametrize("suffix", ["c", "cpp"])
@pytest.mark.parametrize(("body", "written"), BODIES.items(), ids=BODIES)
def test_written_parameters(body, written, suffix, tmp_path):
    language = 'extern "C" ' if suffix == "cpp" else ""
    path = tmp_path / f"f.{suffix}"
    path.write_text(f"{HEAD}{language}int\nf(struct s *c, float x[4], float *y, int n)\n{{ {body} return n; }}\n")
    source = inspect_object(path)
    (function,) = (function for function in source.functions if function.name == "f")
    assert written_parameters(source, function) == written
