# SPDX-License-Identifier: Apache-2.0
"""Models in Model Library Format for tests: the layout of TVM's files with hand-written C.

One network in every variant: y = relu(x W1 + b1) W2 + b2 on float32, 4 inputs, 3 hidden, 2 outputs.
"""

import io
import json
import struct
import tarfile

import numpy as np
from opwest.frontends.mlf import Options, import_mlf

W1 = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75], [-0.5, 1.0, 0.125], [0.75, -0.5, 1.5]], np.float32)
B1 = np.array([0.1, -0.2, 0.3], np.float32)
W2 = np.array([[1.0, -0.5], [0.25, 2.0], [-1.5, 0.75]], np.float32)
B2 = np.array([0.5, -0.25], np.float32)
OPERATORS = ("fused_dense_relu", "fused_dense")
LAYERS = ((OPERATORS[0], 4, 3), (OPERATORS[1], 3, 2))
"""Operators with their rows and columns."""
LIB0, LIB1 = (f"codegen/host/src/default_lib{number}.c" for number in range(2))
HEADER = "codegen/host/include/tvmgen_default.h"
"""Files of the module `default`."""

RELAY = """\
def @main(%x: Tensor[(1, 4), float32] /* ty=Tensor[(1, 4), float32] */, %w: Tensor[(4, 3), float32]) \
-> Tensor[(1, 2), float32] {
  %0 = nn.dense(%x, %w) /* ty=Tensor[(1, 3), float32] */;
  nn.dense(%0, %w) /* ty=Tensor[(1, 2), float32] */
}
"""

_HEADER = """\
#ifndef TVMGEN_DEFAULT_H_
#define TVMGEN_DEFAULT_H_
#include <stdint.h>
struct tvmgen_default_inputs {{
  void* x;
}};
struct tvmgen_default_outputs {{
  void* y;
}};
{devices}
#define TVMGEN_DEFAULT_WORKSPACE_SIZE 4096
#endif // TVMGEN_DEFAULT_H_
"""

_INCLUDES = """\
// tvm target: c -keys=cpu {target}
#define TVM_EXPORTS
#include "tvm/runtime/c_runtime_api.h"
#include "tvm/runtime/c_backend_api.h"
#include <math.h>
"""

_DENSE = """\
  for (int32_t j = 0; j < {columns}; ++j) {{
    float sum = {bias}[j];
    for (int32_t k = 0; k < {rows}; ++k) {{
      sum = sum + ({data}[k] * {weight}[((k * {columns}) + j)]);
    }}
    {result}[j] = {value};
  }}
"""


def reference(x):
    """Return y for x of shape [1, 4]."""
    return (np.maximum(x @ W1 + B1, 0) @ W2 + B2).astype(np.float32)


def _array(name, values):
    """Return a constant as TVM's C code generator writes it."""
    kind = 'static const float __attribute__((section(".rodata.tvm"), aligned(16))) '
    return f"{kind}{name}[{values.size}] = {{\n    {_numbers(values)}\n}};\n"


def _numbers(values):
    return ", ".join(float(v).hex() for v in values.ravel())


def _dense(data, weight, bias, result, rows, columns, relu):
    value = "((sum) > (0.000000e+00f) ? (sum) : (0.000000e+00f))" if relu else "sum"
    return _DENSE.format(data=data, weight=weight, bias=bias, result=result, rows=rows, columns=columns, value=value)


def return_if(fault):
    return f"  if ({fault}) {{\n    return -1;\n  }}\n"


def _function(name, parameters, body):
    head = f'#ifdef __cplusplus\nextern "C"\n#endif\nTVM_DLL int32_t tvmgen_default_{name}({parameters}) {{\n'
    return f"{head}{body}  return 0;\n}}\n\n"


def params(arrays):
    """Return a .params file."""
    out = struct.pack("<QQQ", 0xF7E58D4F05049CB7, 0, len(arrays))
    for name in arrays:
        out += struct.pack("<Q", len(name)) + name.encode()
    out += struct.pack("<Q", len(arrays))
    for value in arrays.values():
        value = np.asarray(value)
        code = {"i": 0, "u": 1, "f": 2}[value.dtype.kind]
        out += struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, value.ndim, code, value.dtype.itemsize * 8, 1)
        out += struct.pack(f"<{value.ndim}q", *value.shape) + struct.pack("<q", value.nbytes) + value.tobytes()
    return out


