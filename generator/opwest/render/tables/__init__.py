# SPDX-License-Identifier: Apache-2.0
"""The emitted data of a model as typed records, which c/ and llvm/ print."""
