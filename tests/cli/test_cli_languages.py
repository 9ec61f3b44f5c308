# SPDX-License-Identifier: Apache-2.0
"""Objects of Fortran, Ada, D, Nim, tcc and Zig: pages of docs/compilers, debug information, refusals."""

import subprocess
import sys

import numpy as np
import pytest
from foreign_project import HOST_TOOLS, foreign_project, rows_of_drafts, rows_of_pages
from opwest.objects.dwarf_signatures import signatures
from opwest.objects.inspect import inspect_object
from requirements_support import need, need_x86_64

pytestmark = pytest.mark.slow
FORTRAN = """
real(c_float) function many(a, b, c, d, e, f, g, h, i, x, y, v, w, z) bind(C)
  use iso_c_binding
  type, bind(C) :: pair
    integer(c_int) :: first, second
  end type
  integer(c_int32_t), value :: a, b, c, d, e, f, g
  integer(c_int32_t), intent(in) :: h
  real(c_float), value :: i
  real(c_float), intent(in) :: x(h), w(3, 4)
  logical(c_bool), intent(inout) :: y
  real(c_double), value :: v
  type(pair), intent(in) :: z
  many = v + x(h) * i + a + b * c + w(2, 3) + f * g + e * d + z%first
  y = many > 0
end function
subroutine shapes(x, y) bind(C)
  use iso_c_binding
  real(c_float) :: x(:), y
  x = x * y
end subroutine
module inside
contains
subroutine hidden(x)
  real x(:)
  x = 2 * x
end subroutine
end module
"""
DESCRIPTOR = "an array descriptor: declare the array x(n) or x(*), not x(:)"
FORTRAN_SIGNATURES = {
    "many": "real(kind=4) (" + "integer(kind=4), " * 7 + "integer(kind=4) *, real(kind=4), real(kind=4) *, "
    "logical(kind=1) *, real(kind=8), real(kind=4) *, struct pair *)",
    "shapes": f"void ({DESCRIPTOR}, real(kind=4) *)",
    "__inside_MOD_hidden": f"void ({DESCRIPTOR})",
}
SPECIFICATION = """
package Ops is
   type Level is range 0 .. 100 with Size => 32;
   type Vector is array (0 .. 7) of aliased Level;
   function Limit (X : Vector; Y : out Vector; Most : Level; N : Natural; B : Boolean) return Level
     with Export, Convention => C, External_Name => "limit";
end Ops;
"""
ADA = """
package body Ops is
   function Limit (X : Vector; Y : out Vector; Most : Level; N : Natural; B : Boolean) return Level is
   begin
      for I in 0 .. N - 1 loop
         Y (I) := (if X (I) < Most and B then X (I) else Most);
      end loop;
      return Y (0);
   end Limit;
end Ops;
"""
D = """
extern(C):
int scale(ref const(float[2][3]) x, float* y, void* p, bool b, byte[4] v) { return b ? v[0] : 1; }
float slice(const(float)[] x) { return x[0]; }
float copied(const(float)* x, int n) { return x[0 .. n].dup[0]; }
"""
NIM = """
proc total(x: ptr UncheckedArray[int32], n: int32): int32 {.exportc, cdecl.} =
  for i in 0 ..< n: result += x[i]
"""
ZIG = """
export fn more(a: ?[*]const f32, b: bool, c: f16, d: *[2][3]f32, e: [*c]f32, f: ?*f32) void {
    if (a) |x| d[0][0] = x[0] + c;
    if (f) |q| q.* = if (b) e[0] else 1;
}
"""
# By language: what is needed, the name of the source, the commands.
GFORTRAN = ("gfortran", "ops.f90", "gfortran -c")
GNAT = ("gnatmake", "ops.adb", "gcc -c -O2")
LDC = ("ldc2", "ops.d", "ldc2 -c")
NIMC = ("nim", "ops.nim", "nim c -c --gc:none --noMain --nimcache:.")
ZIGC = ("ziglang", "ops.zig", f"{sys.executable} -m ziglang build-obj -target x86_64-freestanding -fno-strip -O")
LEVELS = "ops__level (ops__level * const, ops__level * const, const ops__level, const natural, const boolean)"
STATIC = "int (const float *, float *, ubyte *, bool, an array of byte by value)"
OPTIONAL = "void (const a type without description *, bool, f16, f32 *, f32 *, a type without description *)"
SIGNATURES = [
    (GFORTRAN, FORTRAN, "-g -O0", FORTRAN_SIGNATURES),
    (GFORTRAN, FORTRAN, "-g -O2", FORTRAN_SIGNATURES),
    (GFORTRAN, FORTRAN, "-g -O0 -gdwarf-4", FORTRAN_SIGNATURES),
    (GFORTRAN, FORTRAN, "-g -O2 -gdwarf-4", FORTRAN_SIGNATURES),
    (GNAT, ADA, "-g -gnatp", {"limit": LEVELS}),
    (LDC, D.replace(".dup", ""), "-g -betterC", {"scale": STATIC}),
    (ZIGC, ZIG, "Debug", {"more": OPTIONAL}),
    (ZIGC, ZIG, "ReleaseSmall", {"more": OPTIONAL}),
]
DRAFTS = {
    "ops.f90": ("w, dtype: float32, shape: [4, 3]}", f"shapes: parameter 1 is {DESCRIPTOR}", "__inside_MOD_hidden: "),
    "ops.adb": ("{name: n, dtype: int32, scalar: true}", "{name: b, dtype: bool, scalar: true}", "ops__TvectorBIP: "),
    "ops.d": ("slice: parameter 1 is a slice (const(float)[]): declare a pointer", "n, dtype: int32, scalar: true"),
    "ops.zig": ("{name: d, dtype: float32, shape: [2, 3], direction: out}", "returns: void"),
}


