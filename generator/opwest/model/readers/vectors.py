# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: inputs, the expected outputs and their tolerances."""

from __future__ import annotations

from collections.abc import Mapping

from opwest.base.diagnostics import Location, nearest
from opwest.base.result import counted
from opwest.manifest.arrays import Array, ArrayError, array_names, read_array
from opwest.manifest.yaml_reader import describe
from opwest.model.inputs.context import Context, located_items
from opwest.model.readers.constants import as_declared
from opwest.model.types.dtypes import DTYPES, TensorType, is_finite
from opwest.model.types.model import Interface
from opwest.model.types.sections import Suite, Tolerance, Vectors


def suite(
    context: Context,
    inputs: Mapping[str, Interface],
    outputs: Mapping[str, Interface],
    *,
    repeatable: bool,
) -> Suite:
    """Return the vectors of the model's tests; report vectors and tolerances that do not match the model.

    `repeatable` is whether equal inputs give equal outputs.
    """
    section = context.section("tests")
    given = section.get("vectors", [])
    if isinstance(given, str):
        files = [(given, section.value_location("vectors"))]
    else:
        files = located_items(context.items("vectors", section))
    reading = _Reading(context, inputs, outputs, section.get("count"))
    vectors = [cases for file, at in files if (cases := reading.read(file, at))]
    return Suite(tuple(vectors), _tolerances(context, inputs, outputs), repeatable=repeatable)


class _Reading:
    """The reader of the vectors of one manifest."""

    def __init__(
        self,
        context: Context,
        inputs: Mapping[str, Interface],
        outputs: Mapping[str, Interface],
        most: int | None,
    ) -> None:
        self.context = context
        self.faults = context.faults
        self.tensors = {
            **{n: ("input", t) for n, t in inputs.items()},
            **{n: ("output", t) for n, t in outputs.items()},
        }
        self.most = most

    def read(self, file: str, at: Location) -> Vectors | None:
        """Return the vectors of a file, None if an error was reported."""
        path = self.context.regular_file(file, at, "an .npz file of test vectors")
        if path is None:
            return None
        try:
            names = array_names(path)
            arrays = {
                name: as_declared(
                    self.context,
                    f"{file}: array {name!r}",
                    self.tensors[name][1].type.dtype,
                    read_array(path, name, key_given=True),
                    at,
                )
                for name in names
                if name in self.tensors
            }
        except ArrayError as error:
            message = f"test vectors: {error.message}"
            self.faults.error(message, at, expected=error.expected, hint=error.hint)
            return None
        known = self._are_complete(file, names, at)
        fitting = [self._fits(file, name, array, at) for name, array in arrays.items()]
        if not known or not all(fitting):
            return None
        count = self._count(file, arrays, at)
        if not count:
            return None
        count = min(count, self.most or count)
        content = ((name, arrays[name].content[: count * t.type.size]) for name, (_, t) in self.tensors.items())
        return Vectors(file, count, tuple(content))

    def _are_complete(self, file: str, names: tuple[str, ...], at: Location) -> bool:
        good = True
        unknown = [name for name in names if name not in self.tensors]
        for name, (role, tensor) in self.tensors.items():
            if name not in names:
                good = False
                self.faults.error(
                    f"{file} has no array for {role} {name!r}",
                    at,
                    expected=f"{tensor.type.dtype.name} {_array_of(tensor.type)}",
                    hint=nearest(name, unknown) if unknown else None,
                )
        if good and unknown:
            good = False
            self.faults.error(
                f"{file} has an array {unknown[0]!r}, which is not an input or output",
                at,
                expected=f"arrays {', '.join(self.tensors)}",
                hint="tests compare only the outputs of the model",
            )
        return good

    def _fits(self, file: str, name: str, array: Array, at: Location) -> bool:
        role, tensor = self.tensors[name]
        type_ = tensor.type
        if array.dtype != type_.dtype.name:
            self.faults.error(
                f"{file}: {role} {name!r} has dtype {array.dtype}, the manifest {type_.dtype.name}",
                at,
                expected=type_.dtype.name,
            )
            return False
        shape = array.shape or ()
        if not shape or shape[1:] not in _shapes_of_a_case(type_):
            self.faults.error(
                f"{file}: {role} {name!r} has shape {list(shape)}",
                at,
                expected=_array_of(type_),
                hint="a single case has N = 1: array[numpy.newaxis]" if shape == type_.shape else None,
            )
            return False
        return True

    def _count(self, file: str, arrays: Mapping[str, Array], at: Location) -> int:
        """Return the number of cases; report arrays with different numbers of cases, or without cases."""
        counts = {name: array.shape[0] if array.shape else 0 for name, array in arrays.items()}
        (first, count), *others = counts.items()
        for name, other in others:
            if other != count:
                self.faults.error(
                    f"{file} has {counted(count, 'case')} of {first!r}, and {other} of {name!r}",
                    at,
                    expected="the same number of cases of each input and output",
                )
                return 0
        if not count:
            self.faults.error(f"{file} has no case", at, expected="arrays whose first dimension is at least 1")
        return count


def _shapes_of_a_case(type_: TensorType) -> list[tuple[int, ...]]:
    """Return the accepted shapes of one case; a leading dimension of 1 can be omitted."""
    return [type_.shape, *([type_.shape[1:]] if type_.shape[:1] == (1,) else [])]


def _array_of(type_: TensorType) -> str:
    shapes = [", ".join(["N", *map(str, shape)]) for shape in _shapes_of_a_case(type_)]
    return f"{' or '.join(f'[{shape}]' for shape in shapes)}, for N cases"


def _tolerances(
    context: Context, inputs: Mapping[str, Interface], outputs: Mapping[str, Interface]
) -> tuple[Tolerance, ...]:
    section = context.section("tolerance", context.section("tests"))
    tolerances = []
    for name, entry in section.items():
        at = section.key_location(name)
        if name not in outputs:
            seen = "is an input, not an output" if name in inputs else "is not an output"
            context.faults.error(f"a tolerance is given for {name!r}, which {seen}", at, hint=nearest(name, outputs))
            continue
        values = {}
        for key in ("absolute", "relative"):
            values[key] = entry.get(key, 0)
            if not is_finite(values[key], DTYPES["float64"]) or values[key] < 0:
                context.faults.error(
                    f"the {key} tolerance is {describe(values[key])}",
                    entry.value_location(key),
                    expected="a finite number, 0 or more",
                )
                values[key] = 0
        tolerances.append(Tolerance(name, float(values["absolute"]), float(values["relative"])))
    return tuple(tolerances)
