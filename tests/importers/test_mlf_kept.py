# SPDX-License-Identifier: Apache-2.0
"""Mains that stay one operator: statements, memory and code that cannot be unpacked, each with its reason.

Code of operators would be unpacked if it were read without the part that the reason shows.
"""

import mlf_mains as mains
import pytest
from importers_support import planned
from mlf_made import changed, imported
from mlf_mains import STEPS, X, call, lets

MAIN = "TVM_DLL int32_t tvmgen_default___tvm_main__"
WIDEN = "TVM_DLL int32_t tvmgen_default_widen("
WINDOW = "TVM_DLL int32_t tvmgen_default_window"
WIDENED = "      T_out[cse_var_1] = (int16_t)"
NAME = "global_workspace_5_var"
SECOND = "global_workspace_1_var[128]"
PADDED = f"  void* padded_let = (&({NAME}[256]));\n"
OTHER = "TVM_DLL int32_t tvmgen_default_widen(int8_t* p0, int16_t* T_out, uint8_t* c, uint8_t* w) {\n  return 0;\n}\n"
KEEP = "static void keep(int16_t* p) {\n  static int16_t* kept;\n  kept = p;\n}\n"
AGAIN = "static float again(int16_t* p) {\n  keep(p);\n  return 0;\n}\n"
LOOP = "  for (int32_t i = 0; i < 1; ++i) {\n    TVMBackendFreeWorkspace(1, 0, 0);\n  }\n"
ADDED = "  for (int32_t i = 0; i < 64; ++i) {\n    T_out[i] = (int8_t)"
READ = "p0[(((i * 8) + j) - 8)]"
ERROR = "int32_t f(int32_t {;\n"
ALTERNATIVES = "#ifdef FAST\nint32_t g(int32_t a) {\n#else\n#define sum 0\nint32_t g(void) {\n#endif\n  return 0;\n}\n"
ONE_ADD = "int32_t other(void) {\n  return tvmgen_default_add(0, 0, 0, 0, 0);\n}\n"
TABLE = "static const int16_t table[8] = {"
HIDDEN_TABLE = f"/*\n{TABLE}0, 1}};\n*/\n"


def main_of(statements):
    """Return the network with other statements of main."""
    return mains.usmp(main=statements)


def in_main(statement):
    return main_of(lets(0, 128) + statement + STEPS)


def code(*pairs):
    """Return the network with other code."""
    return changed(mains.usmp(), *pairs)


def before(text, statement="", *more):
    """Return the network with a text before the operators, and a statement at the start of `widen`."""
    return code(("  void* table_let", f"{statement}\n  void* table_let"), (WIDEN, text + WIDEN), *more)


def first(statement):
    return before("", statement)


def header(text, statement="(void)p0;"):
    """Return the network with a header, and a statement in `widen`."""
    files = before("", statement, ("#define TVM_EXPORTS\n", '#define TVM_EXPORTS\n#include "own.h"\n'))
    return {**files, "codegen/host/include/own.h": text.encode()}


def add(statement):
    """Return the network with a statement in `add`, which has no memory in the workspace."""
    return code((ADDED, f"{statement}\n{ADDED}"))


def pointer(kind):
    """Return the network with another type of the workspace of main."""
    return code(("uint8_t* global_workspace_1_var) {", f"{kind}* global_workspace_1_var) {{"))


def array(*pairs):
    """Return the network with another declaration of a constant array of main."""
    return changed(mains.allocated(), *pairs)


