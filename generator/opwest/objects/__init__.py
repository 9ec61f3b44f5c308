# SPDX-License-Identifier: Apache-2.0
"""Reading compiled objects and C sources: facts about them, nothing about models.

`inspect.inspect_object` is the entry; `facts` holds what it returns. No toolchain is needed.
"""
