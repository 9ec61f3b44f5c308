# SPDX-License-Identifier: Apache-2.0
"""Mains that stay one operator: statements and memory that cannot be unpacked, each with its reason."""

import mlf_made as made
import mlf_mains as mains
import pytest
from importers_support import planned
from mlf_mains import STEPS, X, Y, call, changed, lets
from opwest.importers.mlf import Options, import_mlf

LOOP = "  for (int32_t i = 0; i < 1; ++i) {\n    TVMBackendFreeWorkspace(1, 0, 0);\n  }\n"


def network(statements):
    """Return the network with other statements of main."""
    return mains.usmp(main=statements)


KEPT = {
    "control flow": (network(lets(0, 128) + LOOP + STEPS), "main contains `for (int32_t i = 0; i < 1; ++i)"),
    "a condition": (
        network(lets(0, 128) + f"  if ({X} == NULL) {{\n    return -1;\n  }}\n" + STEPS),
        "main contains `if (x_buffer_var == NULL)",
    ),
    "an unknown statement": (
        network(lets(0, 128) + "  int32_t n = 3 + 4;\n" + STEPS),
        "main contains `int32_t n = 3 + 4;`",
    ),
    "an unknown call": (
        network(lets(0, 128) + f"  strlen({X});\n" + STEPS),
        "main calls 'strlen', which has no C source",
    ),
    "a pointer to the middle of an argument": (
        network(lets(0, 128) + STEPS.replace("widen(x_buffer_var", "widen((&(x_buffer_var[0]))")),
        "main contains `x_buffer_var[0]`",
    ),
    "one address for two live tensors": (
        network(lets(0, 0) + STEPS),
        "'sid_1' and 'sid_2' share memory while both are live",
    ),
    "a partial overlap": (network(lets(0, 120) + STEPS), "'sid_1' overlaps other memory that is live at the same time"),
    "another name for a tensor": (
        network(
            lets(0, 128, 0)
            + call("widen", X, "sid_1_let")
            + call("window", "sid_3_let", "sid_2_let")
            + call("add", "sid_3_let", "sid_2_let", Y)
        ),
        "no step reads 'sid_1': another variable can refer to its memory",
    ),
    "an unused result": (
        network(lets(0, 128, 400) + STEPS + call("widen", X, "sid_3_let")),
        "no step reads 'sid_3': another variable can refer to its memory",
    ),
    "a step in place": (
        network(
            lets(0)
            + call("widen", X, "sid_1_let")
            + call("window", "sid_1_let", "sid_1_let")
            + call("add", "sid_1_let", "sid_1_let", Y)
        ),
        "'sid_1' is passed more than once to a step that writes it",
    ),
    "memory of an operator over a tensor": (mains.usmp(window_at=64), "'sid_1' overlaps other memory"),
    "an operator beyond the workspace": (
        mains.usmp(window_at=480),
        "'tvmgen_default_window' uses the workspace at 480 to 640, beyond its own memory",
    ),
    "a tensor beyond the workspace": (network(lets(0, 512) + STEPS), "main uses the workspace at 512, beyond its end"),
    "a tensor larger than its place": (network(lets(0, 448) + STEPS), "'sid_2' has 64 bytes, but an operator uses 128"),
    "a pool used as a whole": (
        changed(mains.usmp(), ("(&(global_workspace_5_var[256]))", "(global_workspace_5_var + 256)")),
        "'tvmgen_default_window' uses 'global_workspace_5_var' other than at constant offsets",
    ),
    "constants between two constants": (
        changed(mains.usmp(), ("global_const_workspace_2_var[16]", "global_const_workspace_2_var[18]")),
        "'tvmgen_default_widen' reads constants at 18, where none begins",
    ),
    "a constant that is read beyond its end": (
        changed(mains.usmp(), ("((int16_t*)table_let)[j]", "((int16_t*)table_let)[(j + 1)]")),
        "'tvmgen_default_widen' reads 18 bytes of the constant at 16, 16 bytes",
    ),
    "a macro": (
        changed(mains.usmp(), ("#define TVM_EXPORTS\n", "#define TVM_EXPORTS\n#define sum total\n")),
        "'tvmgen_default_window' uses the macro 'sum'",
    ),
    "an input that is written": (
        changed(
            mains.usmp(),
            ("      T_out[cse_var_1] = (int16_t)", "      p0[cse_var_1] = 1;\n      T_out[cse_var_1] = (int16_t)"),
        ),
        "step 0 writes the input 'x'",
    ),
    "a tensor that is read first": (
        network(
            lets(0, 128, 400)
            + STEPS.replace("window(sid_1_let", "window(sid_3_let").replace("add(sid_1_let", "add(sid_1_let")
        ),
        "step 1 reads 'sid_3' before a step writes it",
    ),
    "element types": (
        changed(
            mains.usmp(),
            ("window(int16_t* p0", "window(int32_t* p0"),
            ("p0[(((i * 8) + j) - 8)]", "((int16_t*)p0)[(((i * 8) + j) - 8)]"),
        ),
        "'sid_1' has the element types int16, int32",
    ),
    "freed memory": (
        changed(
            mains.allocated(),
            ("  if (tvmgen_default_add(", "  TVMBackendFreeWorkspace(1, 0, sid_1);\n  if (tvmgen_default_add("),
        ),
        "main passes 'sid_1' after it is freed",
    ),
    "an operator that other code uses": (
        changed(
            mains.usmp(),
            (
                "TVM_DLL int32_t tvmgen_default___tvm_main__",
                "int32_t other(void) {\n  return tvmgen_default_add(0, 0, 0, 0, 0);\n}\n"
                "TVM_DLL int32_t tvmgen_default___tvm_main__",
            ),
        ),
        "'tvmgen_default_add' is used in default_lib1.c by other code than main",
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_reasons_to_keep_main(case, tmp_path):
    files, reason = KEPT[case]
    done = import_mlf(made.unpack(files, tmp_path / "lib"), tmp_path / "mine", Options("mine"))
    assert done.remarks[0].startswith(f"main is not unpacked, but one operator: {reason}")
    assert done.steps == 1 and done.tvm_workspace_bytes is None
    planned(tmp_path / "mine")