OVERLAP = "'sid_1' overlaps other memory that is live at the same time"
UNREAD = "another variable can refer to its memory"
PLANNED = [
    ("main contains `for (int32_t i = 0; i < 1; ++i) { TVMBackendFreeWorkspace(1,…`", in_main(LOOP)),
    (f"main contains `if ({X} == NULL) {{ return -1; }}`", in_main(f"  if ({X} == NULL) {{\n    return -1;\n  }}\n")),
    ("main contains `int32_t n = 3 + 4;`", in_main("  int32_t n = 3 + 4;\n")),
    ("main calls 'strlen', which has no C source", in_main(f"  strlen({X});\n")),
    (f"main contains `{X}[0]`", main_of(lets(0, 128) + STEPS.replace(f"widen({X}", f"widen((&({X}[0]))"))),
    ("'sid_1' and 'sid_2' share memory while both are live", main_of(lets(0, 0) + STEPS)),
    (OVERLAP, main_of(lets(0, 120) + STEPS)),
    (
        f"no step reads 'sid_1': {UNREAD}",
        main_of(lets(0, 128, 0) + STEPS.replace("window(sid_1", "window(sid_3").replace("add(sid_1", "add(sid_3")),
    ),
    (f"no step reads 'sid_3': {UNREAD}", main_of(lets(0, 128, 400) + STEPS + call("widen", X, "sid_3_let"))),
    ("'sid_1' is passed more than once to a step that writes it", main_of(lets(0) + STEPS.replace("sid_2", "sid_1"))),
    (
        "step 1 reads 'sid_3' before a step writes it",
        main_of(lets(0, 128, 400) + STEPS.replace("window(sid_1", "window(sid_3")),
    ),
    ("main uses the workspace at 512, beyond its end", main_of(lets(0, 512) + STEPS)),
    ("'sid_2' has 64 bytes, but an operator uses 128", main_of(lets(0, 448) + STEPS)),
    (
        "main passes 'sid_1' after it is freed",
        array(("  if (tvmgen_default_add(", "  TVMBackendFreeWorkspace(1, 0, sid_1);\n  if (tvmgen_default_add(")),
    ),
    ("'tvmgen_default_add' is used in default_lib1.c by other code than main", code((MAIN, ONE_ADD + MAIN))),
    (
        "main contains `&(((int16_t*)global_workspace_1_var)[128])`",
        main_of(lets(0, 128).replace(SECOND, "((int16_t*)global_workspace_1_var)[128]") + STEPS),
    ),
    (
        "main contains `int16_t* wide = (int16_t*)global_workspace_1_var;`",
        main_of(
            "  int16_t* wide = (int16_t*)global_workspace_1_var;\n" + lets(0, 128).replace(SECOND, "wide[64]") + STEPS
        ),
    ),
    ("main contains `global_workspace_1_var[(int8_t)384]`", main_of(lets(0, "(int8_t)384") + STEPS)),
    (
        "'tvmgen_default_window' uses the macro 'sum'",
        code(("#define TVM_EXPORTS\n", "#define TVM_EXPORTS\n#define sum total\n")),
    ),
    (OVERLAP, mains.usmp(window_at=64)),
    ("'tvmgen_default_window' uses the workspace at 480 to 640, beyond its own memory", mains.usmp(window_at=480)),
    *(
        (f"'tvmgen_default_window' uses '{NAME}' other than at constant offsets", code(pair))
        for pair in (
            (f"(&({NAME}[256]))", f"({NAME} + 256)"),
            (f"uint8_t* {NAME}", f"int16_t* {NAME}"),
            (f"(&({NAME}[256]))", f"(&(((int16_t*){NAME})[128]))"),
        )
    ),
    *(
        ("'tvmgen_default_add' uses 'global_workspace_7_var' other than at constant offsets", add(statement))
        for statement in (
            "  if (global_workspace_7_var == NULL) {\n    return -1;\n  }",
            "  (void)global_workspace_7_var;",
        )
    ),
    (
        "'tvmgen_default_widen' reads constants at 18, where none begins",
        code(("global_const_workspace_2_var[16]", "global_const_workspace_2_var[18]")),
    ),
    (
        "'tvmgen_default_widen' reads 18 bytes of the constant at 16, 16 bytes",
        code(("((int16_t*)table_let)[j]", "((int16_t*)table_let)[(j + 1)]")),
    ),
    ("step 0 writes the input 'x'", code((WIDENED, f"      p0[cse_var_1] = 1;\n{WIDENED}"))),
    (
        "'sid_1' has the element types int16, int32",
        code(("window(int16_t* p0", "window(int32_t* p0"), (READ, READ.replace("p0", "((int16_t*)p0)"))),
    ),
    ("an operator can access memory before the start of 'p0'", code((READ, READ.replace("- 8", "- 9")))),
    (
        f"'tvmgen_default_window' reads '{NAME}[256]' before it writes it",
        code((PADDED, f"{PADDED}  int16_t saved = ((int16_t*)padded_let)[0];\n  T_out[0] = saved;\n")),
    ),
    (
        f"'tvmgen_default_window' writes 144 bytes of '{NAME}[256]' and reads 160 bytes",
        code(("i < 10; ++i", "i < 9; ++i")),
    ),
    (
        "step 0 writes 112 bytes of 'sid_1', but steps read 128 bytes",
        code(("  for (int32_t i = 0; i < 8; ++i) {", "  for (int32_t i = 0; i < 7; ++i) {")),
    ),
    (
        "step 0 writes 0 bytes of 'sid_1', but steps read 128 bytes",
        code((WIDENED, f"      if (p0[0] > 0) {WIDENED.strip()}")),
    ),
    (
        "'tvmgen_default_sums' has several parameters for the workspace",
        changed(
            mains.overlapping(mains.SUMS.replace("global_workspace_9_var[256]", "c[256]")),
            *(
                (
                    f"sums(sid_{n}_let, sid_{n + 1}_let, global_const_workspace_0_var",
                    f"sums(sid_{n}_let, sid_{n + 1}_let, global_workspace_1_var",
                )
                for n in (1, 2)
            ),
        ),
    ),
    (
        "'tvmgen_default_sums' uses 501 parts of the workspace",
        mains.overlapping(
            mains.SUMS.replace(
                "  return 0;", "".join(f"  global_workspace_9_var[{n}] = 0;\n" for n in range(1, 501)) + "  return 0;"
            )
        ),
    ),
    (
        "sums of step 1 at 0 overlaps sid_1 at 0 in TVM's plan",
        mains.overlapping(mains.SUMS.replace("int16_t* p0", "int16_t* restrict p0")),
    ),
    (
        "'tvmgen_default_sums' uses 'global_workspace_9_var' other than at constant offsets",
        mains.overlapping(
            mains.SUMS.replace("  void* sums_let", "  uint8_t* w = global_workspace_9_var;\n  void* sums_let")
        ),
    ),
    ("step 0 reads 'sid_1' before a step writes it", code((f"{WIDENED}(", f"{WIDENED}(T_out[cse_var_1] + "))),
]
IN_WIDEN = [
    ("contains `#ifdef`", first("#ifdef FAST\n  p0 = 0;\n#endif")),
    ("contains `#if`", first("/* */ #if 0\n/* */ #endif")),
    ("contains `#if`", first("  // one \\\n /* two\n#if 0\n#endif\n  // */")),
    ("contains `__asm__`", first('  __asm__ volatile("" : : "r"(T_out));')),
    ("contains `__attribute__`", first("  int16_t __attribute__((vector_size(16)))* v = (void*)T_out;")),
    ("uses the macro 'int16_t'", before("#define int16_t int32_t\n")),
    ("uses the macro 'for'", before("#define for while (0) for\n")),
    ("uses the macro 'cse_var_1'", header("#define cse_var_1 0\n")),
    (
        "uses the type 'cmsis_nn_context', which own.h defines",
        header("typedef struct { int n, m; void* buf; } cmsis_nn_context;\n", "cmsis_nn_context c;"),
    ),
    *(
        ("has more than one definition, or one in a comment or a conditional directive", files)
        for files in (
            before(f"#ifdef FAST\n{OTHER}#else\n", "", (WINDOW, f"#endif\n{WINDOW}")),
            before("#ifdef FAST\n", "", (WINDOW, f"#endif\n{WINDOW}")),
            before(f"/*\n{OTHER}*/\n"),
        )
    ),
    ("contains the variable `static int32_t k = 1;`", first("  static int32_t k = 1;")),
    ("contains the variable `static const int8_t* k = 0;`", first("  static const int8_t* k = 0;")),
    ("contains the variable `extern int16_t* k;`", first("  extern int16_t* k;")),
    *(
        ("uses the variable 'kept' of file scope", files)
        for files in (
            before("static int16_t* kept;\n", "  kept = T_out;"),
            before("static const int8_t* kept;\n", "  kept = p0;"),
            header("extern int16_t* kept;\n", "  kept = T_out;"),
        )
    ),
    ("assigns 'kept', which it does not declare", first("  kept.at[0] = T_out;")),
]
UNPLANNED = [
    *((f"'tvmgen_default_widen' {reason}", files) for reason, files in IN_WIDEN),
    (
        "'tvmgen_default___tvm_main__' uses the type 'int8_t', which default_lib1.c defines",
        before("typedef long long int8_t;\n"),
    ),
    ("own.h cannot be parsed", header(f"#define X\n{ERROR}")),
    ("default_lib1.c cannot be parsed", before(ERROR)),
    ("default_lib1.c cannot be parsed without a preprocessor", before(ALTERNATIVES)),
    ("main's parameter 'global_workspace_1_var' points to line, not to bytes", pointer("struct line")),
    ("main's parameter 'global_workspace_1_var' points to int16_t, not to bytes", pointer("int16_t")),
    *(
        ("'keep' contains the variable `static int16_t* kept;`", files)
        for files in (
            before(KEEP, "  keep(T_out);"),
            before(KEEP + AGAIN, "  while (again(T_out) > 0) {}"),
            header(f"#ifndef OWN_H\n#define OWN_H\n{KEEP}#endif\n", "  keep(T_out);"),
        )
    ),
    *(
        ("main passes 'table', whose values depend on the preprocessor", files)
        for files in (
            array((TABLE, HIDDEN_TABLE + TABLE)),
            array((TABLE, f"{HIDDEN_TABLE}const static {TABLE[13:]}")),
            array((TABLE, f"#ifdef FAST\n{TABLE}"), ("};\nTVM_DLL", "};\n#endif\nTVM_DLL")),
            array((TABLE, f"#define int16_t int32_t\n{TABLE}")),
        )
    ),
    (
        "main contains `table`",
        {
            **array((TABLE, f"extern {TABLE[7:-4]};\nstatic const int16_t other[8] = {{")),
            "codegen/host/src/default_lib2.c": f"#include <stdint.h>\n{TABLE}0, 1}};\n".encode(),
        },
    ),
]
"""The check of the manifest reads most of these sources otherwise, or finds their state."""


@pytest.mark.parametrize(("reason", "files"), PLANNED + UNPLANNED, ids=[reason for reason, _ in PLANNED + UNPLANNED])
def test_main_stays_one_operator(reason, files, tmp_path):
    done, _ = imported(files, tmp_path)
    assert done.remarks[0] == f"main is not unpacked, but one operator: {reason}"
    assert done.steps == 1 and done.tvm_workspace_bytes is None
    if (reason, files) in PLANNED:
        planned(tmp_path / "mine")


def test_a_result_that_other_code_reads_keeps_its_values(tmp_path):
    """The code shows that the operator reads its result before it calls a function without source."""
    half = "TVM_DLL int32_t tvmgen_default_half(int16_t* T_out, uint8_t* c, uint8_t* w) {\n"
    half += "  T_out[0] = T_out[1];\n  half(T_out);\n  return 0;\n}\n"
    step = "  if (tvmgen_default_window"
    steps = STEPS.replace(step, call("half", "sid_1_let") + step)
    done, text = imported(changed(main_of(lets(0, 128) + steps), (MAIN, half + MAIN)), tmp_path)
    assert done.steps == 4
    assert "{name: T_out, dtype: int16, shape: [64], direction: inout}" in text