def metadata(version, executor="aot", with_ports=True, target="c -keys=cpu"):
    """Return metadata.json of a version."""
    main = {"device": 1, "workspace_size_bytes": 4096, "constants_size_bytes": 0, "io_size_bytes": 161722}
    if with_ports:
        main |= {"inputs": {"x": {"dtype": "float32", "size": 16}}, "outputs": {"y": {"dtype": "float32", "size": 8}}}
    operators = [
        {"function_name": f"tvmgen_default_{o}", "workspace": [{"device": 1, "workspace_size_bytes": 64}]}
        for o in OPERATORS
    ]
    one = {
        "model_name": "default",
        "executors": [executor],
        "export_datetime": "2022-09-29 01:02:03Z",
        "style": "full-model",
        "target": {"1": target} if version == 5 else [target],
        "memory": {"functions": {"main": [main], "operator_functions": operators}},
    }
    whole = {"version": version, "modules": {"default": one}} if version == 7 else {"version": version, **one}
    return json.dumps(whole, indent=2).encode()


def header(devices=""):
    return _HEADER.format(devices=devices).encode()


def wrapper(statics, given, parameters):
    structs = "struct tvmgen_default_inputs* inputs,struct tvmgen_default_outputs* outputs"
    if "devices->" in given:
        structs += ",struct tvmgen_default_devices* devices"
    return (
        '#include "tvm/runtime/c_runtime_api.h"\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
        f"{statics}#include <tvmgen_default.h>\n"
        f"TVM_DLL int32_t tvmgen_default___tvm_main__({parameters});\n"
        f"int32_t tvmgen_default_run({structs}) {{return tvmgen_default___tvm_main__({given});\n}}\n"
        "#ifdef __cplusplus\n}\n#endif\n;"
    ).encode()


def usmp(version=7, device=False, target="", bare=False):
    """Ahead of time, unpacked, C interface: static arrays in lib0 for workspace and constants (TVM 0.9 to 0.17)."""
    members = {"w1_let": W1, "b1_let": B1, "w2_let": W2, "b2_let": B2}
    declared, given, offsets, offset = "", "", {}, 0
    for number, (name, value) in enumerate(members.items()):
        offset += -offset % 16
        offsets[name] = offset
        packed = "packed, " if number else ""
        declared += f"  float {name}[{value.size}] __attribute__(({packed}aligned(16))); // aligned offset: {offset}\n"
        given += f"  .{name} = {{\n    {_numbers(value)}\n  }},\n"
        offset += value.nbytes
    statics = (
        '__attribute__((section(".rodata.tvm"), ))\n'
        f"static struct global_const_workspace {{\n{declared}}} global_const_workspace = {{\n{given}}};// of size\n"
        '__attribute__((section(".bss.noinit.tvm"), aligned(16)))\nstatic uint8_t global_workspace[48];\n'
    )
    pools = "uint8_t* global_const_workspace_{0}_var, uint8_t* global_workspace_{1}_var"
    code = _INCLUDES.format(target=target)
    for number, (name, rows, columns) in enumerate(LAYERS):
        constants, room = 2 + 2 * number, 3 + 2 * number
        weight, bias = (f"{one}{number + 1}_let" for one in "wb")
        body = "".join(
            f"  void* {one} = (&(global_const_workspace_{constants}_var[{offsets[one]}]));\n" for one in (weight, bias)
        )
        # The second stores its sum in the workspace, like TVM's temporaries.
        body += f"  void* room_let = (&(global_workspace_{room}_var[32]));\n"
        room_let = "((float*)room_let)"
        body += _dense("p0", f"((float*){weight})", f"((float*){bias})", room_let, rows, columns, number == 0)
        body += f"  for (int32_t i = 0; i < {columns}; ++i) {{\n    T_out[i] = {room_let}[i];\n  }}\n"
        code += _function(name, f"float* p0, float* T_out, {pools.format(constants, room)}", body)
    calls = "  void* sid_1_let = (&(global_workspace_1_var[0]));\n"
    context, devices, given = "", "", "inputs->x,outputs->y,&global_const_workspace,&global_workspace"
    parameters = "void* x,void* output0,uint8_t* global_const_workspace_0_var,uint8_t* global_workspace_1_var"
    if device:
        code += "int32_t TVMDeviceNpuActivate(void* device_context_npu);\n"
        calls += "  TVMDeviceNpuActivate(device_context_npu);\n"
        context, devices = ", void* device_context_npu", "struct tvmgen_default_devices {\n  void* npu;\n};\n"
        given, parameters = f"{given},devices->npu", f"{parameters},void* npu"
    for name, data, result in (
        (OPERATORS[0], "x_buffer_var", "sid_1_let"),
        (OPERATORS[1], "sid_1_let", "y_buffer_var"),
    ):
        arguments = f"{data}, {result}, global_const_workspace_0_var, global_workspace_1_var"
        calls += f"  if (tvmgen_default_{name}({arguments}) != 0 ) return -1;\n"
    buffers = f"float* x_buffer_var, float* y_buffer_var, {pools.format(0, 1)}"
    code += _function("__tvm_main__", buffers + context, calls)
    files = {LIB0: wrapper(statics, given, parameters), LIB1: code.encode(), HEADER: header(devices)}
    if not bare:
        files["metadata.json"] = metadata(version, target=f"c -keys=cpu {target}")
        files["src/default.relay"] = RELAY.encode()
        files["parameters/default.params"] = params({})
    return files


