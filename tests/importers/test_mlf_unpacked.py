# SPDX-License-Identifier: Apache-2.0
"""Mains in C as steps: bit-identical to the original main, never with more memory; otherwise one operator."""

import mlf_made as made
import mlf_mains as mains
import pytest
from importers_support import planned
from opwest.importers.mlf import Options, import_mlf
from unpacked_support import compared

LIB1 = "codegen/host/src/default_lib1.c"


def unpacked(files, folder):
    """Write a directory."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def changed(files, *pairs):
    """Return a directory with another lib1."""
    text = files[LIB1].decode()
    for before, after in pairs:
        assert before in text, before
        text = text.replace(before, after)
    return {**files, LIB1: text.encode()}


NETWORKS = {
    # Steps, tensors, bytes in TVM's plan and in opwest's.
    "pools": (mains.usmp(), (3, 2, 512, 416)),
    "constants of main": (mains.usmp(constants="main"), (3, 2, 512, 416)),
    "allocations": (mains.allocated(), (6, 5, 544, 432)),
    "floats": (made.usmp(), (2, 1, 48, 32)),
}


@pytest.mark.needs("cc")
@pytest.mark.parametrize("network", NETWORKS)
def test_outputs_are_identical_and_memory_is_not_larger(network, tmp_path):
    files, wanted = NETWORKS[network]
    done, plan = compared(unpacked(files, tmp_path / "lib"), tmp_path, Options("mine"), 50)
    assert plan == wanted
    assert (done.tvm_workspace_bytes, done.workspace_bytes) == wanted[2:]
    _, memory = planned(tmp_path / "mine")
    assert memory.pools["sram"].size == wanted[3]


def lets(*offsets):
    """Return main's variables sid_1, sid_2, … at offsets of the workspace."""
    return "".join(f"  void* sid_{n}_let = (&(global_workspace_1_var[{at}]));\n" for n, at in enumerate(offsets, 1))


def call(name, *args):
    """Return a call of main."""
    pools = ["global_const_workspace_0_var", "global_workspace_1_var"]
    return f"  if (tvmgen_default_{name}({', '.join([*args, *pools])}) != 0 ) return -1;\n"


X, Y = "x_buffer_var", "Identity_buffer_var"
STEPS = (
    call("widen", X, "sid_1_let") + call("window", "sid_1_let", "sid_2_let") + call("add", "sid_1_let", "sid_2_let", Y)
)
LOOP = "  for (int32_t i = 0; i < 1; ++i) {\n    TVMBackendFreeWorkspace(1, 0, 0);\n  }\n"


def network(statements):
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
        network(lets(0, 128) + f"  puts({X});\n" + STEPS),
        "main calls 'puts', which has no C source",
    ),
    "a pointer to the middle of an argument": (
        network(lets(0, 128) + STEPS.replace("widen(x_buffer_var", "widen((&(x_buffer_var[0]))")),
        "main contains `x_buffer_var[0]`",
    ),
    "one address for two live tensors": (
        network(lets(0, 0) + STEPS),
        "'sid_1' and 'sid_2' share memory while both are live",
    ),
    "a partial overlap": (
        network(lets(0, 120) + STEPS),
        "'sid_1' overlaps other memory that is live at the same time",
    ),
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
    "a tensor beyond the workspace": (
        network(lets(0, 512) + STEPS),
        "main uses the workspace at 512, beyond its end",
    ),
    "a tensor larger than its place": (
        network(lets(0, 448) + STEPS),
        "'sid_2' has 64 bytes, but an operator uses 128",
    ),
    "a pool used as a whole": (
        changed(mains.usmp(), ("(&(global_workspace_5_var[256]))", "(global_workspace_5_var + 256)")),
        "'tvmgen_default_window' uses 'global_workspace_5_var' other than at constant offsets",
    ),
    "constants between two constants": (
        changed(mains.usmp(), ("global_const_workspace_2_var[16]", "global_const_workspace_2_var[18]")),
        "'tvmgen_default_widen' reads constants at 18, where none begins",
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
    done = import_mlf(unpacked(files, tmp_path / "lib"), tmp_path / "mine", Options("mine"))
    assert done.remarks[0].startswith(f"main is not unpacked, but one operator: {reason}")
    assert done.steps == 1 and done.tvm_workspace_bytes is None
    planned(tmp_path / "mine")
