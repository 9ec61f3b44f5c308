# SPDX-License-Identifier: Apache-2.0
"""Front ends: formats of other compilers.

Enters: a file as hostile input. Leaves: a typed graph (tflite, onnx, vela) or a directory with a manifest (mlf, tvm).
Never: arithmetic of operators, which compiler/semantics/ has."""
