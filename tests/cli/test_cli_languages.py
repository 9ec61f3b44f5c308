# SPDX-License-Identifier: Apache-2.0
"""Objects of Fortran, Ada, D, Nim and tcc: the pages of docs/compilers, debug information, refusals."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from foreign_project import HOST_TOOLS, foreign_project, rows_of_drafts, rows_of_pages
from opwest.cli.main import main
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
  integer :: k
  many = v
  do k = 1, h
    many = many + x(k) * i + a + b * c + w(2, 3)
  end do
  y = f * g + e * d > 0
end function
subroutine old(n, x)
  integer n
  real x(n), y(0:1)
  y = x(1:2)
  x = 2 * x + y(0)
end subroutine
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
MANY = "real(kind=4) (" + "integer(kind=4), " * 7 + "integer(kind=4) *, real(kind=4), real(kind=4) *, "
SIGNATURES = {
    "many": MANY + "logical(kind=1) *, real(kind=8), real(kind=4) *, struct pair *)",
    "old_": "void (integer(kind=4) *, real(kind=4) *)",
}
DESCRIPTOR = "an array descriptor: declare the array x(n) or x(*), not x(:)"
ADA = """
package Ops is
   type Level is range 0 .. 100 with Size => 32;
   type Vector is array (0 .. 7) of aliased Level;
   function Limit (X : Vector; Y : out Vector; Most : Level; N : Natural; B : Boolean) return Level
     with Export, Convention => C, External_Name => "limit";
end Ops;
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
int scale(ref const(float[2][3]) x, float* y, const(float)[] z, void* p, bool b, byte[4] v) { return b ? v[0] : 1; }
float copied(const(float)* x, int n) { return x[0 .. n].dup[0]; }
extern(D) int inner(int x) { return x; }
"""
NIM = """
proc total(x: ptr UncheckedArray[int32], n: int32): int32 {.exportc, cdecl.} =
  for i in 0 ..< n: result += x[i]
