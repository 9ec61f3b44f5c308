# SPDX-License-Identifier: Apache-2.0
"""ONNX files that tests make, against onnxruntime, the interpreter and the emitted C.

Its session has one thread, no memory patterns and no optimisation: operators run as the file has them. Integer weights
are uint8: int8 ones have saturating products on processors without VNNI.
"""

import numpy as np
from campaign import sized
from models.bounds import ONNX, compare, record
from models.executor import Library, checked, interpreted, program_of
from requirements_support import need

need("onnx", "onnxruntime")

import onnx  # noqa: E402
import onnxruntime as ort  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from opwest.compiler.graph.types import Rules  # noqa: E402
from opwest.compiler.lowering.simplify import Folding, simplify  # noqa: E402
from opwest.frontends.onnx.file import with_unsigned_weights  # noqa: E402
from opwest.frontends.onnx.read import read_onnx  # noqa: E402

CONFIGURATIONS = sized(2, 50)
"""The number of random models of one operator."""
CASES = 2
DTYPES = {"float32": TensorProto.FLOAT} | {
    name: getattr(TensorProto, name.upper()) for name in ("int64", "bool", "int32", "int8", "uint8")
}
ort.set_default_logger_severity(3)


class Made:
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
        return self

    def ending_with(self, kind, *inputs, **options):
        """Add an operator whose results are outputs; return the model."""
        found = self.add(kind, *inputs, **options)
        return self.output(*([found] if isinstance(found, str) else found))

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


def opset_of(random, least=11):
    return int(random.integers(least, 22))


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
    checked(graph, Folding(graph.rules))
    for tensor, shape in shapes:
        assert tensor.shape == shape, tensor
    return graph


def cases_of(content, random, count=CASES, limits=(0, 3)):
    inputs = session(content).get_inputs()

    def array(one):
        shape = [n if isinstance(n, int) else 1 for n in one.shape]
        if one.type == "tensor(float)":
            return floats(random, *shape, scale=float(random.choice([0.5, 1, 2])))
        if one.type == "tensor(bool)":
            return random.integers(0, 2, shape).astype(bool)
        dtype = {"tensor(int8)": np.int8, "tensor(uint8)": np.uint8}.get(one.type)
        low, high = limits if dtype is None else (np.iinfo(dtype).min, np.iinfo(dtype).max + 1)
        return random.integers(low, high, shape).astype(dtype or one.type[7:-1])

    return [{one.name: array(one) for one in inputs} for _ in range(count)]


def check(contents, folder, random, bound, steps=0, exact=False, limits=(0, 3), scales=None):
    """Compare the models as bounds.compare() does, with `steps` times the scale of a model; return the graphs."""
    contents = [one.model().SerializeToString() if isinstance(one, Made) else one for one in contents]
    graphs = [graph_of(content, exact) for content in contents]
    folder.mkdir(exist_ok=True)
    library = Library([program_of(simplify(graph)) for graph in graphs], folder)
    for number, (content, graph) in enumerate(zip(contents, graphs, strict=True)):
        oracle, key = session(content), key_of(content, exact)
        cases = cases_of(content, random, limits=limits)
        record(*key, files=1, runs=len(cases))
        for case in cases:
            expected = oracle.run(None, case)
            given = [case[one.name] for one in oracle.get_inputs()]
            for name, results in (
                ("interpreter", interpreted(graph, given)),
                ("emitted C", library.run(number, given)),
            ):
                for wanted, found in zip(expected, results, strict=True):
                    assert wanted.size == found.size and wanted.dtype == found.dtype, (name, wanted.shape, found.shape)
                    allowed = steps * scales[number] if scales else steps
                    compare(key, wanted, found.reshape(wanted.shape), bound, f"model {number}: {name}", allowed)
    return graphs


def check_family(folder, make, kind, count=1):
    """Compare `count` times as many models of make(random, kind) as configured; return the graphs."""
    random = np.random.default_rng([ord(c) for c in kind])
    models = [make(random, kind) for _ in range(count * CONFIGURATIONS)]
    return check(models, folder, random, ONNX[kind])


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
