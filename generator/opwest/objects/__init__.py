# SPDX-License-Identifier: Apache-2.0
"""Read compiled objects and C sources, independent of models.

`inspect.inspect_object` is the entry; `facts` defines its results. No toolchain is needed.
"""
