# SPDX-License-Identifier: Apache-2.0
"""LLVM IR as a source of operators: read it, compare it with a target, compile it to an object.

`api` is the entry and `facts` defines its arguments and results; neither imports llvmlite. All work
that needs llvmlite happens in a child process (`worker`), because damaged bitcode can abort LLVM.
"""
