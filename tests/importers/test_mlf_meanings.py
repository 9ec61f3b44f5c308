# SPDX-License-Identifier: Apache-2.0
"""Code whose text alone does not show its meaning: main stays one operator, with the reason.

Each case would be unpacked if the operator were read without the part that the reason shows.
"""

import mlf_made as made
import mlf_mains as mains
import pytest
from mlf_mains import STEPS, call, changed, lets
from opwest.importers.mlf import Options, import_mlf

WIDEN = "TVM_DLL int32_t tvmgen_default_widen("
WINDOW = "TVM_DLL int32_t tvmgen_default_window"
WIDENED = "      T_out[cse_var_1] = (int16_t)"
SUM = "    int32_t sum = 0;\n"
NAME = "global_workspace_5_var"
PADDED = f"  void* padded_let = (&({NAME}[256]));\n"
MEMORY = "((int16_t*)padded_let)[((i * 8) + j)]"
WHOLE = f"'tvmgen_default_window' uses '{NAME}' other than at constant offsets"
ONCE = "'tvmgen_default_widen' has more than one definition, or one in a comment or a conditional directive"
OTHER = "TVM_DLL int32_t tvmgen_default_widen(int8_t* p0, int16_t* T_out, uint8_t* c, uint8_t* w) {\n  return 0;\n}\n"
KEEP = "static void keep(int16_t* p) {\n  static int16_t* kept;\n  kept = p;\n}\n"


def usmp(*pairs):
    """Return the network with another lib1."""
    return changed(mains.usmp(), *pairs)


def before(text):
    """Return the network with a text before the operators."""
    return usmp((WIDEN, text + WIDEN))


def first(text):
    """Return the network with statements at the start of the operator `widen`."""
    return usmp(("  void* table_let", f"{text}\n  void* table_let"))


def both(text, statement):
    """Return the network with a text before the operators, and a statement in `widen`."""
    return changed(first(statement), (WIDEN, text + WIDEN))


def header(text, statement="(void)p0;"):
    """Return the network with a header of the archive and a statement in `widen`."""
    files = changed(first(statement), ("#define TVM_EXPORTS\n", '#define TVM_EXPORTS\n#include "own.h"\n'))
    return {**files, "codegen/host/include/own.h": text.encode()}


def allocated(*pairs):
    """Return the network with a constant array of main, and another lib1."""
    return changed(mains.allocated(), *pairs)


def whole(statement):
    """Return the network with a use of the workspace in `add`, which has no memory in it."""
    return usmp(
        (
            "  for (int32_t i = 0; i < 64; ++i) {\n    T_out[i] = (int8_t)",
            f"{statement}\n  for (int32_t i = 0; i < 64; ++i) {{\n    T_out[i] = (int8_t)",
        )
    )


