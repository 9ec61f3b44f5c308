# SPDX-License-Identifier: Apache-2.0
"""Operators as TVM builds them by default: C and LLVM, with and without assertions. Run in a separate process.

    python stock_operators.py DIR TRIPLE

writes <kind>_<on|off>.{c,o} with the functions add_<kind>_<on|off> and so on, kind c or llvm.
"""

import sys
from pathlib import Path

import tvm
from tvm import te, tirx


def functions(suffix):
    """Return an operator without workspace, one with, and one with a scalar and a tensor of bool."""
    a, b = (te.placeholder((4, 8), name=name) for name in "ab")
    add = te.create_prim_func([a, b, te.compute((4, 8), lambda i, j: a[i, j] + b[i, j], name="sum")])
    x = te.placeholder((32, 32), name="x")
    doubled = te.compute((32, 32), lambda i, j: x[i, j] * 2.0, name="doubled")
    k = te.reduce_axis((0, 32), name="k")
    squares = te.compute((32,), lambda i: te.sum(doubled[i, k] * doubled[k, i], axis=k), name="squares")
    factor = tirx.Var("factor", "float32")
    mask = te.placeholder((8,), dtype="bool", name="mask")
    scaled = te.compute((4, 8), lambda i, j: te.if_then_else(mask[j], a[i, j] * factor, a[i, j]), name="scaled")
    made = {
        "add": add,
        "squares": te.create_prim_func([x, squares]),
        "scale": te.create_prim_func([a, mask, factor, scaled]),
    }
    return {f"{name}_{suffix}": f.with_attr("global_symbol", f"{name}_{suffix}") for name, f in made.items()}


def main(folder, triple):
    """Build every variant."""
    for kind, target in (("c", {"kind": "c"}), ("llvm", {"kind": "llvm", "mtriple": triple})):
        for asserts in ("on", "off"):
            module = tvm.IRModule(functions(f"{kind}_{asserts}"))
            with tvm.transform.PassContext(config={"tirx.disable_assert": asserts == "off"}):
                built = tvm.tirx.build(module, target=tvm.target.Target(target))
            if kind == "c":
                (folder / f"c_{asserts}.c").write_text(built.inspect_source())
            else:
                built.write_to_file(str(folder / f"llvm_{asserts}.o"), "o")
                (folder / f"llvm_{asserts}.ll").write_text(built.inspect_source("ll"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
