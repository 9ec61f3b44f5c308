# SPDX-License-Identifier: Apache-2.0
"""Drafts of objects of Ada, D, Fortran, Nim and numba, from their symbols: C code with the names of these compilers."""

import pytest
from drafting_support import draft, drafted
from objects_factory import compile_object
from opwest.base.diagnostics import Diagnostics, OpwestError
from opwest.drafting.draft import draft_manifest
from opwest.objects.inspect import inspect_object
from opwest.objects.linkability import judge

F = "int {}(const int *x, int *y) {{ return *y = *x; }}"
NUMBA = "_ZN8__main__5saxpyB2v1B5abcE3dEi"
LANGUAGES = {
    "ada": (
        '__asm__(".file \\"ops-more.adb\\""); short ops__more_E; ' + F.format("ops__more__vecIP"),
        {"ops__more__vecIP": "a part of an Ada package: export it with Convention => C and External_Name"},
    ),
    "d": (F.format("_D3ops5innerFiZi"), {"_D3ops5innerFiZi": "a D function: declare it extern(C)"}),
    "fortran": (
        F.format("__ops_MOD_inner"),
        {"__ops_MOD_inner": "a procedure of a Fortran module: declare it bind(C)"},
    ),
    "nim": (
        "int cmdCount; char **gEnv; void NimMain(void) {} " + F.format("add__ops_12"),
        dict.fromkeys(("NimMain", "add__ops_12"), "a Nim function: declare it {.exportc, cdecl.}"),
    ),
    "numba": (
        f"void *_ZN08NumbaEnv{NUMBA.removeprefix('_ZN')}; {F.format(NUMBA)} void NRT_decref(void *x) {{}}",
        {NUMBA: "a part of numba's code", "NRT_decref": "a part of numba's code"},
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_functions_that_compilers_add(tmp_path, language):
    """They are no operators, and the variables of these compilers are no state."""
    text, left_out = LANGUAGES[language]
    path = compile_object(tmp_path, text + F.format("scale"), flags=["-g"])
    lines = " ".join(draft(path).replace("\n#  ", "").split())
    manifest = drafted(path)
    assert manifest["operators"].keys() == {"scale"} and manifest["objects"] == [
        {"target": "x86-64", "files": ["operators.o"]}
    ]
    for name, reason in left_out.items():
        before = lines.partition(f": {reason}")[0]
        assert name in before.rpartition("# - ")[2].split(", ")
    assert judge(inspect_object(path).members[0]) == []


def test_state_in_objects_of_other_languages(tmp_path):
    """Other variables remain state; the hint depends on the compiler that adds them."""
    for text, hint in (
        ("int _D3ops12__ModuleInfoZ = 1;", "compile with -betterC"),
        ('int l __asm__("L.4") = 1;', "set `stateful: true`: tcc"),
        ('__asm__(".file \\"ops.adb\\""); short ops_E; int ops__count;', "make it const"),
        ("short ops_E;", "make it const"),
        ("int cmdCount;", "make it const"),
    ):
        (reason,) = judge(inspect_object(compile_object(tmp_path, text + F.format("scale"))).members[0])
        assert reason.kind == "state" and reason.hint and reason.hint.startswith(hint), text


def test_python_modules_and_symbols_with_dots_are_refused(tmp_path):
    module = (
        "void Py_DecRef(void *); void *_Znwm(unsigned long); void *PyInit_ops(void) { Py_DecRef(0); return _Znwm(1); }"
    )
    dotted = F.format("saxpy").replace("saxpy(", f'saxpy(const int *x, int *y) __asm__("cfunc.{NUMBA}");int saxpy(')
    for text, hint in (
        (
            module,
            "PyInit_ops: a module of Python: only Python's interpreter can call it: write the operator in C,",
        ),
        (dotted, f"cfunc.{NUMBA}: a cfunc of numba: rename it to 'saxpy' with objcopy --redefine-sym"),
    ):
        with pytest.raises(OpwestError, match="no operator found") as caught:
            draft(compile_object(tmp_path, text))
        assert hint in str(caught.value.diagnostics[0].hint)


def test_undefined_symbols_of_libraries_are_warnings(tmp_path):
    """numba's objects refer to Python's C API too; the C++ library is only named if no other library is."""
    for called, library, others in (
        ("NRT_Free PyErr_Clear", "symbols of numba's run-time library ('NRT_Free', 'PyErr_Clear')", []),
        ("Py_DecRef _Unwind_Resume", "symbols of Python's C API ('Py_DecRef', '_Unwind_Resume')", []),
        ("_Znwm", "symbol of the C++ standard library ('_Znwm')", []),
        ("_ZTV3Own newObject", "", ["_ZTV3Own", "newObject"]),
    ):
        text = "".join(f"void {name}(void);" for name in called.split()) + F.format("scale")
        text = text.replace("return", "".join(f"{name}();" for name in called.split()) + "return")
        faults, path = Diagnostics(), compile_object(tmp_path, text, flags=["-g"])
        manifest = draft_manifest([path], tmp_path / "m.yaml", None, [], faults).text
        found = [fault.message for fault in faults if "undefined" in fault.message]
        assert found == ([f"operators.o: undefined {library}"] if library else [])
        assert [name for name in called.split() if f"symbol: {name}," in manifest] == others


def test_generated_c_of_nim(tmp_path):
    """The macros of nimbase.h are declarations of functions, its types those of C."""
    (tmp_path / "ops.nim.c").write_text(
        '#include "nimbase.h"\nN_LIB_PRIVATE N_CDECL(NI32, scale)(NI8* input, NU8* output, NF32 by, NIM_BOOL up);\n'
        "N_LIB_EXPORT N_CDECL(NI32, scale)(NI8* input, NU8* output, NF32 by, NIM_BOOL up) { return 0; }\n"
        "N_LIB_PRIVATE N_NIMCALL(void, NimMainModule)(void) {\n{\n}\n}\nN_LIB_PRIVATE int cmdCount;\n"
    )
    manifest = drafted(tmp_path / "ops.nim.c")
    arguments = [(one["dtype"], one.get("direction")) for one in manifest["operators"]["scale"]["args"]]
    assert arguments == [("int8", None), ("uint8", "out"), ("float32", None), ("bool", None)]
    assert manifest["operators"].keys() == {"scale"} and "stateful" not in manifest["objects"][0]
