# SPDX-License-Identifier: Apache-2.0
"""`opwest.import_model`: a directory with a manifest from a trained model, or from the output of another compiler."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from opwest.api.calls import (
    AnyPath,
    CallResult,
    Paths,
    Progress,
    Words,
    api_function,
    check_choices,
    paths_of,
    words_of,
)
from opwest.base.diagnostics import Diagnostics, Location, OpwestError, fail
from opwest.base.frozen_dataclass import dataclass
from opwest.compiler import request as models
from opwest.frontends.formats import FORMATS, kind_of
from opwest.frontends.vela import request as vela
from opwest.imports import child
from opwest.model.types.c_names import MAX_CHARACTERS, fault_of_name, reserved_model_name
from opwest.objects.flash import UNKNOWN, flash_of_text
from opwest.zephyr.processors import flash_of_board
from opwest.zephyr.workspace import find_workspace

if TYPE_CHECKING:
    from opwest.frontends.mlf.convert import Imported as ImportedArchive
    from opwest.imports.comparison import Compared

Kind = Literal["tflite", "torch", "onnx", "mlf", "vela"]
KINDS: tuple[Kind, ...] = ("tflite", "torch", "onnx", "mlf", "vela")
TensorType = tuple[str | None, Sequence[int]]
"""A dtype, if it is not in the file, and a shape."""

PARAMETERS: Mapping[str, str] = {
    "libraries": "libraries",
    "caller_memory": "io",
    "pools": "pool",
    "boards": "board",
    "given_flash": "flash",
    "operators": "operator",
    "optimisations": "no_optimisations",
}
"""The parameters of `import_model` for fields of the request that have other names."""
_OF_NPU = ("npu_config", "system_config", "memory_mode")
_OF_KIND = {
    "mlf": ("model", "module", "target", "tensor", "compat"),
    "vela": ("model", "array", "kernels", "pool", "memory_mode", "board"),
}
"""The parameters of imports that are no trained models."""


@dataclass(frozen=True)
class Archive:
    """What is known of an archive in microTVM's Model Library Format."""

    version: int | None
    """The version of the format; None without metadata.json."""
    workspace_bytes: int
    tvm_workspace_bytes: int | None
    """Bytes of memory in TVM's plan, if main is unpacked."""
    header: str | None
    """The header of microTVM's C interface in the archive."""


@dataclass(frozen=True)
class ImportResult(CallResult):
    """The directory of an import. Remarks and warnings are also among the diagnostics."""

    directory: Path
    kind: Kind
    models: tuple[str, ...]
    """With several signatures, each has a directory of its name."""
    manifests: tuple[Path, ...]
    """The manifest of each model."""
    files: tuple[str, ...]
    operators: int
    steps: int
    constant_bytes: int
    choices: tuple[Mapping[str, Any], ...]
    """For each model, the chosen variants of operators: rows as in the JSON output of `opwest import`."""
    comparisons: Mapping[str, Compared]
    """With `compare`, the result of each model."""
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]
    archive: Archive | None = None
    layers: tuple[Mapping[str, Any], ...] = ()
    """For each trained model its layers, with the steps and the costs of each implementation: as in import.json."""


