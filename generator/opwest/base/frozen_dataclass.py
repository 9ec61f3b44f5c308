# SPDX-License-Identifier: Apache-2.0
"""The decorator `dataclass` with less work at import.

dataclasses examines the annotations of every class and compiles up to six methods from text. For all classes of opwest
this would take a third of the time to generate a small model. Here a class gets functions that all classes share, and
others that replace themselves when they are called: an `__init__` is compiled for the 20th instance. Fields are made
when they are needed. The results are the same for valid classes; unlike dataclasses, this reports no mutable and no
misplaced defaults. Type checkers see dataclasses.dataclass itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

_FIELDS = "__dataclass_fields__"
_KIND = "_field_type"
_MADE_ON_USE = (_FIELDS, "__dataclass_params__", "__match_args__")
_OPTIONS = {"frozen", "slots", "eq"}
_CALLS = 20
"""The calls of an `__init__` that is not compiled; 20 of them take about the time to compile it."""
_MISSING = dataclasses.MISSING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """Return a class with the methods of dataclasses.dataclass."""

        def decorate(cls: type) -> type:
            kinds = " ".join(map(str, cls.__annotations__.values()))
            if not options.keys() <= _OPTIONS or "InitVar" in kinds or "KW_ONLY" in kinds:
                return dataclasses.dataclass(**options)(cls)
            return _decorate(cls, options, has_class_variables="ClassVar" in kinds)

        return decorate if cls is None else decorate(cls)


class _Own:
    """What a class declares itself, from which its fields and methods are made."""

    def __init__(self, cls: Any, names: list[str], options: dict[str, bool]) -> None:
        self.cls = cls
        self.options = options
        self.annotations = {name: cls.__annotations__[name] for name in names}
        self.values = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
        self.made: dict[str, dataclasses.Field[Any]] = {}
        self.parameters: tuple[dataclasses.Field[Any], ...] | None = None
        """All fields, after the first call of `__init__`."""

    def fields(self) -> dict[str, dataclasses.Field[Any]]:
        """Return the fields of the class without those of its bases."""
        if not self.made:
            made = {}
            for name, annotation in self.annotations.items():
                value = self.values.get(name, _MISSING)
                if not isinstance(value, dataclasses.Field):
                    value = dataclasses.field(default=value)
                value.name, value.type = name, annotation
                if value.kw_only is _MISSING:
                    value.kw_only = False
                made[name] = value
            self.made = made  # at once: another thread may make an object
        return self.made

    def complete(self) -> None:
        """Set the attributes that dataclasses.fields, replace and asdict and `match` statements read."""
        fields = _fields(self.cls)
        sample = _sample(frozen=self.options.get("frozen", False))
        for field in fields.values():  # dataclasses.fields leaves out those without this mark
            setattr(field, _KIND, getattr(sample.__dataclass_fields__["field"], _KIND))
        self.cls.__dataclass_fields__ = fields
        self.cls.__dataclass_params__ = sample.__dataclass_params__
        names = tuple(field.name for field in fields.values() if field.init and not field.kw_only)
        setattr(self.cls, "__match_args__", names)  # noqa: B010 - mypy refuses the assignment


@cache
def _sample(*, frozen: bool) -> Any:
    """Return a class of dataclasses, whose marks are those of this version of Python."""
    scope = {"__annotations__": {"field": "int"}, "__doc__": "A class with one field."}
    return dataclasses.dataclass(init=False, eq=False, repr=False, frozen=frozen)(type("Sample", (), scope))


class _OnUse:
    """An attribute of a class that _Own.complete replaces."""

    __slots__ = ("name", "own")

    def __init__(self, own: _Own, name: str) -> None:
        self.own = own
        self.name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self.own.complete()
        return self.own.cls.__dict__[self.name]


def _fields(cls: type) -> dict[str, dataclasses.Field[Any]]:
    """Return all fields of a class by name."""
    fields: dict[str, dataclasses.Field[Any]] = {}
    for base in reversed(cls.__mro__):
        declared = base.__dict__.get(_FIELDS)
        if isinstance(declared, _OnUse):
            fields |= declared.own.fields()
        elif declared is not None:
            fields |= {field.name: field for field in dataclasses.fields(base)}
    return fields


def _decorate(cls: Any, options: dict[str, bool], *, has_class_variables: bool) -> Any:
    namespace = cls.__dict__
    names = list(cls.__annotations__)
    if has_class_variables:
        names = [name for name in names if "ClassVar" not in str(cls.__annotations__[name])]
    own = _Own(cls, names, options)
    # Without a docstring, dataclasses would write the signature of `__init__`.
    added: dict[str, Any] = {"__doc__": cls.__doc__ or cls.__name__}
    for name in _MADE_ON_USE:
        added[name] = _OnUse(own, name)
    if "__init__" not in namespace:
        added["__init__"] = _compiled_on_use(own)
    if "__repr__" not in namespace:
        added["__repr__"] = _text
    if options.get("eq", True):
        added |= _comparison(own, namespace)
    if options.get("frozen"):
        added |= {"__setattr__": _assign, "__delattr__": _delete}
        if options.get("slots"):
            added |= {"__getstate__": _state, "__setstate__": _restore}
    if options.get("slots"):
        own.cls = _with_slots(cls, names, added)
        return own.cls
    for name, value in own.values.items():
        if isinstance(value, dataclasses.Field):
            if value.default is _MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)
    for name, value in added.items():
        setattr(cls, name, value)
    return cls


def _with_slots(cls: Any, names: list[str], added: dict[str, Any]) -> Any:
    """Return the class with slots for its fields: they can only be set when a class is made."""
    without = {*names, "__dict__", "__weakref__"}
    inherited = {slot for base in cls.__mro__[1:-1] for slot in base.__dict__.get("__slots__", ())}
    namespace = {name: value for name, value in cls.__dict__.items() if name not in without}
    slots = tuple(name for name in names if name not in inherited)
    return type(cls)(
        cls.__name__, cls.__bases__, {**namespace, **added, "__slots__": slots, "__qualname__": cls.__qualname__}
    )


def _compiled_on_use(own: _Own) -> Callable[..., None]:
    """Return an `__init__` that is replaced by a compiled one if it is called often, or with wrong arguments."""
    left = _CALLS
    frozen = own.options.get("frozen", False)
    assign = object.__setattr__ if frozen else setattr

    def create(self: Any, *values: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        cls = own.cls
        if own.parameters is None:
            own.parameters = tuple(_fields(cls).values())
        if left and _set_fields(self, own.parameters, values, named, assign):
            if hasattr(cls, "__post_init__"):
                self.__post_init__()
            return
        compiled = _initializer(cls, frozen=frozen)
        cls.__init__ = compiled
        compiled(self, *values, **named)

    return create


def _set_fields(
    self: Any,
    fields: tuple[dataclasses.Field[Any], ...],
    values: tuple[Any, ...],
    named: dict[str, Any],
    assign: Callable[[Any, str, Any], None],
) -> bool:
    """Set the fields of a new object. Return False, for the error of a compiled `__init__`, if arguments do not fit."""
    position = used = 0
    count = len(values)
    for field in fields:
        name = field.name
        if field.init and position < count and not field.kw_only:
            if name in named:
                return False
            value = values[position]
            position += 1
        elif field.init and name in named:
            value = named[name]
            used += 1
        elif (value := field.default) is _MISSING:
            if field.default_factory is not _MISSING:
                value = field.default_factory()
            elif field.init:
                return False
            else:
                continue
        assign(self, name, value)
    return position == count and used == len(named)


def _initializer(cls: type, *, frozen: bool) -> Callable[..., None]:
    """Return `__init__` of a class: one statement per field, then `__post_init__` if the class has it."""
    scope: dict[str, Any] = {"_set": object.__setattr__, "_absent": object()}
    parameters: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for field in _fields(cls).values():
        name, value = field.name, field.name
        parameter = name
        if field.default is not _MISSING:
            scope[f"_default_{name}"] = field.default
            parameter, value = f"{name}=_default_{name}", name if field.init else f"_default_{name}"
        elif field.default_factory is not _MISSING:
            scope[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_absent"
            value = f"_make_{name}() if {name} is _absent else {name}" if field.init else f"_make_{name}()"
        elif not field.init:
            continue
        if field.init:
            (by_name if field.kw_only else parameters).append(parameter)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    if by_name:
        parameters += ["*", *by_name]
    exec(f"def __init__({', '.join(['self', *parameters])}):\n " + "\n ".join(body or ["pass"]), scope)
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _comparison(own: _Own, namespace: Any) -> dict[str, Any]:
    """Return `__eq__` and `__hash__`, which replace themselves at their first call, unless the class has its own."""

    def equal(self: Any, other: object) -> Any:
        compared = _values(own.cls, lambda field: field.compare)

        def equal(self: Any, other: object) -> Any:
            return compared(self) == compared(other) if type(self) is type(other) else NotImplemented

        own.cls.__eq__ = equal
        return equal(self, other)

    def hashing(self: Any) -> int:
        hashed = _values(own.cls, lambda field: field.compare if field.hash is None else field.hash)

        def hashing(self: Any) -> int:
            return hash(hashed(self))

        own.cls.__hash__ = hashing
        return hashing(self)

    methods: dict[str, Any] = {}
    if "__eq__" not in namespace:
        methods["__eq__"] = equal
    if namespace.get("__hash__") is None:  # also of a class with an `__eq__` of its own
        methods["__hash__"] = hashing if own.options.get("frozen") else None
    return methods


def _values(cls: type, is_used: Callable[[dataclasses.Field[Any]], bool | None]) -> Callable[[Any], Any]:
    """Return a function that returns the values of some attributes of an object."""
    names = [field.name for field in _fields(cls).values() if is_used(field)]
    return attrgetter(*names) if names else lambda _: ()


def _is_frozen(self: Any, name: str) -> bool:
    """Whether an attribute is frozen. A subclass that is no dataclass can have others."""
    return _FIELDS in type(self).__dict__ or name in _fields(type(self))


def _assign(self: Any, name: str, value: object) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in _fields(type(self))]


def _restore(self: Any, values: list[Any]) -> None:
    for name, value in zip(_fields(type(self)), values, strict=True):
        object.__setattr__(self, name, value)


def _text(self: Any) -> str:
    names = [name for name, field in _fields(type(self)).items() if field.repr]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
