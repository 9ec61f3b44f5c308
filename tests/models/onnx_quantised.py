# SPDX-License-Identifier: Apache-2.0
"""Models quantised by onnxruntime's own tool, with random calibration data."""

import logging

import onnx
from models.onnx_support import cases_of, check
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

TYPES = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}


class Reader(CalibrationDataReader):
    def __init__(self, cases):
        self.cases = iter(cases)

    def get_next(self):
        return next(self.cases, None)


def _tool(quantize, model, folder, *words, weights, **options):
    """Return the content that a function of the tool writes for a model."""
    logging.getLogger().setLevel(logging.ERROR)
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "float.onnx")
    quantize(folder / "float.onnx", folder / "quantised.onnx", *words, weight_type=TYPES[weights], **options)
    return (folder / "quantised.onnx").read_bytes()


def quantised(model, folder, random, form="QDQ", data="int8", weights="int8", per_channel=False):
    cases = Reader(cases_of(model.SerializeToString(), random, 8))
    options = {"quant_format": getattr(QuantFormat, form), "activation_type": TYPES[data], "per_channel": per_channel}
    return _tool(quantize_static, model, folder, cases, weights=weights, **options)


def dynamic(model, folder, weights="int8", per_channel=False):
    return _tool(quantize_dynamic, model, folder, weights=weights, per_channel=per_channel)


def scale_of(content):
    """Return the scale of the DequantizeLinear that computes the output; 0 for a float result."""
    model = onnx.load_from_string(content)
    constants = {one.name: one for one in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.output[0] == model.graph.output[0].name:
            return float(numpy_helper.to_array(constants[node.input[1]]))
    return 0.0


def check_exact_and_fixed(contents, folder, random, bound=1e-6):
    """Compare with --exact, and with at most one step without; return the graphs.

    The results are float32: a step is the scale of the last DequantizeLinear.
    """
    check(contents, folder / "exact", random, bound, exact=True)
    return check(contents, folder / "fixed", random, bound, 1.001, scales=[scale_of(content) for content in contents])
