# SPDX-License-Identifier: Apache-2.0
"""The reader of PyTorch's exported programs: what `torch.export.save` writes, without torch and without pickle.

Enters: the bytes of an archive. Leaves: a graph in TFLite's vocabulary, channels last. Never: arithmetic of operators.
`archive.py` opens the archive as hostile input, `weights.py` and `saved.py` read its tensors, `program.py` reads the
graph with checked types. `symbols.py` gives symbolic dimensions their numbers. `build.py` collects operators of ONNX,
which the families (`elements.py`, `layers.py`, ...) make from ATen; `effects.py` resolves operators that change
a tensor in place. `read.py` gives them to the reader of ONNX, which has the shapes, the folding of constants and the
layouts. `trusted.py` makes the archive that PyTorch gets, if it is the reference.

Rules. ATen before and after `run_decompositions()` is read. A buffer that the program changes is a state. Operators
between dequantize and quantize are treated as those of ONNX's QDQ form.
"""