HIDDEN = {
    "a directive": (first("#ifdef FAST\n  p0 = 0;\n#endif"), "'tvmgen_default_widen' contains `#ifdef`"),
    "a directive after a comment": (first("/* */ #if 0\n/* */ #endif"), "'tvmgen_default_widen' contains `#if`"),
    "a directive in a comment of two lines": (
        first("  // one \\\n /* two\n#if 0\n#endif\n  // */"),
        "'tvmgen_default_widen' contains `#if`",
    ),
    "assembly": (first('  __asm__ volatile("" : : "r"(T_out));'), "'tvmgen_default_widen' contains `__asm__`"),
    "a vector type": (
        first("  int16_t __attribute__((vector_size(16)))* v = (void*)T_out;"),
        "'tvmgen_default_widen' contains `__attribute__`",
    ),
    "a macro for a type": (before("#define int16_t int32_t\n"), "'tvmgen_default_widen' uses the macro 'int16_t'"),
    "a macro for a keyword": (before("#define for while (0) for\n"), "'tvmgen_default_widen' uses the macro 'for'"),
    "a macro of a header": (header("#define cse_var_1 0\n"), "'tvmgen_default_widen' uses the macro 'cse_var_1'"),
    "a type of the source": (
        before("typedef long long int8_t;\n"),
        "'tvmgen_default___tvm_main__' uses the type 'int8_t', which default_lib1.c defines",
    ),
    "a type of a header": (
        header("typedef struct { int n, m; void* buf; } cmsis_nn_context;\n", "cmsis_nn_context c;"),
        "'tvmgen_default_widen' uses the type 'cmsis_nn_context', which own.h defines",
    ),
    "a header with an error": (header("#define X\nint32_t f(int32_t {;\n"), "own.h cannot be parsed"),
    "a macro in an alternative that the grammar skips": (
        before(
            "#ifdef FAST\nint32_t g(int32_t a) {\n#else\n#define sum 0\nint32_t g(void) {\n#endif\n  return 0;\n}\n"
        ),
        "default_lib1.c cannot be parsed without a preprocessor",
    ),
    "a source with an error": (before("int32_t f(int32_t {;\n"), "default_lib1.c cannot be parsed"),
    "a definition that depends on a macro": (
        changed(before(f"#ifdef FAST\n{OTHER}#else\n"), (WINDOW, f"#endif\n{WINDOW}")),
        ONCE,
    ),
    "a definition in a directive": (usmp((WIDEN, f"#ifdef FAST\n{WIDEN}"), (WINDOW, f"#endif\n{WINDOW}")), ONCE),
    "a definition in a comment": (before(f"/*\n{OTHER}*/\n"), ONCE),
}
KEPT_VALUES = {
    "a static variable": (
        first("  static int32_t k = 1;"),
        "'tvmgen_default_widen' contains the variable `static int32_t k = 1;`",
    ),
    "a static pointer to constants": (
        first("  static const int8_t* k = 0;"),
        "'tvmgen_default_widen' contains the variable `static const int8_t* k = 0;`",
    ),
    "a variable of another source": (
        first("  extern int16_t* k;"),
        "'tvmgen_default_widen' contains the variable `extern int16_t* k;`",
    ),
    "a variable of file scope": (
        both("static int16_t* kept;\n", "  kept = T_out;"),
        "'tvmgen_default_widen' uses the variable 'kept' of file scope",
    ),
    "a pointer to constants of file scope": (
        both("static const int8_t* kept;\n", "  kept = p0;"),
        "'tvmgen_default_widen' uses the variable 'kept' of file scope",
    ),
    "a variable of a header": (
        header("extern int16_t* kept;\n", "  kept = T_out;"),
        "'tvmgen_default_widen' uses the variable 'kept' of file scope",
    ),
    "a variable without a declaration": (
        first("  kept.at[0] = T_out;"),
        "'tvmgen_default_widen' assigns 'kept', which it does not declare",
    ),
    "a variable of a function that is called": (
        both(KEEP, "  keep(T_out);"),
        "'keep' contains the variable `static int16_t* kept;`",
    ),
    "a variable of a function in a header with a guard": (
        header(f"#ifndef OWN_H\n#define OWN_H\n{KEEP}#endif\n", "  keep(T_out);"),
        "'keep' contains the variable `static int16_t* kept;`",
    ),
    "a function that is called by another one": (
        both(KEEP + "static float again(int16_t* p) {\n  keep(p);\n  return 0;\n}\n", "  while (again(T_out) > 0) {}"),
        "'keep' contains the variable `static int16_t* kept;`",
    ),
}
MEMORY_CASES = {
    "a pool that is compared": (
        whole("  if (global_workspace_7_var == NULL) {\n    return -1;\n  }"),
        "'tvmgen_default_add' uses 'global_workspace_7_var' other than at constant offsets",
    ),
    "a pool that is marked as unused": (
        whole("  (void)global_workspace_7_var;"),
        "'tvmgen_default_add' uses 'global_workspace_7_var' other than at constant offsets",
    ),
    "a pool of wide elements": (usmp((f"uint8_t* {NAME}", f"int16_t* {NAME}")), WHOLE),
    "a pool with a cast": (usmp((f"(&({NAME}[256]))", f"(&(((int16_t*){NAME})[128]))")), WHOLE),
    "a pool with a cast in main": (
        mains.usmp(
            main=lets(0, 128).replace("global_workspace_1_var[128]", "((int16_t*)global_workspace_1_var)[128]") + STEPS
        ),
        "main contains `&(((int16_t*)global_workspace_1_var)[128])`",
    ),
    "a pool with another pointer in main": (
        mains.usmp(
            main="  int16_t* wide = (int16_t*)global_workspace_1_var;\n"
            + lets(0, 128).replace("global_workspace_1_var[128]", "wide[64]")
            + STEPS
        ),
        "main contains `int16_t* wide = (int16_t*)global_workspace_1_var;`",
    ),
    "an offset that its type cannot contain": (
        mains.usmp(main=lets(0, "(int8_t)384") + STEPS),
        "main contains `global_workspace_1_var[(int8_t)384]`",
    ),
    "a pool of structures in main": (
        usmp(("uint8_t* global_workspace_1_var) {", "struct line* global_workspace_1_var) {")),
        "main's parameter 'global_workspace_1_var' points to line, not to bytes",
    ),
    "a pool of wide elements in main": (
        usmp(("uint8_t* global_workspace_1_var) {", "int16_t* global_workspace_1_var) {")),
        "main's parameter 'global_workspace_1_var' points to int16_t, not to bytes",
    ),
    "memory before a tensor": (
        usmp(("p0[(((i * 8) + j) - 8)]", "p0[(((i * 8) + j) - 9)]")),
        "an operator can access memory before the start of 'p0'",
    ),
    "memory of an operator that is read first": (
        usmp((PADDED, f"{PADDED}  int16_t saved = ((int16_t*)padded_let)[0];\n  T_out[0] = saved;\n")),
        f"'tvmgen_default_window' reads '{NAME}[256]' before it writes it",
    ),
    "memory of an operator that is written in part": (
        usmp(("i < 10; ++i", "i < 9; ++i")),
        f"'tvmgen_default_window' writes 144 bytes of '{NAME}[256]' and reads 160 bytes",
    ),
    "a tensor that is written in part": (
        usmp(("  for (int32_t i = 0; i < 8; ++i) {", "  for (int32_t i = 0; i < 7; ++i) {")),
        "step 0 writes 112 bytes of 'sid_1', but steps read 128 bytes",
    ),
    "a tensor that is written under a condition": (
        usmp((WIDENED, f"      if (p0[0] > 0) {WIDENED.strip()}")),
        "step 0 writes 0 bytes of 'sid_1', but steps read 128 bytes",
    ),
    "a tensor that its first step reads before": (
        usmp((WIDENED + "(", WIDENED + "(T_out[cse_var_1] + ")),
        "step 0 reads 'sid_1' before a step writes it",
    ),
}
TABLE = "static const int16_t table[8] = {"
DEPENDS = "main passes 'table', whose values depend on the preprocessor"
ARRAYS = {
    "an array in a comment": (allocated((TABLE, f"/*\n{TABLE}0, 1}};\n*/\n{TABLE}")), DEPENDS),
    "an array in a comment before another form": (
        allocated((TABLE, f"/*\n{TABLE}0, 1}};\n*/\nconst static {TABLE[13:]}")),
        DEPENDS,
    ),
    "an array in a directive": (
        allocated((TABLE, f"#ifdef FAST\n{TABLE}"), ("};\nTVM_DLL", "};\n#endif\nTVM_DLL")),
        DEPENDS,
    ),
    "an array with a macro": (allocated((TABLE, f"#define int16_t int32_t\n{TABLE}")), DEPENDS),
    "an array of another source": (
        {
            **allocated((TABLE, f"extern {TABLE[7:-4]};\nstatic const int16_t other[8] = {{")),
            "codegen/host/src/default_lib2.c": f"#include <stdint.h>\n{TABLE}0, 1}};\n".encode(),
        },
        "main contains `table`",
    ),
}
CASES = HIDDEN | KEPT_VALUES | MEMORY_CASES | ARRAYS