def workspace(version=6, old=False):
    """Ahead of time, unpacked, with TVMBackendAllocWorkspace. `old`: as TVM 0.8 had it, `void *`, no ports."""
    code = _INCLUDES.format(target="")
    prefix = "__tvm_param__" if old else "constant_"
    code += "".join(_array(prefix + name, value) for name, value in {"w1": W1, "b1": B1, "w2": W2, "b2": B2}.items())
    for number, (name, rows, columns) in enumerate(LAYERS):
        body = "  void* room = TVMBackendAllocWorkspace(1, 0, (uint64_t)12, 2, 32);\n" + return_if("room == NULL")
        body += _dense("p0", "p1", "p2", "((float*)room)", rows, columns, number == 0)
        body += f"  for (int32_t i = 0; i < {columns}; ++i) {{\n    T_out[i] = ((float*)room)[i];\n  }}\n"
        body += return_if("TVMBackendFreeWorkspace(1, 0, room) != 0")
        code += _function(name, "float* p0, float* p1, float* p2, float* T_out", body)
    kind, name = ("void", "run_model") if old else ("float", "__tvm_main__")
    suffix = "" if old else "_buffer_var"
    calls = "  void* sid_1 = TVMBackendAllocWorkspace(1, 0, (uint64_t)12, 0, 8);\n" + return_if("sid_1 == NULL")
    first, second = f"x{suffix}, {prefix}w1, {prefix}b1, sid_1", f"sid_1, {prefix}w2, {prefix}b2, y{suffix}"
    for operator, arguments in zip(OPERATORS, (first, second), strict=True):
        call = f"tvmgen_default_{operator}({arguments})"
        calls += f"  (void){call};\n" if old else f"  if ({call} != 0 ) return -1;\n"
    calls += return_if("TVMBackendFreeWorkspace(1, 0, sid_1) != 0")
    code += _function(name, f"{kind}* x{suffix}, {kind}* y{suffix}", calls)
    files = {
        "metadata.json": metadata(version, with_ports=not old),
        LIB1: code.encode(),
        HEADER: header(),
        "src/relay.txt" if old else "src/default.relay": RELAY.encode(),
    }
    if not old:
        run = wrapper("", "inputs->x,outputs->y", "void* x,void* output0")
        files[LIB0] = run
    return files


_PACKED = (
    "void* args, int32_t* arg_type_ids, int32_t num_args, void* out_ret_value, int32_t* out_ret_tcode, "
    "void* resource_handle"
)


def _unpack(names, checked=()):
    """Return the entries of `args`; the function checks the shapes in `checked`, like TVM's assertions."""
    lines = ""
    for number, name in enumerate(names):
        lines += f"  void* arg_{name} = (((TVMValue*)args)[{number}].v_handle);\n"
        lines += f"  int32_t arg_{name}_code = arg_type_ids[{number}];\n"
    for name in names:
        lines += f"  void* {name} = (((DLTensor*)arg_{name})[0].data);\n"
        lines += f"  void* arg_{name}_shape = (((DLTensor*)arg_{name})[0].shape);\n"
    for name, shape in zip(names, checked, strict=False):
        for at, size in enumerate(shape):
            lines += return_if(f"!({size} == ((int32_t)((int64_t*)arg_{name}_shape)[{at}]))")
    return lines