@api_function
def import_model(
    faults: Diagnostics,
    file: AnyPath,
    *,
    output: AnyPath,
    kind: Kind | None = None,
    model: str | None = None,
    vectors: int = 8,
    signature: str | None = None,
    array: str | None = None,
    compare: int = 0,
    kernels: str = "auto",
    optimize: Literal["speed", "flash", "ram"] = "speed",
    max_flash: int | str | None = None,
    max_ram: int | str | None = None,
    prefer: Words = (),
    libraries: Words = (),
    tuning: Paths = (),
    io: Literal["caller", "workspace"] = "caller",
    place: Words = (),
    pool: Words = (),
    board: Words = (),
    flash: str | None = None,
    rounding: Literal["tflite", "cmsis-nn"] = "tflite",
    operator: Mapping[str, AnyPath] | Sequence[tuple[str, AnyPath]] = (),
    no_optimisations: bool = False,
    float_io: bool = False,
    dequantise_weights: bool = False,
    exact: bool = False,
    npu: str | None = None,
    npu_config: AnyPath | None = None,
    system_config: str | None = None,
    memory_mode: str | None = None,
    module: str | None = None,
    target: str | None = None,
    tensor: Mapping[str, TensorType] | None = None,
    compat: Literal["tvmgen"] | None = None,
    progress: Progress | None = None,
) -> ImportResult:
    """Import a trained model (TFLite, ONNX), an archive of microTVM, or an output of Vela: write a manifest and C.

    The kind of the file is that of its content, unless `kind` is given; a model can be an array in a C source. With
    `npu`, Vela compiles the model first. `compare` runs that many inputs through the reference; a difference is an
    error, and the directory is removed.
    """
    given = dict(locals())
    path, folder = Path(file), Path(output)
    check_choices(faults, ("kind", kind, (None, *KINDS)))
    found = kind or kind_of(path)
    if found is None and path.exists():
        from opwest.frontends.read import refuse

        refuse(path, array)
    found = found or FORMATS[0].name  # the reader reports a missing file
    form = next(one for one in KINDS if one == found)
    reason = None if model is None else fault_of_name(model)
    if model is not None and reason is not None:
        shown = model if len(model) <= MAX_CHARACTERS else f"{model[:30]}..."
        raise fail(f"model name {shown!r} {reason}")
    reserved = None if model is None else reserved_model_name(model)
    if reserved is not None:
        raise fail(reserved[0], expected=reserved[1])
    _check_effects(given, form, faults)
    report = progress or (lambda _: None)
    if form == "mlf":
        return _import_archive(faults, path, folder, model, module, target, tensor or {}, compat)
    if form == "vela" or npu is not None:
        if kernels not in vela.KERNELS:
            faults.error(f"--kernels {kernels} cannot be used with --npu", expected=" or ".join(vela.KERNELS))
            faults.raise_if_errors()
        config = None if npu_config is None else str(npu_config)
        if config is not None and Path(config).exists():  # else a name in Vela's package, as Arm/vela.ini
            config = str(Path(config).absolute())
        words = (words_of(pool), words_of(board))
        compiled = vela.Options(model, kernels, *words, npu, config, system_config, memory_mode, array)
        done = child.import_in_child(path, folder, compiled, report)
        return _result(done, form, path, {}, faults)
    settings = _with_flash(_settings(given, form, faults), faults)
    existed = folder.exists()
    done, arrays = child.import_and_compare(path, folder, settings, report)
    try:
        compared = _compared(done, arrays, path, settings, report)
    except BaseException:
        _remove(folder, existed)
        raise
    return _result(done, form, path, compared, faults)


