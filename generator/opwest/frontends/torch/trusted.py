# SPDX-License-Identifier: Apache-2.0
"""An archive for `torch.export.load`: without pickles, if PyTorch executes nothing of the file but operators.

PyTorch evaluates the texts of dimensions as Python (sympy.sympify), finds operators by any path below the module torch,
and imports the classes of its trees of arguments by name. Source: torch/_export/serde/serialize.py
(_parse_sym_expr, deserialize_operator, treespec_loads).
"""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from opwest.compiler.graph.types import Unsupported
from opwest.frontends.torch.archive import Archive

_SAMPLES = ("data/sample_inputs/", "serialized_example_inputs.pt")
_TARGET = re.compile(
    r"torch\.ops\.(aten|prims|higher_order|quantized_decomposed|torchao|pt2e_quant)\.\w+(\.\w+)?"
    r"|torch\.sym_\w+|math\.(ceil|floor|trunc|sqrt)"
    r"|_operator\.(add|sub|mul|floordiv|truediv|mod|pow|neg|eq|ne|lt|le|gt|ge|and_|or_|not_|getitem)"
)
_FUNCTIONS = frozenset(
    (
        *("Symbol", "Integer", "Float", "Rational", "Add", "Mul", "Pow", "Mod", "PythonMod", "FloorDiv", "CleanDiv"),
        *("CeilDiv", "IntTrueDiv", "FloatTrueDiv", "Max", "Min", "Abs", "ToFloat", "TruncToInt", "floor", "ceiling"),
        *("Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality", "GreaterThan", "LessThan", "And", "Or", "Not"),
        *("StrictGreaterThan", "StrictLessThan", "Where", "Identity"),
    )
)
_NODES = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Name, ast.Constant, ast.keyword),
    *(ast.operator, ast.unaryop, ast.cmpop, ast.expr_context),
)
_NAME = re.compile(r"[A-Za-z]\w*")
_TREES = frozenset(("builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict", None))


def for_runtime(content: bytes) -> bytes:
    """Return an archive whose pickles of sample inputs are empty. Raises Damaged, Unsupported."""
    archive = Archive(content)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as target:
        for name in archive.members:
            if name.endswith("/"):
                continue
            data = b"" if name.startswith(_SAMPLES) else archive.read(name)
            if name.endswith(".json"):
                data = json.dumps(_checked(archive.json(name))).encode()
            target.writestr(archive.top + name, data)
    return made.getvalue()


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    """Return a program without code of guards. Raises Unsupported."""
    if "guards_code" in document:
        document["guards_code"] = []
    for key, value in _members(document):
        if key == "target" and not (isinstance(value, str) and _TARGET.fullmatch(value)):
            raise Unsupported(f"the program calls '{str(value)[:60]}', which is no operator of PyTorch")
        if key == "expr_str" and not (isinstance(value, str) and _is_plain(value)):
            raise Unsupported(f"a dimension has the text '{str(value)[:60]}', which PyTorch evaluates")
        if key in ("in_spec", "out_spec") and not (isinstance(value, str) and _is_tree(value)):
            raise Unsupported("arguments or results are in other containers than tuples, lists and dictionaries")
    return document


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of all objects in a JSON value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _members(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _members(inner)


def _is_plain(text: str) -> bool:
    """Return whether an expression consists of numbers, names and known functions."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            return False
        if isinstance(node, ast.Name) and not _NAME.fullmatch(node.id):
            return False
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _NAME.fullmatch(node.value):
            return False
    return True


def _is_tree(text: str) -> bool:
    """Return whether a tree of arguments has only the containers of Python."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return False
    types = [value for key, value in _members(tree) if key == "type"]
    return all(value is None or isinstance(value, str) for value in types) and _TREES.issuperset(types)
