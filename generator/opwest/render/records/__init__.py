# SPDX-License-Identifier: Apache-2.0
"""What is emitted of a model, as typed records; the printers of c/ and llvm/ spell them."""