def _remove(folder: Path, existed: bool) -> None:
    """Remove what an import has written: the directory, or the content of one that was there and empty."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    if existed:
        folder.mkdir(exist_ok=True)


def _check_effects(given: Mapping[str, Any], kind: Kind, faults: Diagnostics) -> None:
    """Report parameters without effect on a kind of models. Raises OpwestError."""
    if kind in _OF_KIND:
        permitted = set(_OF_KIND[kind])
    else:
        options = models.options_of(kind)
        with_npu = given["npu"] is not None
        permitted = {PARAMETERS.get(name, name) for name, option in options.items() if option.with_npu or not with_npu}
        permitted |= {"npu"} if kind == "tflite" else set()
        permitted |= set(_OF_NPU) if with_npu and kind == "tflite" else set()
    common = ("faults", "file", "output", "kind", "progress")
    for name, value in given.items():
        if name in (*common, *permitted) or value == _DEFAULTS.get(name) or value in (None, False, (), []):
            continue
        flag = _flag(name)
        if name in _OF_NPU and kind == "tflite":
            faults.error(f"{flag} without --npu", expected="--npu NAME, such as ethos-u55-128")
        elif given["npu"] is not None:
            faults.error(f"{flag} cannot be used with --npu")
        else:
            faults.error(f"{flag} has no effect on a model of the kind {kind!r}")
    faults.raise_if_errors()


_DEFAULTS = {"vectors": 8, "compare": 0, "kernels": "auto", "optimize": "speed", "io": "caller", "rounding": "tflite"}


def _flag(parameter: str) -> str:
    """Return the option of the command line for a parameter."""
    for name, option in models.options_of(None).items():
        if PARAMETERS.get(name, name) == parameter:
            return models.flag_of(name, option)
    return f"--{parameter.replace('_', '-')}"


def _size(name: str, given: Mapping[str, Any], faults: Diagnostics) -> int | None:
    """Return a limit in bytes, which may be text such as 32KiB."""
    value = given[name]
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    try:
        return models.size_of(value) if isinstance(value, str) else models.size_of("")
    except ValueError:
        faults.error(f"argument {name!r} is {value!r}", expected=models.SIZE)
        return None


def _settings(given: Mapping[str, Any], kind: Kind, faults: Diagnostics) -> models.Options:
    """Return the request for a trained model."""
    operators = given["operator"]
    values: dict[str, Any] = {
        "caller_memory": given["io"] == "caller",
        "optimisations": not given["no_optimisations"],
        "tuning": tuple(str(path.absolute()) for path in paths_of(given["tuning"])),
        "operators": tuple(
            (name, str(path)) for name, path in (operators.items() if isinstance(operators, Mapping) else operators)
        ),
        "max_flash": models.UNLIMITED if given["max_flash"] == "none" else _size("max_flash", given, faults),
        "max_ram": _size("max_ram", given, faults),
        **{name: words_of(given[PARAMETERS.get(name, name)]) for name in ("prefer", "libraries", "place")},
        **{name: words_of(given[PARAMETERS[name]]) for name in ("pools", "boards")},
    }
    options = models.options_of(kind)
    for name in options:
        values.setdefault(name, given[PARAMETERS.get(name, name)])
    check_choices(
        faults,
        ("kernels", given["kernels"], models.KERNELS),
        ("optimize", given["optimize"], models.OBJECTIVES),
        ("rounding", given["rounding"], models.ROUNDINGS),
        ("io", given["io"], ("caller", "workspace")),
        *(("libraries", library, models.LIBRARIES) for library in values["libraries"]),
    )
    for name, least, most in (("vectors", 0, 1000), ("compare", 0, 1 << 31)):
        if not least <= given[name] <= most:
            faults.error(f"invalid {name} {given[name]}", expected=f"a number from {least} to {most}")
    if given["flash"] is not None:
        try:
            flash_of_text(given["flash"])
        except ValueError as error:
            faults.error(f"invalid --flash {given['flash']!r}: {error}")
    faults.raise_if_errors()
    return models.Options(
        **{name: value for name, value in values.items() if name in options},
        format=kind,
    )


def _with_flash(settings: models.Options, faults: Diagnostics) -> models.Options:
    """Return a request with the flash of its boards, unless it states a flash, or none of them is known."""
    if settings.given_flash is not None or not settings.boards:
        return settings
    workspace = find_workspace(None)
    known = {board: flash_of_board(board, workspace) for board in settings.boards}
    texts = sorted({flash.text for flash in known.values() if flash is not None})
    if len(texts) > 1:
        faults.error(
            f"--board {', '.join(settings.boards)}: the boards have different flash: {'; '.join(texts)}",
            expected=f"--flash {texts[0]}, or another one for all boards",
        )
        faults.raise_if_errors()
    for board, flash in known.items():
        if flash is None:
            where = " without a Zephyr tree" if workspace is None else ""
            assumed = texts[0] if texts else UNKNOWN.text
            faults.note(f"--board {board}: its flash is unknown{where}; assumed: --flash {assumed}")
    return dataclasses.replace(settings, given_flash=texts[0]) if texts else settings


def _compared(
    done: models.Imported, arrays: Mapping[str, Any] | None, path: Path, settings: models.Options, progress: Progress
) -> dict[str, Compared]:
    """Return the comparison of each model with the reference. Raises OpwestError for a difference.

    If the rounding of `exact` has no difference, the error names it.
    """
    try:
        return _differences(done, arrays, path, settings)
    except OpwestError as error:
        if settings.exact or "exact" not in models.options_of(settings.format) or not _agrees(path, settings, progress):
            raise
        [diagnostic] = error.diagnostics
        hint = f"{diagnostic.hint}; with --exact, which rounds as onnxruntime does, all results agree"
        raise OpwestError([dataclasses.replace(diagnostic, hint=hint)]) from None


def _agrees(path: Path, settings: models.Options, progress: Progress) -> bool:
    """Whether an import with the runtime's own rounding has the results of the runtime."""
    progress("comparing with --exact")
    exact = dataclasses.replace(settings, exact=True, vectors=0, kernels=models.PORTABLE, prefer=(), libraries=())
    with tempfile.TemporaryDirectory(prefix="opwest-") as work:
        try:
            _differences(*child.import_and_compare(path, Path(work) / "model", exact, lambda _: None), path, exact)
        except OpwestError:
            return False
    return True


