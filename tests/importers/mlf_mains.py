# SPDX-License-Identifier: Apache-2.0
"""Ahead-of-time mains in C for tests: one network of int8 operators, with memory in every way in which TVM has it.

y = f(x): widen to int16 with a table of constants, a windowed sum with padding, a sum of two results, narrowed.
"""

import mlf_made as made
from mlf_made import changed, return_if, wrapper

WIDEN = """\
TVM_DLL int32_t tvmgen_default_widen(int8_t* p0, int16_t* T_out{pools}) {{
{lets}  for (int32_t i = 0; i < 8; ++i) {{
    for (int32_t j = 0; j < 8; ++j) {{
      int32_t cse_var_1 = ((i * 8) + j);
      T_out[cse_var_1] = (int16_t)(((int16_t)p0[cse_var_1]) * {table}[j]);
    }}
  }}
  return 0;
}}
"""

WINDOW = """\
TVM_DLL int32_t tvmgen_default_window(int16_t* p0, int16_t* T_out{pools}) {{
{lets}  for (int32_t i = 0; i < 10; ++i) {{
    for (int32_t j = 0; j < 8; ++j) {{
      {padded}[((i * 8) + j)] = (((1 <= i) && (i < 9)) ? p0[(((i * 8) + j) - 8)] : (int16_t)0);
    }}
  }}
  for (int32_t k = 0; k < 64; ++k) {{
    int32_t sum = 0;
    for (int32_t r = 0; r < 3; ++r) {{
      sum = sum + ((int32_t){padded}[((r * 8) + k)]);
    }}
    T_out[k] = (int16_t)(sum / 3);
  }}
{free}  return 0;
}}
"""

ADD = """\
TVM_DLL int32_t tvmgen_default_add(int16_t* p0, int16_t* p1, int8_t* T_out{pools}) {{
  for (int32_t i = 0; i < 64; ++i) {{
    T_out[i] = (int8_t)((((int32_t)p0[i]) + ((int32_t)p1[i])) >> 4);
  }}
  return 0;
}}
"""

SUMS = """\
TVM_DLL int32_t tvmgen_default_sums(int16_t* p0, int16_t* T_out, uint8_t* c, uint8_t* global_workspace_9_var) {
  void* padded_let = (&(global_workspace_9_var[256]));
  void* sums_let = (&(global_workspace_9_var[0]));
  for (int32_t i = 0; i < 80; ++i) {
    ((int16_t*)padded_let)[i] = (((8 <= i) && (i < 72)) ? p0[(i - 8)] : (int16_t)0);
  }
  for (int32_t k = 0; k < 64; ++k) {
    ((int32_t*)sums_let)[k] = 0;
    for (int32_t r = 0; r < 3; ++r) {
      ((int32_t*)sums_let)[k] = (((int32_t*)sums_let)[k] + ((int32_t)((int16_t*)padded_let)[((r * 8) + k)]));
    }
  }
  for (int32_t i = 0; i < 64; ++i) {
    ((int16_t*)padded_let)[i] = ((int16_t)(((int32_t*)sums_let)[i] / 3));
  }
  for (int32_t i = 0; i < 64; ++i) {
    T_out[i] = (((int16_t*)padded_let)[i] - (int16_t)1);
  }
  return 0;
}
"""
"""An operator as TVM writes a depthwise convolution: padded input, sums in int32, and both results in turn."""

TABLE = "1, 2, 3, -4, 5, -6, 7, 8"
START = (
    "#define TVM_EXPORTS\n#include <stdint.h>\n"
    "#include <tvm/runtime/c_runtime_api.h>\n#include <tvm/runtime/c_backend_api.h>\n"
)


def files(code, lib0, devices=""):
    """Return a directory, whose metadata.json has the ports of the network."""
    ports = ('"y"', '"Identity"'), ('"size": 16', '"size": 64'), ('"size": 8', '"size": 64'), ('"float32"', '"int8"')
    return changed(
        {
            "metadata.json": made.metadata(7),
            made.LIB0: lib0,
            made.LIB1: code.encode(),
            made.HEADER: made.header(devices).replace(b"void* y;", b"void* Identity;"),
        },
        *ports,
        name="metadata.json",
    )