def _packed_operators(checked=False):
    code = _INCLUDES.format(target="")
    for name, value in {"b1": B1, "b2": B2, "w1": W1, "w2": W2}.items():
        code += _array(f"constant_{name}", value)
    for number, (name, rows, columns) in enumerate(LAYERS, 1):
        body = _unpack(["p0", "T_out"], ((1, rows), (1, columns)) if checked else ())
        data, result, weight, bias = "((float*)p0)", "((float*)T_out)", f"constant_w{number}", f"constant_b{number}"
        code += _function(name, _PACKED, body + _dense(data, weight, bias, result, rows, columns, number == 1))
    return code


_REGISTRY = """\
#include <tvm/runtime/crt/module.h>
TVM_DLL int32_t tvmgen_default_{operator}(
    TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* out_type_code, void* resource_handle);
static TVMBackendPackedCFunc _tvm_func_array[] = {{
    (TVMBackendPackedCFunc)tvmgen_default_{operator},
}};
static const TVMFuncRegistry _tvm_func_registry = {{
    "\\001\\000tvmgen_default_{operator}\\000",    _tvm_func_array,
}};
static const TVMModule _tvm_system_lib = {{
    &_tvm_func_registry,
}};
const TVMModule* TVMSystemLibEntryPoint(void) {{
    return &_tvm_system_lib;
}}
;"""


def _stack_tensor(number, data, shape):
    """Return the lines that fill a tensor on the stack, as TVM's lowering of arrays writes them."""
    one, first = f"  (((DLTensor*)stack_array)[{number}]", 2 * number
    text = "".join(f"  ((int64_t*)stack_shape)[{first + k}] = (int64_t){n};\n" for k, n in enumerate(shape))
    text += f"{one}.data) = {data};\n"
    text += f"{one}.shape) = (&(((int64_t*)stack_shape)[{first}]));\n"
    text += f"    uint64_t none_{data} = (uint64_t)0;\n"
    text += f"{one}.strides) = (int64_t*)(*(void* *)(&(none_{data})));\n"
    text += f"{one}.ndim) = (uint32_t){len(shape)};\n"
    text += f"{one}.dtype.code) = (uint8_t)2;\n{one}.dtype.bits) = (uint8_t)32;\n{one}.dtype.lanes) = (uint16_t)1;\n"
    return text + f"{one}.byte_offset) = (uint64_t)0;\n{one}.device.device_type) = (DLDeviceType)1;\n"


def packed(shapes=True, checked=False):
    """Ahead of time with packed arguments: main builds arrays and tensors on its stack (interface `packed`).

    `shapes`: main initializes the tensors; otherwise it sets only their data and passes on its own arguments, as
    releases with LegalizePackedCalls do. `checked`: operators check their shapes.
    """
    code = _packed_operators(checked)
    stacks = {"tcode": 1, "value": 2, "array": 12, "shape": 4} | ({} if shapes else {"sid": 6})
    body = "".join(f"  TVMValue stack_{n}_{k}[{n}];\n  void* stack_{k} = stack_{n}_{k};\n" for k, n in stacks.items())
    body += _unpack(["x_buffer_var", "y_buffer_var"])
    body += "  void* sid_1 = TVMBackendAllocWorkspace(1, 0, (uint64_t)12, 0, 8);\n" + return_if("sid_1 == NULL")
    for number, given in enumerate(
        ((("x_buffer_var", (1, 4)), ("sid_1", (1, 3))), (("sid_1", (1, 3)), ("y_buffer_var", (1, 2))))
    ):
        entries = []
        for at, (data, shape) in enumerate(given):
            if shapes:
                body += _stack_tensor(at, data, shape).replace(f"none_{data}", f"none_{number}_{data}")
                entries.append(f"(((DLTensor*)stack_array) + {at})")
            elif data == "sid_1":
                body += "  (((DLTensor*)stack_sid)[0].data) = sid_1;\n"
                body += "  (((DLTensor*)stack_sid)[0].device.device_type) = (DLDeviceType)1;\n"
                entries.append("stack_sid")
            else:
                entries.append(f"arg_{data}")
        for at, one in enumerate(entries):
            body += f"  (((TVMValue*)stack_value)[{at}].v_handle) = {one};\n  ((int32_t*)stack_tcode)[{at}] = 7;\n"
        body += f"  TVMValue ret_val_{number};\n  int ret_type_code_{number};\n"
        call = f"( (TVMValue*) stack_value , (int*) stack_tcode, 2, &ret_val_{number}, &ret_type_code_{number}, NULL)"
        body += f"  if (tvmgen_default_{OPERATORS[number]}{call} != 0){{\n    return -1;\n  }}\n"
    body += return_if("TVMBackendFreeWorkspace(1, 0, sid_1) != 0")
    code += _function("__tvm_main__", _PACKED, body)
    return {
        "metadata.json": metadata(7),
        LIB0: _REGISTRY.format(operator="__tvm_main__").encode(),
        LIB1: code.encode(),
        "src/default.relay": RELAY.encode(),
    }