def _differences(
    done: models.Imported, arrays: Mapping[str, Any] | None, path: Path, settings: models.Options
) -> dict[str, Compared]:
    if arrays is None:
        return {}
    from opwest.imports.comparison import DEQUANTISED, compare

    tolerance = DEQUANTISED if settings.dequantise_weights else None
    compared = {}
    for model in done.models:
        start = f"{model}/" if len(done.models) > 1 else ""
        own = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        compared[model] = compare(done.folder / start, own, Location(str(path)), tolerance)
    return compared


def _result(
    done: models.Imported, kind: Kind, path: Path, compared: Mapping[str, Compared], faults: Diagnostics
) -> ImportResult:
    _report(done, path, faults)
    folders = [done.folder / model for model in done.models] if len(done.models) > 1 else [done.folder]
    return ImportResult(
        done.folder,
        kind,
        tuple(done.models),
        tuple(folder / "manifest.yaml" for folder in folders),
        tuple(done.files),
        done.operators,
        done.steps,
        done.constant_bytes,
        tuple(done.choices),
        compared,
        tuple(done.remarks),
        tuple(done.warnings),
        layers=tuple(done.layers),
    )


def _report(done: models.Imported | ImportedArchive, path: Path, faults: Diagnostics) -> None:
    """Report the remarks and the warnings of an import."""
    for remark in done.remarks:
        faults.note(remark, Location(str(path)))
    for warning in done.warnings:
        faults.warning(warning, Location(str(path)))


def _import_archive(
    faults: Diagnostics,
    path: Path,
    folder: Path,
    model: str | None,
    module: str | None,
    target: str | None,
    tensors: Mapping[str, TensorType],
    compat: Literal["tvmgen"] | None,
) -> ImportResult:
    """Import a model in microTVM's Model Library Format."""
    from opwest.frontends import mlf
    from opwest.frontends.mlf.draft import TensorOption

    check_choices(faults, ("compat", compat, (None, "tvmgen")))
    types = {name: TensorOption(dtype, tuple(shape)) for name, (dtype, shape) in tensors.items()}
    done = mlf.import_mlf(path, folder, mlf.Options(model, module, target, types, compat))
    _report(done, path, faults)
    return ImportResult(
        done.folder,
        "mlf",
        (done.model,),
        (done.folder / "manifest.yaml",),
        done.files,
        done.operators,
        done.steps,
        done.constant_bytes,
        (),
        {},
        done.remarks,
        done.warnings,
        Archive(done.version, done.workspace_bytes, done.tvm_workspace_bytes, done.header),
    )
