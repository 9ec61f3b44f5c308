# SPDX-License-Identifier: Apache-2.0
"""The reader of ONNX files: opsets 11 to 21 of ai.onnx, and the quantised operators of com.microsoft.

Enters: the bytes of a file. Leaves: a graph in TFLite's vocabulary, channels last. Never: arithmetic of operators.
`file.py` parses and checks, `fold.py` finds shapes and folds constants, `control.py` resolves If and Loop,
`quantised.py` writes quantised operators as float operators between DequantizeLinear and QuantizeLinear, `simplify.py`
rewrites, `read.py` makes the graph with the families of operators (`elements.py`, `layers.py`, ...), which share the
layouts of `translation.py`.

Rules. 8-bit layers, sums and products follow TFLite's fixed-point rule: at most one step from onnxruntime for each
operator. With Rules(float_requantization=True) they follow onnxruntime without optimisations: operators of the QLinear
family bit for bit; QDQ operators as well, except where onnxruntime's float32 sums round a tie in another way (means).
Functions of one 8-bit element are tables with ONNX's rounding in both cases. Operators without an 8-bit form, and 8-bit
weights of a matrix product whose zero points differ by column, are computed in float32 between DEQUANTIZE and
ONNX_QUANTIZE, as onnxruntime does.
"""
