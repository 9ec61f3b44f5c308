# SPDX-License-Identifier: Apache-2.0
"""Facts about objects, C and C++ sources, LLVM IR and images; no toolchain is needed.

Enters: the content of files (`inspect.inspect_object` is the entry). Leaves: the values of `facts`, and judgements of
them for a target. Never: the meaning of a manifest, operators and models.
"""
