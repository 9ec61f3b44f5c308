# SPDX-License-Identifier: Apache-2.0
"""ONNX files that tests make, against onnxruntime, the interpreter and the emitted C.

The session of onnxruntime has one thread, no memory patterns and no optimisation: operators run as the file has them.
Integer weights are uint8: int8 ones have saturating products on processors without VNNI.
"""

import numpy as np
import onnx
import onnxruntime as ort
from campaign import sized
from models.executor import Library
from models.records import compare, record
from onnx import TensorProto, helper, numpy_helper
from opwest.diagnostics import Diagnostics
from opwest.importers.models.graph.check import check_graph
from opwest.importers.models.graph.types import Rules
from opwest.importers.models.interpret.run import outputs_of, run_graph
from opwest.importers.models.lower.lower import lower_graph, with_passes
from opwest.importers.models.onnx.read import read_onnx
from opwest.importers.models.onnx.unsigned import with_unsigned_weights
from opwest.importers.models.simplify.folding import Folding
from opwest.importers.models.simplify.simplify import simplify

CONFIGURATIONS = sized(2, 50)
"""The number of random models of one operator."""
CASES = 2
DTYPES = {
    "float32": TensorProto.FLOAT,
    "int64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
    "int32": TensorProto.INT32,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
}
ort.set_default_logger_severity(3)


class Made:
    """An ONNX model in the making."""

    def __init__(self, opset=13):
        self.opset = opset
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []

    def input(self, *shape, dtype="float32"):
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, DTYPES[dtype], [int(n) for n in shape]))
        return name

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, kind, *inputs, results=1, domain="", **attributes):
        inputs = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        names = [f"t{len(self.nodes)}_{i}" for i in range(results)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names[0] if results == 1 else names

    def output(self, *names):
        self.outputs.extend(names)

    def model(self):
        results = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "made", self.inputs, results, self.initializers)
        versions = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        made = helper.make_model(graph, opset_imports=versions, ir_version=8)
        # onnxruntime requires the dtypes of outputs.
        inferred = onnx.shape_inference.infer_shapes(made)
        known = {one.name: one for one in (*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output)}
        for one in made.graph.output:
            kind = known[one.name].type.tensor_type.elem_type if one.name in known else 0
            one.type.tensor_type.elem_type = kind or TensorProto.FLOAT
        return made


def floats(random, *shape, scale=1.0):
    return np.asarray(random.standard_normal(shape) * scale, np.float32)


def session(content):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_mem_pattern = False
    return ort.InferenceSession(with_unsigned_weights(content), options, providers=["CPUExecutionProvider"])


def graph_of(content, exact=False):
    """Return the checked graph of a file, whose shapes are those of the operators' own inference."""
    [graph] = read_onnx(content, Rules(float_requantization=exact))
    shapes = [(one, one.shape) for node in graph.nodes for one in node.outputs]
    faults = Diagnostics()
    check_graph(graph, "made.onnx", faults, Folding(graph.rules))
    assert not faults.has_errors, "\n".join(map(str, faults))
    for tensor, shape in shapes:
        assert tensor.shape == shape, tensor
    return graph


def cases_of(content, random, count=CASES, limits=(0, 3)):
    """Return random inputs by name."""
    found = []
    for _ in range(count):
        case = {}
        for one in session(content).get_inputs():
            shape = [n if isinstance(n, int) else 1 for n in one.shape]
            if one.type == "tensor(float)":
                case[one.name] = floats(random, *shape, scale=float(random.choice([0.5, 1, 2])))
            elif one.type == "tensor(bool)":
                case[one.name] = random.integers(0, 2, shape).astype(bool)
            else:
                dtype = {"tensor(int8)": np.int8, "tensor(uint8)": np.uint8}.get(one.type)
                low, high = limits if dtype is None else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
                case[one.name] = random.integers(low, high, shape).astype(dtype or one.type[7:-1])
        found.append(case)
    return found


def check(contents, folder, random, bound, steps=0, exact=False, limits=(0, 3), scales=None):
    """Compare the models; |found - expected| <= bound * max(1, |expected|), or `steps` times a scale for float results.

    Integers differ by at most `steps`. The graphs are returned.
    """
    contents = [one.model().SerializeToString() if isinstance(one, Made) else one for one in contents]
    graphs = [graph_of(content, exact) for content in contents]
    library = compiled(graphs, folder)
    for number, (content, graph) in enumerate(zip(contents, graphs, strict=True)):
        oracle, key = session(content), key_of(content, exact)
        cases = cases_of(content, random, limits=limits)
        record(*key, files=1, runs=len(cases))
        for case in cases:
            expected = oracle.run(None, case)
            given = [case[one.name] for one in oracle.get_inputs()]
            interpreted = outputs_of(graph, run_graph(graph, given))
            runs = [("interpreter", interpreted)]
            if library is not None:
                runs.append(("emitted C", library.run(number, given)))
            for name, results in runs:
                for wanted, found in zip(expected, results, strict=True):
                    assert wanted.size == found.size and wanted.dtype == found.dtype, (name, wanted.shape, found.shape)
                    allowed = steps * scales[number] if scales else steps
                    compare(key, wanted, found.reshape(wanted.shape), bound, f"model {number}: {name}", allowed)
    return graphs


def compiled(graphs, folder):
    """Return the library of the graphs, simplified as by an import."""
    programs = []
    for graph in graphs:
        faults = Diagnostics()
        programs.append(with_passes(lower_graph(simplify(graph), "made.onnx", faults)))
    folder.mkdir(exist_ok=True)
    return Library(programs, folder)


def key_of(content, exact):
    """Return the row of the summary: the first operator other than quantisations, and the dtype of the input."""
    graph = onnx.load_from_string(content).graph
    kinds = [node.op_type for node in graph.node]
    kind = next((one for one in kinds if one not in ("QuantizeLinear", "DequantizeLinear", "Constant")), kinds[0])
    weights = {helper.tensor_dtype_to_np_dtype(one.data_type).name for one in graph.initializer}
    dtype = "quantised" if weights & {"int8", "uint8"} else "float32"
    return f"ONNX {kind}", f"{dtype}, exact" if exact else dtype, "onnxruntime"


def kinds_of(graph):
    return [node.kind for node in graph.nodes]
