# SPDX-License-Identifier: Apache-2.0
"""LLVM IR as a source of operators: read it, judge it against a target, compile it to an object.

`api` is the entry and `facts` holds what it takes and returns; neither imports llvmlite. All work
that needs llvmlite happens in a child process (`worker`), because damaged bitcode can abort LLVM.
"""
