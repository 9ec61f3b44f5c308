# SPDX-License-Identifier: Apache-2.0
"""The metadata module of a model as LLVM IR."""