STATICS = (
    '__attribute__((section(".rodata.tvm"), ))\n'
    "static struct global_const_workspace {\n"
    "  int16_t unused_let[4] __attribute__((aligned(16)));\n"
    "  int16_t table_let[8] __attribute__((packed, aligned(16)));\n"
    "} global_const_workspace = {\n  .unused_let = {\n    1, 2, 3, 4\n  },\n"
    f"  .table_let = {{\n    {TABLE}\n  }},\n}};\n"
    '__attribute__((section(".bss.noinit.tvm"), aligned(16)))\nstatic uint8_t global_workspace[512];\n'
)


def usmp(main=None, window_at=256, constants="operator"):
    """Return the network with TVM's pools. `main` replaces the statements; `constants` are read by main or operator."""
    both = ", uint8_t* global_const_workspace_{0}_var, uint8_t* global_workspace_{1}_var"
    inside = constants == "operator"
    code = START
    code += WIDEN.format(
        pools=both.format(2, 3) if inside else ", int16_t* table",
        lets="  void* table_let = (&(global_const_workspace_2_var[16]));\n" if inside else "",
        table="((int16_t*)table_let)" if inside else "table",
    )
    code += WINDOW.format(
        pools=both.format(4, 5),
        lets=f"  void* padded_let = (&(global_workspace_5_var[{window_at}]));\n",
        padded="((int16_t*)padded_let)",
        free="",
    )
    code += ADD.format(pools=both.format(6, 7))
    pools = "global_const_workspace_0_var, global_workspace_1_var"
    memory = lets(0, 128)
    widen = f"tvmgen_default_widen(x_buffer_var, sid_1_let, {pools})"
    if not inside:
        memory += "  void* constant_0_let = (&(global_const_workspace_0_var[16]));\n"
        widen = "tvmgen_default_widen(x_buffer_var, sid_1_let, constant_0_let)"
    statements = main or (
        f"{memory}  if ({widen} != 0 ) return -1;\n"
        + call("window", "sid_1_let", "sid_2_let")
        + call("add", "sid_1_let", "sid_2_let", Y)
    )
    code += (
        "TVM_DLL int32_t tvmgen_default___tvm_main__(int8_t* x_buffer_var, int8_t* Identity_buffer_var"
        f"{both.format(0, 1)}) {{\n{statements}  return 0;\n}}\n"
    )
    parameters = "void* x,void* output0,uint8_t* global_const_workspace_0_var,uint8_t* global_workspace_1_var"
    given = "inputs->x,outputs->Identity,((uint8_t*)&global_const_workspace),((uint8_t*)&global_workspace)"
    return files(code, wrapper(STATICS, given, parameters))


def allocated():
    """Return the network with TVMBackendAllocWorkspace: three buffers that hold five tensors in turn."""
    code = START + f"static const int16_t table[8] = {{\n    {TABLE}\n}};\n"
    code += WIDEN.format(pools=", int16_t* t", lets="", table="t")
    code += WINDOW.format(
        pools="",
        lets="  void* padded = TVMBackendAllocWorkspace(1, 0, (uint64_t)160, 0, 16);\n" + return_if("padded == NULL"),
        padded="((int16_t*)padded)",
        free=return_if("TVMBackendFreeWorkspace(1, 0, padded) != 0"),
    )
    code += ADD.format(pools="")
    start, end = "", ""
    for n in (1, 2, 3):
        start += f"  void* sid_{n} = TVMBackendAllocWorkspace(1, 0, (uint64_t)128, 0, 8);\n"
        start += return_if(f"sid_{n} == NULL")
        end = return_if(f"TVMBackendFreeWorkspace(1, 0, sid_{n}) != 0") + end
    steps = ["widen(x_buffer_var, sid_3, table)", "window(sid_3, sid_2)", "window(sid_2, sid_1)"]
    steps += ["window(sid_1, sid_2)", "window(sid_2, sid_1)", "add(sid_1, sid_2, Identity_buffer_var)"]
    calls = "".join(f"  if (tvmgen_default_{one} != 0 ) return -1;\n" for one in steps)
    code += (
        "TVM_DLL int32_t tvmgen_default___tvm_main__(int8_t* x_buffer_var, int8_t* Identity_buffer_var) {\n"
        f"{start + calls + end}  return 0;\n}}\n"
    )
    return files(code, wrapper("", "inputs->x,outputs->Identity", "void* x,void* output0"))