def compiled(folder, language, text, options=""):
    """Compile a source; return its object."""
    needed, name, command = language
    need(needed)
    (folder / "ops.ads").write_text(SPECIFICATION)
    (folder / name).write_text(text)
    commands = [[*command.split(), *options.split(), name]]
    if needed == "nim":
        commands += [["gcc", "-I/usr/lib/nim/lib", "-c", "@mops.nim.c", "-o", "ops.o"]]
    for words in commands:
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder / "ops.o"


def test_answers_of_the_pages(tmp_path, monkeypatch, opwest, succeed):
    need("cc", *(name for tool in HOST_TOOLS.values() for name in tool.needs))
    need_x86_64()
    project = foreign_project(HOST_TOOLS, "host_tools")
    monkeypatch.chdir(project.folder)
    assert sorted(rows_of_drafts(HOST_TOOLS, opwest)) == sorted(rows_of_pages(HOST_TOOLS))
    done = opwest("check", project.write("manifest.yaml"))
    unverified = "note: signatures not verified: tcc_scale (no debug information or header; add 'signatures: [HEADER]')"
    # There is no warning of a missing const, which these languages do not record.
    assert done.code == 0 and done.err.count("\n") == 1 and unverified in done.err
    succeed("generate", project.write("manifest.yaml"), "-o", tmp_path / "app")
    np.save(tmp_path / "x.npy", project.arrays["x"])
    succeed("run", tmp_path / "app", "--output-dir", tmp_path, "--stream", f"x={tmp_path / 'x.npy'}")
    for name in project.outputs:
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), project.arrays[name])


@pytest.mark.parametrize(("language", "text", "options", "expected"), SIGNATURES)
def test_signatures(tmp_path, opwest, language, text, options, expected):
    """Fortran's scalars by value and by reference differ only in their locations: registers, the stack, lists."""
    path = compiled(tmp_path, language, text, options)
    known = signatures(inspect_object(path).members[0])
    assert not isinstance(known, str) and {name: str(known[name]) for name in expected} == expected
    done = opwest("init", path, "-o", tmp_path / "draft.yaml")
    draft = (tmp_path / "draft.yaml").read_text()
    assert done.code == 0 and all(line.startswith("opwest: note: skipped ") for line in done.err.splitlines())
    assert "stateful" not in draft
    assert [part for part in DRAFTS[language[1]] if part not in draft.replace("\n#   ", " ")] == []


@pytest.mark.parametrize(
    ("language", "text", "function", "library", "hint"),
    [
        (GFORTRAN, FORTRAN.replace("many =", "print *, v\nmany ="), "shapes", "Fortran's", "remove read, write, print"),
        (GNAT, ADA, "limit", "Ada's", "compile with -gnatp"),
        (LDC, D, "copied", "D's", "compile with -betterC"),
        (NIMC, NIM, "total", "Nim's", "compile with -d:danger --os:standalone"),
    ],
)
def test_refusals(tmp_path, opwest, language, text, function, library, hint):
    """One error for a run-time library that operators cannot use; its symbols are not drafted as externals."""
    done = opwest("init", compiled(tmp_path, language, text), "-o", tmp_path / "draft.yaml")
    assert done.err.count("warning: ") == 1 and f"{library} run-time library" in done.err and hint in done.err
    assert "externals" not in (tmp_path / "draft.yaml").read_text()
    assert hint in opwest("inspect", tmp_path / "ops.o").out
    text = f"""{{version: 1, model: m, objects: [{{target: x86-64, files: [ops.o]}}], operators: {{{function}:
  {{args: [{{name: x, dtype: int32, shape: [1]}}, {{name: y, dtype: int32, shape: [1], direction: out}}]}}}},
  run: {{inputs: {{x: {{dtype: int32, shape: [1]}}}}, outputs: {{y: {{dtype: int32, shape: [1]}}}},
  steps: [{{call: {function}, args: [x, y]}}]}}}}"""
    (tmp_path / "m.yaml").write_text(text)
    done = opwest("check", tmp_path / "m.yaml")
    errors = [line for line in done.err.splitlines() if "error: undefined" in line]
    assert len(errors) == 1 and f"{library} run-time library" in errors[0] and hint in done.err, done.err