def graph():
    """The graph executor: a weight as a parameter, a reshape that changes a shape, one that does not."""
    code = _packed_operators()
    body = _unpack(["p0", "p1", "T_out"]) + _dense(
        "((float*)p0)", "((float*)p1)", "constant_b1", "((float*)T_out)", 4, 3, True
    )
    code += _function("fused_dense_relu_1", _PACKED, body)

    def node(name, inputs, function="__nop"):
        attrs = {"num_outputs": "1", "num_inputs": str(len(inputs)), "flatten_data": "0", "func_name": function}
        return {"op": "tvm_op", "name": name, "attrs": attrs, "inputs": [[i, 0, 0] for i in inputs]}

    nodes = [
        {"op": "null", "name": "x", "inputs": []},
        node("reshape_nop", [0]),
        {"op": "null", "name": "p0", "inputs": []},
        node("dense", [1, 2], "tvmgen_default_fused_dense_relu_1"),
        node("reshape_nop", [3]),
        node("reshape_nop", [4]),
        node("dense_1", [5], f"tvmgen_default_{OPERATORS[1]}"),
    ]
    shapes = [[1, 4], [1, 4], [4, 3], [1, 3], [3, 1], [1, 3], [1, 2]]
    whole = {
        "nodes": nodes,
        "arg_nodes": [0, 2],
        "heads": [[6, 0, 0]],
        "attrs": {
            "dltype": ["list_str", ["float32"] * 7],
            "device_index": ["list_int", [1] * 7],
            "storage_id": ["list_int", [0, 0, 1, 2, 2, 2, 3]],
            "shape": ["list_shape", shapes],
        },
        "node_row_ptr": list(range(8)),
    }
    return {
        "metadata.json": metadata(7, "graph"),
        LIB0: _REGISTRY.format(operator=OPERATORS[1]).encode(),
        LIB1: code.encode(),
        "executor-config/graph/default.graph": json.dumps(whole).encode(),
        "parameters/default.params": params({"p0": W1}),
        "src/default.relay": RELAY.encode(),
    }


def cmsis_nn(cpu="cortex-m4"):
    """Operators that call CMSIS-NN, with the line of TVM 0.17 that ignores every error."""
    files = usmp(target=f"-mcpu={cpu}")
    files["codegen/host/src/default_lib2.c"] = (
        b"// tvm target: cmsis-nn \n#include <tvm/runtime/crt/module.h>\n#include <arm_nnfunctions.h>\n"
        b"TVM_DLL int32_t tvmgen_default_cmsis_nn_main_0(int8_t* input_, int8_t* output_) {\n"
        b"  int status = ARM_CMSIS_NN_SUCCESS;\n  arm_softmax_s8(input_, 1, 2, 1, 2, 3, output_);\n"
        b"  switch (!status) {\n  case ARM_CMSIS_NN_SUCCESS: break;\n  case ARM_CMSIS_NN_ARG_ERROR: return -1;\n  }\n"
        b"  return 0;\n}\n"
    )
    return files


def tar_of(files):
    """Return an uncompressed tar, as TVM makes it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        root = tarfile.TarInfo("./")
        root.type = tarfile.DIRTYPE
        archive.addfile(root)
        for name, content in files.items():
            one = tarfile.TarInfo(f"./{name}")
            one.size = len(content)
            archive.addfile(one, io.BytesIO(content))
    return out.getvalue()


def changed(files, *pairs, name=LIB1, count=-1):
    """Return a directory with another text of a file: the code of the operators, unless `name` is given."""
    text = files[name].decode()
    for before, after in pairs:
        assert before in text, before
        text = text.replace(before, after, count)
    return {**files, name: text.encode()}


def imported(files, folder, name="mine", **options):
    """Import a tar; return the result and the manifest."""
    tar = folder / f"{name}.tar"
    tar.write_bytes(tar_of(files))
    done = import_mlf(tar, folder / name, Options(model=name, **options))
    return done, (folder / name / "manifest.yaml").read_text()


def unpack(files, folder):
    """Write the files to a directory."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
