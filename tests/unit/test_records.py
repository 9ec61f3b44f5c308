# SPDX-License-Identifier: Apache-2.0
"""Records, origins and diagnostics."""

import copy
import dataclasses
import pickle
from typing import ClassVar

import opwest.base.frozen_dataclass
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opwest.base.diagnostics import Diagnostic, Location
from opwest.objects.compilers import Origin, Origins

# --- Frozen records behave like those of dataclasses


def made_by(dataclass):
    @dataclass(frozen=True, slots=True)
    class Pair:
        first: int
        second: str = "x"
        note: list = dataclasses.field(default_factory=list, compare=False, repr=False)

    @dataclass(frozen=True)
    class Empty:
        pass

    @dataclass(frozen=True)
    class Own:
        value: int

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    return Pair, Empty, Own


OURS, THEIRS = made_by(opwest.base.frozen_dataclass.dataclass), made_by(dataclasses.dataclass)


@given(st.integers(0, 2), st.text("ab", max_size=1), st.integers(0, 2), st.text("ab", max_size=1))
def test_equality_is_that_of_dataclasses(a, b, c, d):
    assert (OURS[0](a, b, [1]) == OURS[0](c, d)) == (THEIRS[0](a, b, [1]) == THEIRS[0](c, d))
    assert (hash(OURS[0](a, b)) == hash(OURS[0](c, d))) == (hash(THEIRS[0](a, b)) == hash(THEIRS[0](c, d)))


def test_text_is_that_of_dataclasses():
    for ours, theirs, values in zip(OURS, THEIRS, [(1, "a"), (), (1,)], strict=True):
        assert repr(ours(*values)) == repr(theirs(*values))


def test_methods_of_the_class_are_kept():
    assert OURS[2](1) == OURS[2](2)
    assert hash(OURS[2](1)) == 7


def test_other_types_are_never_equal():
    assert OURS[0](1) != THEIRS[0](1)
    assert OURS[1]() == OURS[1]() and OURS[1]() != OURS[0](1)
    assert hash(OURS[1]()) == hash(OURS[1]())


