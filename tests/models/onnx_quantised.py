# SPDX-License-Identifier: Apache-2.0
"""Models quantised by onnxruntime's own tool, with random calibration data."""

import logging

import onnx
from models.onnx_support import cases_of
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static


class Reader(CalibrationDataReader):
    def __init__(self, cases):
        self.cases = iter(cases)

    def get_next(self):
        return next(self.cases, None)


def quantised(model, folder, random, form="QDQ", data="int8", weights="int8", per_channel=False, **options):
    """Return the content of a statically quantised model."""
    logging.getLogger().setLevel(logging.ERROR)
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "float.onnx")
    types = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
    cases = cases_of(model.SerializeToString(), random, 8)
    quantize_static(
        folder / "float.onnx",
        folder / "quantised.onnx",
        Reader(cases),
        quant_format=getattr(QuantFormat, form),
        activation_type=types[data],
        weight_type=types[weights],
        per_channel=per_channel,
        **options,
    )
    return (folder / "quantised.onnx").read_bytes()


def dynamic(model, folder, weights="int8", per_channel=False):
    """Return the content of a dynamically quantised model."""
    logging.getLogger().setLevel(logging.ERROR)
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "float.onnx")
    kind = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}[weights]
    quantize_dynamic(folder / "float.onnx", folder / "dynamic.onnx", weight_type=kind, per_channel=per_channel)
    return (folder / "dynamic.onnx").read_bytes()


def scale_of(content):
    """Return the scale of the DequantizeLinear that computes the output; 0 for a float result."""
    model = onnx.load_from_string(content)
    constants = {one.name: one for one in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.output[0] == model.graph.output[0].name:
            return float(numpy_helper.to_array(constants[node.input[1]]))
    return 0.0