@pytest.mark.parametrize("case", CASES)
def test_main_stays_one_operator(case, tmp_path):
    files, reason = CASES[case]
    done = import_mlf(made.unpack(files, tmp_path / "lib"), tmp_path / "mine", Options("mine"))
    assert done.remarks[0] == f"main is not unpacked, but one operator: {reason}"
    assert done.steps == 1 and done.tvm_workspace_bytes is None


def test_a_result_that_other_code_reads_keeps_its_values(tmp_path):
    """The code shows that the operator reads its result before it calls a function without source."""
    code = "TVM_DLL int32_t tvmgen_default_half(int16_t* T_out, uint8_t* c, uint8_t* w) {\n"
    code += "  T_out[0] = T_out[1];\n  half(T_out);\n  return 0;\n}\n"
    window = "  if (tvmgen_default_window"
    steps = STEPS.replace(window, call("half", "sid_1_let") + window)
    start = "TVM_DLL int32_t tvmgen_default___tvm_main__"
    files = changed(mains.usmp(main=lets(0, 128) + steps), (start, code + start))
    assert import_mlf(made.unpack(files, tmp_path / "lib"), tmp_path / "mine", Options("mine")).steps == 4
    text = (tmp_path / "mine/manifest.yaml").read_text()
    assert "{name: T_out, dtype: int16, shape: [64], direction: inout}" in text