"""


def run(folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, check=True, capture_output=True)


def described(path: Path) -> dict[str, str]:
    known = signatures(inspect_object(path).members[0])
    assert not isinstance(known, str), known
    return {name: str(signature) for name, signature in known.items()}


def test_answers_of_the_pages(tmp_path, monkeypatch, opwest):
    need("cc", *(name for tool in HOST_TOOLS.values() for name in tool.needs))
    need_x86_64()
    project = foreign_project(HOST_TOOLS, "host_tools")
    monkeypatch.chdir(project.folder)
    assert sorted(rows_of_drafts(HOST_TOOLS, opwest)) == sorted(rows_of_pages(HOST_TOOLS))
    done = opwest("generate", project.write("manifest.yaml"), "-o", tmp_path / "app")
    assert (done.code, done.err) == (0, "")  # no warning of a missing const, which these languages do not record
    np.save(tmp_path / "x.npy", project.arrays["x"])
    words = ["run", str(tmp_path / "app"), "--host", "--output-dir", str(tmp_path)]
    assert main([*words, "--stream", f"x={tmp_path / 'x.npy'}"]) == 0
    for name in project.outputs:
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), project.arrays[name])


@pytest.mark.parametrize("flags", ["-O0", "-O2", "-O0 -gdwarf-4", "-O2 -gdwarf-4"])
def test_arguments_of_fortran_by_value_and_by_reference(tmp_path, opwest, flags):
    """Only the locations of scalars differ: in registers, on the stack, in lists of both versions of DWARF."""
    need("gfortran")
    (tmp_path / "ops.f90").write_text(FORTRAN)
    run(tmp_path, "gfortran", "-g", *flags.split(), "-c", "ops.f90")
    found = described(tmp_path / "ops.o")
    assert {name: found[name] for name in SIGNATURES} == SIGNATURES
    assert DESCRIPTOR in found["shapes"] and found["shapes"].endswith("real(kind=4) *)")
    opwest("init", tmp_path / "ops.o", "-o", tmp_path / "draft.yaml")
    text = (tmp_path / "draft.yaml").read_text()
    assert "{name: w, dtype: float32, shape: [4, 3]}" in text and f"shapes: parameter 1 is {DESCRIPTOR}" in text
    assert "__inside_MOD_hidden: a procedure of a Fortran module: declare it bind(C)" in text


def test_signatures_of_ada(tmp_path, opwest):
    need("gnatmake")
    spec, body = ADA.split("package body")
    (tmp_path / "ops.ads").write_text(spec)
    (tmp_path / "ops.adb").write_text("package body" + body)
    run(tmp_path, "gcc", "-c", "-O2", "-g", "-gnatp", "ops.adb")
    assert described(tmp_path / "ops.o")["limit"] == (
        "ops__level (ops__level * const, ops__level * const, const ops__level, const natural, const boolean)"
    )
    done = opwest("init", tmp_path / "ops.o", "-o", tmp_path / "draft.yaml")
    text = (tmp_path / "draft.yaml").read_text()
    assert (done.code, done.err) == (0, "") and "stateful" not in text and "ops__TvectorBIP: a part of an Ada" in text
    assert "{name: n, dtype: int32, scalar: true}" in text and "{name: b, dtype: bool, scalar: true}" in text


def test_signatures_of_d(tmp_path, opwest):
    need("ldc2")
    (tmp_path / "ops.d").write_text(D.replace(".dup", ""))
    run(tmp_path, "ldc2", "-g", "-betterC", "-c", "ops.d")
    opwest("init", tmp_path / "ops.o", "-o", tmp_path / "draft.yaml", "--symbols=*")
    text = (tmp_path / "draft.yaml").read_text()
    assert "scale: parameter 3 is a slice (const(float)[]): declare a pointer and a length" in text
    (tmp_path / "ops.d").write_text(D.replace("const(float)[] z, ", "").replace(".dup", ""))
    run(tmp_path, "ldc2", "-g", "-betterC", "-c", "ops.d")
    assert (
        described(tmp_path / "ops.o")["scale"]
        == "int (const float *, float *, ubyte *, bool, an array of byte by value)"
    )


@pytest.mark.parametrize(
    ("language", "compile", "library", "hint"),
    [
        ("f90", "gfortran -c", "Fortran's run-time library ('_gfortran_", "remove read, write, print, allocate"),
        ("adb", "gcc -c -O2", "Ada's run-time library ('__gnat_rcheck_CE_", "compile with -gnatp"),
        ("d", "ldc2 -c", "D's run-time library ('_d_", "compile with -betterC"),
        ("nim", "nim c -c --gc:none --noMain --nimcache:.", "Nim's run-time library ('", "-d:danger --os:standalone"),
    ],
)
def test_refusals(tmp_path, opwest, language, compile, library, hint):
    """One error for each library that operators cannot use; its symbols are not drafted as externals."""
    need({"f90": "gfortran", "adb": "gnatmake", "d": "ldc2", "nim": "nim"}[language])
    text = {"d": D, "nim": NIM, "f90": FORTRAN.replace("many = v", "print *, v\n  many = v"), "adb": ADA}[language]
    if language == "adb":
        spec, text = text.split("package body")
        text = "package body" + text
        (tmp_path / "ops.ads").write_text(spec)
    (tmp_path / f"ops.{language}").write_text(text)
    run(tmp_path, *compile.split(), f"ops.{language}")
    if language == "nim":
        run(tmp_path, "gcc", "-I/usr/lib/nim/lib", "-c", "@mops.nim.c", "-o", "ops.o")
    done = opwest("init", tmp_path / "ops.o", "-o", tmp_path / "draft.yaml")
    assert done.err.count("warning: ") == 1 and library.partition(" (")[0] in done.err and hint in done.err
    draft = (tmp_path / "draft.yaml").read_text()
    assert "externals" not in draft
    name = {"f90": "old_", "adb": "limit", "d": "copied", "nim": "total"}[language]
    manifest = "{version: 1, model: m, objects: [{target: x86-64, files: [ops.o]}], operators: {" + name
    manifest += ": {returns: void, args: [{name: x, dtype: int32, shape: [1]}, {name: y, dtype: int32, shape: [1], "
    manifest += "direction: out}]}}, run: {inputs: {x: {dtype: int32, shape: [1]}}, outputs: {y: {dtype: int32, "
    manifest += f"shape: [1]}}}}, steps: [{{call: {name}, args: [x, y]}}]}}}}"
    (tmp_path / "m.yaml").write_text(manifest)
    done = opwest("check", tmp_path / "m.yaml")
    errors = [line for line in done.err.splitlines() if "error: undefined" in line]
    assert len(errors) == 1 and library in errors[0] and hint in done.err, done.err
