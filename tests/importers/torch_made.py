# SPDX-License-Identifier: Apache-2.0
"""Archives of exported programs of PyTorch, written without PyTorch: JSON and raw bytes of tensors.

Source: torch/_export/serde/schema.py, torch/export/pt2_archive of PyTorch 2.13 and 2.7.
"""

import io
import json
import struct
import zipfile

import numpy as np

CODES = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float32": 7, "float64": 8, "complex64": 10}
CODES |= {"bool": 12}


class Ref(str):
    """The name of a tensor as an argument."""

    __slots__ = ()


def argument(value):
    """Return a value as a member of the union Argument."""
    if isinstance(value, dict):  # as it is in the file
        return value
    if value is None:
        return {"as_none": True}
    if isinstance(value, Ref):
        return {"as_tensor": {"name": str(value)}}
    if isinstance(value, np.dtype):
        return {"as_scalar_type": CODES[str(value)]}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, Ref) for item in value):
            return {"as_tensors": [{"name": str(item)} for item in value]}
        kind = "as_floats" if any(isinstance(item, float) for item in value) else "as_ints"
        return {kind: list(value)}
    kinds = {bool: "as_bool", int: "as_int", float: "as_float", str: "as_string"}
    return {kinds[type(value)]: value}


def meta(dtype, shape, symbol=None):
    """Return a TensorMeta of a contiguous tensor; `symbol` is the first dimension."""
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    sizes = [{"as_int": int(n)} for n in shape]
    if symbol is not None:
        sizes[0] = {"as_expr": {"expr_str": symbol, "hint": {"as_int": 5}}}
    return {
        "dtype": CODES[dtype],
        "sizes": sizes,
        "requires_grad": False,
        "device": {"type": "cpu", "index": None},
        "strides": [{"as_int": n} for n in strides],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


class Program:
    """A program in the making."""

    def __init__(self):
        self.metas, self.arrays, self.nodes = {}, {}, []
        self.input_specs, self.output_specs = [], []
        self.schema = {"major": 8, "minor": 20}

    def constant(self, name, array, kind="parameter"):
        """Add a parameter, a buffer or a tensor constant; its path in the model is the name with a dot."""
        array = np.ascontiguousarray(array)
        self.arrays[name.replace("_", ".", 1)] = array
        self.metas[name] = meta(str(array.dtype), array.shape)
        entry = {"arg": {"name": name}, f"{kind}_name": name.replace("_", ".", 1)}
        self.input_specs.append({kind: entry | ({"persistent": True} if kind == "buffer" else {})})
        return Ref(name)

    def input(self, name, shape, dtype="float32", symbol=None):
        self.metas[name] = meta(dtype, shape, symbol)
        self.input_specs.append({"user_input": {"arg": {"as_tensor": {"name": name}}}})
        return Ref(name)

    def call(self, target, name, shape, dtype="float32", /, **arguments):
        """Add a node with one result, or with several if `name` is a list."""
        names = [name] if isinstance(name, str) else name
        shapes = [shape] if isinstance(name, str) else shape
        for one, size in zip(names, shapes, strict=True):
            self.metas[one] = meta(dtype, size)
        inputs = [{"name": key, "arg": argument(value), "kind": 1} for key, value in arguments.items()]
        outputs = [{"as_tensor": {"name": one}} for one in names]
        self.nodes.append({"target": f"torch.ops.{target}", "inputs": inputs, "outputs": outputs, "metadata": {}})
        return Ref(name) if isinstance(name, str) else [Ref(one) for one in names]

    def output(self, *names):
        for name in names:
            self.output_specs.append({"user_output": {"arg": {"as_tensor": {"name": str(name)}}}})

    def mutation(self, buffer, name):
        self.output_specs.append({"buffer_mutation": {"arg": {"name": str(name)}, "buffer_name": buffer}})

    def document(self):
        """Return the content of models/model.json."""
        names = [entry["arg"] for spec in self.input_specs for entry in spec.values() if "arg" in entry]
        graph = {
            "inputs": [arg if "as_tensor" in arg else {"as_tensor": arg} for arg in names],
            "outputs": [],
            "nodes": self.nodes,
            "tensor_values": self.metas,
            "sym_int_values": {},
            "sym_bool_values": {},
        }
        signature = {"input_specs": self.input_specs, "output_specs": self.output_specs}
        module = {"graph": graph, "signature": signature, "module_call_graph": []}
        return {"graph_module": module, "opset_version": {"aten": 10}, "schema_version": self.schema}

    def members(self):
        """Return the members of an archive of PyTorch 2.9 and newer below its top folder."""
        config, members = {}, {}
        for number, (path, array) in enumerate(self.arrays.items()):
            description = meta(str(array.dtype), array.shape)
            entry = {"path_name": f"weight_{number}", "is_param": True, "use_pickle": False}
            config[path] = {**entry, "tensor_meta": description}
            members[f"data/weights/weight_{number}"] = array.tobytes()
        members["data/weights/model_weights_config.json"] = json.dumps({"config": config})
        members["data/constants/model_constants_config.json"] = json.dumps({"config": {}})
        members["models/model.json"] = json.dumps(self.document())
        members["data/sample_inputs/model.pt"] = b"\x80\x02cos\nsystem\n."
        return members | {"archive_format": "pt2", "archive_version": "0", "byteorder": "little"}

    def content(self, **options):
        """Return the archive."""
        return zipped(self.members(), **options)

    def old_content(self):
        """Return an archive of PyTorch 2.7: tensors in a file of torch.save."""
        members = {"serialized_exported_program.json": json.dumps(self.document()), "version": "8.7"}
        members["serialized_state_dict.pt"] = saved(self.arrays)
        return zipped(members | {"serialized_constants.pt": saved({})}, top="")


def zipped(members, top="m/", compression=zipfile.ZIP_STORED):
    """Return a zip archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(top + name, data)
    return stream.getvalue()


_STORAGES = {"float32": "FloatStorage", "int8": "CharStorage", "int64": "LongStorage", "int32": "IntStorage"}


def saved(arrays):
    """Return a file of torch.save with a dictionary of tensors."""
    data = b"\x80\x02ccollections\nOrderedDict\n)R("
    for number, (name, array) in enumerate(arrays.items()):
        sizes = b"(" + b"".join(b"J" + struct.pack("<i", n) for n in array.shape) + b"t"
        steps = [stride // array.itemsize for stride in array.strides]
        strides = b"(" + b"".join(b"J" + struct.pack("<i", n) for n in steps) + b"t"
        storage = f"ctorch\n{_STORAGES[str(array.dtype)]}\n".encode()
        data += _text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(("
        data += _text("storage") + storage + _text(str(number)) + _text("cpu") + b"J" + struct.pack("<i", array.size)
        data += b"tQK\x00" + sizes + strides + b"\x89ccollections\nOrderedDict\n)RtR"
    members = {"data.pkl": data + b"u.", "byteorder": "little", "version": "3"}
    members |= {f"data/{number}": array.tobytes() for number, array in enumerate(arrays.values())}
    return zipped(members, top="archive/")


def _text(text):
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def convolution(generator):
    """A convolution with batch normalisation and a linear layer, as torch.export writes them."""
    p = Program()
    weight = p.constant("p_conv", generator.normal(size=(4, 3, 3, 3)).astype(np.float32))
    scale, offset = (p.constant(f"p_{name}", generator.normal(size=4).astype(np.float32)) for name in ("bn", "shift"))
    mean = p.constant("b_mean", generator.normal(size=4).astype(np.float32), "buffer")
    variance = p.constant("b_var", generator.uniform(0.5, 2, 4).astype(np.float32), "buffer")
    matrix = p.constant("p_matrix", generator.normal(size=(5, 4)).astype(np.float32))
    bias = p.constant("p_bias", generator.normal(size=5).astype(np.float32))
    x = p.input("x", (1, 3, 8, 8))
    y = p.call("aten.conv2d.default", "conv2d", (1, 4, 4, 4), input=x, weight=weight, stride=[2, 2], padding=[1, 1])
    statistics = {"running_mean": mean, "running_var": variance, "training": False, "eps": 1e-5}
    y = p.call("aten.batch_norm.default", "bn", (1, 4, 4, 4), input=y, weight=scale, bias=offset, **statistics)
    y = p.call("aten.relu.default", "relu", (1, 4, 4, 4), self=y)
    y = p.call("aten.mean.dim", "mean", (1, 4), self=y, dim=[2, 3])
    y = p.call("aten.linear.default", "linear", (1, 5), input=y, weight=matrix, bias=bias)
    p.output(p.call("aten.softmax.int", "softmax", (1, 5), self=y, dim=-1))
    return p


def quantised(generator):
    """A convolution of int8 between quantize and dequantize, with a float32 bias, as XNNPACK's quantiser leaves it."""
    p = Program()
    weight = p.constant("b_weight", generator.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), "buffer")
    scales = p.constant("b_scales", generator.uniform(0.001, 0.01, 4).astype(np.float32), "buffer")
    zeros = p.constant("b_zeros", np.zeros(4, np.int64), "buffer")
    bias = p.constant("p_bias", generator.normal(size=4).astype(np.float32))
    x = p.input("x", (1, 3, 8, 8))
    named = {"quant_min": -128, "quant_max": 127, "dtype": np.dtype("int8")}
    first, second = {"scale": 0.02, "zero_point": 3, **named}, {"scale": 0.05, "zero_point": -7, **named}
    decomposed = "quantized_decomposed"
    channels = {"axis": 0, **named, "quant_min": -127}
    w = {"input": weight, "scales": scales, "zero_points": zeros, **channels}
    real = p.call(f"{decomposed}.dequantize_per_channel.default", "w", (4, 3, 3, 3), **w)
    q = p.call(f"{decomposed}.quantize_per_tensor.default", "q", (1, 3, 8, 8), "int8", input=x, **first)
    d = p.call(f"{decomposed}.dequantize_per_tensor.default", "d", (1, 3, 8, 8), input=q, **first)
    y = p.call("aten.conv2d.default", "conv2d", (1, 4, 8, 8), input=d, weight=real, bias=bias, padding=[1, 1])
    q = p.call(f"{decomposed}.quantize_per_tensor.default", "q_1", (1, 4, 8, 8), "int8", input=y, **second)
    p.output(p.call(f"{decomposed}.dequantize_per_tensor.default", "d_1", (1, 4, 8, 8), input=q, **second))
    return p


def ring(generator):
    """A ring buffer that the program shifts in place, and its sum."""
    p = Program()
    state = p.constant("b_ring", generator.normal(size=(1, 4)).astype(np.float32), "buffer")
    x = p.input("x", (1, 1))
    old = p.call("aten.slice.Tensor", "old", (1, 3), self=state, dim=1, start=1, end=(1 << 63) - 1)
    joined = p.call("aten.cat.default", "cat", (1, 4), tensors=[old, x], dim=1)
    after = p.call("aten.copy_.default", "copy_", (1, 4), self=state, src=joined)
    p.output(p.call("aten.sum.dim_IntList", "sum_1", (1,), self=after, dim=[1]))
    return p