def test_records_are_frozen_and_can_be_replaced():
    one = OURS[0](1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.first = 2
    with pytest.raises(AttributeError):
        del one.first
    assert dataclasses.replace(one, first=2) == OURS[0](2)
    assert dataclasses.asdict(one) == {"first": 1, "second": "x", "note": []}
    assert not hasattr(one, "__dict__")
    assert copy.copy(one) == one


def test_records_can_be_pickled():
    from opwest.base.diagnostics import Location
    from opwest.plan.problem import Block

    block = Block("a", 1, 1, 0, 1)
    assert pickle.loads(pickle.dumps((block, Location("f")))) == (block, Location("f"))


def parameters_made_by(dataclass):
    @dataclass(frozen=True, slots=True)
    class Base:
        a: int
        b: list = dataclasses.field(default_factory=list)

        def __post_init__(self):
            if self.a < 0:
                raise ValueError("negative")

    @dataclass(frozen=True, slots=True)
    class Derived(Base):
        c: int = 3
        d: int = dataclasses.field(default=4, init=False)
        e: tuple = dataclasses.field(default_factory=tuple, init=False)
        f: int = dataclasses.field(default=6, kw_only=True)

    @dataclass(slots=True, eq=False)
    class Mutable:
        a: int
        b: list = dataclasses.field(default_factory=list)

        def __post_init__(self):
            self.a += 1

    @dataclasses.dataclass(frozen=True, order=True)
    class Ordered(Base):
        g: int = 0

    return Base, Derived, Mutable, Ordered


@pytest.mark.parametrize(
    ("values", "named"),
    [
        *[((1,), {}), ((1, [2]), {}), ((), {"a": 1, "b": [5]}), ((1,), {"c": 7, "f": 8}), ((1, [], 2), {})],
        *[((), {}), ((1, [], 2, 3), {}), ((1,), {"d": 1}), ((1,), {"a": 2}), ((-1,), {}), ((1,), {"g": 0})],
    ],
)
def test_initialisation_is_that_of_dataclasses(values, named):
    def results(dataclass):
        for made in parameters_made_by(dataclass):
            for _ in range(2 * opwest.base.frozen_dataclass._CALLS):  # a later call compiles __init__
                try:
                    yield dataclasses.asdict(made(*values, **named)), repr(made(*values, **named))
                except (TypeError, ValueError) as error:
                    yield str(error)

    assert list(results(opwest.base.frozen_dataclass.dataclass)) == list(results(dataclasses.dataclass))


def test_a_subclass_can_have_attributes_of_its_own():
    @opwest.base.frozen_dataclass.dataclass(frozen=True)
    class Base:
        first: int

    class Open(Base):
        def __init__(self):
            super().__init__(1)

    one = Open()
    assert one.first == 1
    one.value = 1
    del one.value
    assert not hasattr(one, "value")


@pytest.mark.parametrize("options", [{}, {"slots": True}, {"order": True}, {"frozen": True, "eq": False}])
def test_classes_are_those_of_dataclasses(options):
    def results(dataclass):
        @dataclass(**options)
        class Base:
            value: int
            shared: ClassVar[int] = 3
            name: str = "x"
            by_name: int = dataclasses.field(default=2, kw_only=True)

        @dataclass(**options)
        class Derived(Base):
            last: list = dataclasses.field(default_factory=list, metadata={"a": 1}, repr=False)

        for made in (Base, Derived):
            yield dataclasses.is_dataclass(made), made.__match_args__, made.__doc__ is None, Base.shared
            yield [(f.name, f.type, f.default, f.init, f.repr, f.kw_only, f.metadata) for f in dataclasses.fields(made)]
            yield made(1) == made(1), made.__hash__ is None, repr(made(1)).split(".")[-1], hasattr(made(1), "__dict__")
            yield dataclasses.asdict(dataclasses.replace(made(1), value=2)), hasattr(made, "by_name")
            match made(4):
                case made(value, name):
                    yield value, name

    ours = list(results(opwest.base.frozen_dataclass.dataclass))
    assert ours == list(results(dataclasses.dataclass)) and len(ours) == 10


# --- The compilers that are recognized by the symbols of their objects

FAUST = {"computemydsp", "instanceInitmydsp", "getNumInputsmydsp", "initmydsp"}
HALIDE = {"scale", "scale_argv", "scale_metadata"}


@pytest.mark.parametrize(
    ("symbol", "defined", "undefined", "expected"),
    [
        ("scale", HALIDE, (), ("Halide", "halide", "scale")),
        ("scale_argv", HALIDE, (), ("Halide", "halide", "scale")),
        ("scale_metadata", HALIDE, (), ("Halide", "halide", "scale")),
        ("scale", {"scale"}, ("halide_malloc",), None),
        ("scale", {"scale", "scale_argv"}, (), None),
        ("relu", {"relu", "_mlir_ciface_relu"}, ("memcpy",), ("MLIR", "memref", "_mlir_ciface_relu")),
        ("_mlir_ciface_relu", {"relu", "_mlir_ciface_relu"}, (), ("MLIR", "memref", "_mlir_ciface_relu")),
        ("relu", {"relu"}, ("memcpy",), None),
        ("mul_library_query", {"mul_library_query"}, (), ("IREE", None, "mul_library_query")),
        ("mul_create", {"mul_create"}, ("iree_vm_module_initialize",), ("IREE", None, "mul_create")),
        ("__tvm_ffi_main", {"__tvm_ffi_main"}, (), ("TVM", "ffi", "__tvm_ffi_main")),
        ("f", {"f", "f_work", "f_sparsity_in"}, (), ("CasADi", "pointer-tables", "f")),
        ("f_n_in", {"f", "f_work", "f_sparsity_in"}, (), ("CasADi", "pointer-tables", "f")),
        ("f_copy", {"f", "f_work", "f_sparsity_in", "f_copy"}, (), ("CasADi", "pointer-tables", "f")),
        ("g", {"f", "f_work", "f_sparsity_in", "g"}, (), None),
        ("f", {"f", "f_work"}, (), None),
        ("computemydsp", FAUST, (), ("Faust", "pointer-tables", "computemydsp")),
        ("initmydsp", FAUST, (), ("Faust", "pointer-tables", "computemydsp")),
        ("computemydsp", {"computemydsp"}, (), None),
        ("add", {"add"}, ("TVMAPISetLastError",), ("TVM", "packed", "add")),
        ("add", {"add", "__tvm_module_ctx"}, (), ("TVM", "packed", "add")),
        ("add", {"add"}, ("TVMBackendAllocWorkspace",), None),
    ],
)
def test_origin(symbol, defined, undefined, expected):
    """An origin follows from the symbols of the object; unknown functions have none."""
    found = Origins(defined, undefined).of(symbol)
    assert (found and (found.tool, found.convention, found.symbol)) == expected


def test_evidence():
    """An origin names what the object contains."""
    found = Origins(HALIDE, ()).of("scale")
    assert found == Origin("Halide", "halide", "scale", "defines 'scale_argv' and 'scale_metadata'")


# --- Diagnostics as text


def test_place_message_expectation_hint():
    text = str(Diagnostic("error", "this is wrong", Location("a.yaml", 3, 4), "right", "correct it"))
    assert text == "a.yaml:3:4: error: this is wrong\n  expected: right\n  hint: correct it"
    assert str(Diagnostic("note", "look")) == "opwest: note: look"


def test_overlong_words_are_shortened_in_the_middle():
    """Long words of damaged input are shortened; those of up to 1,000 characters, such as a long path, are not."""
    path, noise = "p" * 1000, "x" * 400 + "y" * 3000 + "z" * 200
    text = str(Diagnostic("error", f"type {noise} of {path}", None, noise, noise))
    cut = "x" * 400 + "…" + "z" * 200
    assert text == f"opwest: error: type {cut} of {path}\n  expected: {cut}\n  hint: {cut}"