def overlapping(sums=SUMS):
    """Return a network in whose plan the sums of an operator overlap its argument and its result, which are equal."""
    steps = call("widen", X, "sid_1_let") + call("sums", "sid_1_let", "sid_2_let")
    steps += call("sums", "sid_2_let", "sid_3_let") + call("add", "sid_3_let", "sid_3_let", Y)
    start = "TVM_DLL int32_t tvmgen_default___tvm_main__"
    sources = changed(usmp(main=lets(0, 0, 0) + steps), (start, sums + start))
    return changed(sources, ("global_workspace[512]", "global_workspace[416]"), name=made.LIB0)


DEVICES = "struct tvmgen_default_devices {\n  void* npu_a;\n  void* npu_b;\n};\n"
ON_DEVICE = """\
TVM_DLL int32_t tvmgen_default_{name}_main(int8_t* p0, int8_t* p1, int8_t* y, void* device_context_{name}) {{
  int status = opwest_npu_emul_add(device_context_{name}, 1, p0, p1, y, 64);
  return opwest_npu_emul_finish(device_context_{name}, status, 1000);
}}
"""
DIFFERENCE = """\
TVM_DLL int32_t tvmgen_default_difference(int8_t* p0, int8_t* p1, int8_t* T_out) {
  for (int32_t i = 0; i < 64; ++i) {
    T_out[i] = (int8_t)(((int32_t)p0[i]) - (((int32_t)p1[((i + 1) & 63)]) / 2));
  }
  return 0;
}
"""


def devices(hooks=True, tail=""):
    """Return a network on two accelerators, whose main activates and opens them in every inference."""
    names = ("npu_a", "npu_b")
    code = "#include <opwest/npu_emul.h>\n" + START
    code += "".join(ON_DEVICE.format(name=name) for name in names) + DIFFERENCE

    def hook(action, *chosen, form="  if ({}(device_context_{}) != 0 ) return -1;\n"):
        functions = [(f"TVMDevice{name.title().replace('_', '')}{action}", name) for name in chosen if hooks]
        return "".join(form.format(*function) for function in functions)

    for action in ("Activate", "Open", "Close", "Deactivate"):
        code += hook(action, *names, form="TVM_DLL int32_t {}(void* device_context_{});\n")
    main = hook("Activate", *names) + lets(0, 64).replace("_workspace_1_var", "_workspace_0_var")
    for n, name in enumerate(names, 1):
        arguments = f"x_buffer_var, x_buffer_var, sid_{n}_let, device_context_{name}"
        step = f"  if (tvmgen_default_{name}_main({arguments}) != 0 ) return -1;\n"
        main += hook("Open", name) + step + hook("Close", name)
    main += "  if (tvmgen_default_difference(sid_1_let, sid_2_let, Identity_buffer_var) != 0 ) return -1;\n"
    main += hook("Deactivate", *names) + tail
    contexts = ", ".join(f"void* device_context_{n}" for n in names)
    code += (
        "TVM_DLL int32_t tvmgen_default___tvm_main__(int8_t* x_buffer_var, int8_t* Identity_buffer_var, "
        f"uint8_t* global_workspace_0_var, {contexts}) {{\n{main}  return 0;\n}}\n"
    )
    statics = '__attribute__((section(".bss.noinit.tvm"), aligned(16)))\nstatic uint8_t global_workspace[128];\n'
    given = "inputs->x,outputs->Identity,((uint8_t*)&global_workspace),devices->npu_a,devices->npu_b"
    parameters = "void* x,void* output0,uint8_t* global_workspace_0_var,void* npu_a,void* npu_b"
    return files(code, wrapper(statics, given, parameters), DEVICES)


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
