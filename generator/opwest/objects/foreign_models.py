# SPDX-License-Identifier: Apache-2.0
"""Files that `opwest import` does not read: what each is, and the command that makes a file that it reads.

Sources of the formats: HDF5 (Format Specification, superblock), Keras 3 (keras.saving), TensorFlow (saved_model.proto,
graph.proto), PyTorch (torch.save, torch.jit.save), ExecuTorch (program.fbs), Core ML (Model.proto), safetensors, GGUF,
Git LFS (specification), LightGBM and XGBoost (their text and JSON models), OpenVINO (IR).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from opwest.base import commands
from opwest.objects.model_kinds import MANIFEST, Identified, Seen, kind_of_content

_KERAS = (
    'python -c "import tensorflow as tf; c = tf.lite.TFLiteConverter.from_keras_model(tf.keras.models.load_model('
    "'{path}')); open('model.tflite', 'wb').write(c.convert())\"; then opwest import model.tflite"
)
_SAVED_MODEL = "tflite_convert --saved_model_dir={path} --output_file=model.tflite; then opwest import model.tflite"
_GRAPH_DEF = (
    "python -m tf2onnx.convert --graphdef {path} --inputs NAME:0 --outputs NAME:0 --output model.onnx; "
    "then opwest import model.onnx"
)
_EXPORT = (
    "export the model from Python, torch.export.save(torch.export.export(model.eval(), (example,)), 'model.pt2'); "
    "then opwest import model.pt2"
)
_FROM_MODULE = f"make the module in Python and load its weights; then {_EXPORT}"
_ORIGIN = "export the model that it was made from, as TFLite, ONNX or .pt2"
_FETCH = "fetch the file again: an answer of the server was saved in its place"
_TREES = "compile it to C with TL2cgen; opwest init drafts a manifest (docs/compilers/tl2cgen.md)"
_LEARNT = "convert it to C with emlearn or m2cgen; opwest init drafts a manifest (docs/compilers/scikit-learn.md)"
_OBJECTS = "opwest init {path} HEADER.h drafts a manifest for its operators"
_SOURCE = "opwest init {path} drafts a manifest for its operators"
_SUFFIXES = tuple(".tflite .lite .onnx .pt2 .h5 .keras .pb .pt .pth .tar .cc .c .h .cpp".split())
_LEGACY_TORCH = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
"""The magic number of torch.save before 1.6, as a pickled integer."""
_START = 1 << 16
"""The most bytes that are unpacked."""
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_MLIR = re.compile(r"(?://[^\n]*\s+|#\w+ = [^\n]*\s+)*+(?:builtin\.)?(?:module\b[^\n]*\{|func\.func\b)")


class Foreign(NamedTuple):
    """A kind of file that is not imported. `{path}` in the hint is the path."""

    what: str
    hint: str | None
    is_kind: Callable[[Seen], bool]


def _starts(*magics: bytes) -> Callable[[Seen], bool]:
    return lambda seen: seen.start.startswith(magics)


def _has(*names: str) -> Callable[[Seen], bool]:
    """Return the rule for a ZIP archive with some files."""
    return lambda seen: {*names} <= {*seen.inner, *seen.members}


def _text(pattern: str) -> Callable[[Seen], bool]:
    """Return the rule for the start of a text."""
    compiled = re.compile(pattern, re.IGNORECASE)
    return lambda seen: seen.text is not None and compiled.match(seen.text) is not None


def _words(start: str, *words: str) -> Callable[[Seen], bool]:
    return lambda seen: (
        seen.text is not None and seen.text.startswith(start) and all(word in seen.text for word in words)
    )


def _is_graph_def(seen: Seen) -> bool:
    """Whether it is a GraphDef: nodes (1), which start with their names."""
    fields = seen.fields
    is_message = bool(fields) and {*fields} <= {1, 2, 3, 4} and fields.get(1) == 2 and seen.start[:1] == b"\x0a"
    return is_message and re.match(rb"\x0a[\x80-\xff]*[\0-\x7f]\x0a.{1,99}?\x12", seen.start, re.DOTALL) is not None


def _is_saved_model(seen: Seen) -> bool:
    """Whether it is a SavedModel: its version (1) and graphs (2) with their MetaInfoDef (1)."""
    is_message = {**seen.fields} == {1: 0, 2: 2}
    return is_message and re.match(rb"\x08.\x12[\x80-\xff]*[\0-\x7f]\x0a", seen.start, re.DOTALL) is not None


def _is_core_ml(seen: Seen) -> bool:
    """Whether it is a Core ML model: a version (1), a description (2) and a type of model from 200 on."""
    fields = seen.fields
    return fields.get(1) == 0 and fields.get(2) == 2 and any(200 <= number < 4000 for number in fields)


def _is_safetensors(seen: Seen) -> bool:
    length = int.from_bytes(seen.start[:8], "little")
    return seen.start[8:10] == b'{"' and length <= seen.size - 8


def _is_pickle(seen: Seen) -> bool:
    return _PICKLE.match(seen.start) is not None


FOREIGN = (
    Foreign("empty", "fetch or convert the model again", lambda seen: not seen.size),
    Foreign(
        "a Git LFS pointer, not the model itself",
        "git lfs pull, in the repository of the file",
        _text("version https://git-lfs"),
    ),
    Foreign(
        "an HTML page, not a model",
        "fetch the file itself, such as by the page's link 'raw' or 'download'",
        _text(r"(?:<!--.*?-->\s*)*<(?:!doctype html|html|head)\b"),
    ),
    Foreign("an OpenVINO model (IR)", "openvino2onnx {path}; then opwest import the .onnx file", _words("<", "<net ")),
    Foreign("XML, not a model", _FETCH, _text(r"<\?xml|<error>")),
    Foreign("an XGBoost model (JSON)", _TREES, _words("{", '"learner"')),
    Foreign("a LightGBM model (text)", _TREES, _text(r"tree\r?\n(?:.|\n)*?\btree_sizes=")),
    Foreign(
        "a TensorFlow.js model",
        "export the model that it was made from with tf.lite.TFLiteConverter",
        _words("{", '"modelTopology"'),
    ),
    Foreign("JSON, not a model", _FETCH, _text(r"[{\[]\s*[\"}\]]")),
    Foreign(MANIFEST, "opwest generate {path} -o app", _text(r"(?:#[^\n]*\n|\s)*+version: 1\s*\n")),
    Foreign(
        "Keras weights without their model (HDF5)",
        "build the model in Python, load the weights, and convert it with tf.lite.TFLiteConverter.from_keras_model",
        lambda seen: seen.start.startswith(b"\x89HDF\r\n\x1a\n") and seen.name.endswith(".weights.h5"),
    ),
    Foreign("a Keras model (HDF5)", _KERAS, _starts(b"\x89HDF\r\n\x1a\n")),
    Foreign("a Keras model", _KERAS, _has("config.json", "model.weights.h5")),
    Foreign("a TensorFlow SavedModel", _SAVED_MODEL, _is_saved_model),
    Foreign("a frozen TensorFlow graph (GraphDef)", _GRAPH_DEF, _is_graph_def),
    Foreign("a TorchScript model of the mobile interpreter", _EXPORT, _has("bytecode.pkl")),
    Foreign("a TorchScript model", _EXPORT, _has("data.pkl", "constants.pkl")),
    Foreign("a pickle of torch.save, weights or a whole module", _FROM_MODULE, _has("data.pkl")),
    Foreign("a pickle of torch.save, weights or a whole module", _FROM_MODULE, lambda s: _LEGACY_TORCH in s.start[:32]),
    Foreign("an ExecuTorch program", _EXPORT, lambda seen: re.match(rb"ET\d\d", seen.start[4:8]) is not None),
    Foreign("a Core ML model", _ORIGIN, _is_core_ml),
    Foreign("a Core ML package", _ORIGIN, lambda s: "Manifest.json" in s.inner and any("CoreML" in n for n in s.inner)),
    Foreign("safetensors: weights without operators", _FROM_MODULE, _is_safetensors),
    Foreign(
        "a GGUF file: weights of a language model", "import a smaller model as TFLite, ONNX or .pt2", _starts(b"GGUF")
    ),
    Foreign("a pickle, such as of scikit-learn or joblib", _LEARNT, _is_pickle),
    Foreign(
        "arrays of NumPy, without operators",
        "import the model that they belong to; inputs are for opwest run --input",
        lambda seen: bool(seen.members) and all(name.endswith(".npy") for name in seen.members),
    ),
    Foreign("an array of NumPy", "import the model; inputs are for opwest run --input", _starts(b"\x93NUMPY")),
    Foreign("a bundle of opwest", "opwest bundle install {path} --board BOARD", _starts(b"OPWB")),
    Foreign("an object or a program (ELF)", _OBJECTS, _starts(b"\x7fELF")),
    Foreign("an archive of objects", _OBJECTS, _starts(b"!<arch>\n")),
    Foreign("LLVM bitcode", _SOURCE, _starts(b"BC\xc0\xde")),
    Foreign("LLVM IR", _SOURCE, _text(r"; ModuleID|source_filename|target (?:triple|datalayout)")),
    Foreign(
        "MLIR",
        "lower it to EmitC or LLVM IR; opwest init drafts a manifest (docs/compilers/emitc.md)",
        lambda seen: seen.start.startswith(b"ML\xefR") or _MLIR.match(seen.text or "") is not None,
    ),
)
"""The first row whose rule holds describes a file."""


def foreign_file(seen: Seen, path: Path) -> Identified | None:
    """Return what a file is that is not imported; None for sources in C and unknown content."""
    found = next((row for row in FOREIGN if row.is_kind(seen)), None)
    if found is not None:
        return _identified(found.what, found.hint, path)
    return _compressed(seen, path)


def foreign_directory(path: Path) -> Identified | None:
    """Return what a directory is that is not in Model Library Format; None for others."""
    names = {entry.name for entry in path.iterdir()}
    if {"saved_model.pb", "saved_model.pbtxt"} & names:
        return _identified("a TensorFlow SavedModel", _SAVED_MODEL, path)
    if "Manifest.json" in names and "Data" in names:
        return _identified("a Core ML package", _ORIGIN, path)
    if "manifest.yaml" in names and "metadata.json" not in names:
        return _identified("that of a manifest", "opwest generate {path}/manifest.yaml -o app", path)
    models = sorted(name for name in names if Path(name).suffix in _SUFFIXES[:4])
    if models and not {"metadata.json", "codegen", "src"} & names:
        return _identified("no model", f"import a file in it: opwest import {{path}}/{models[0]}", path)
    return None


def _identified(what: str, hint: str | None, path: Path) -> Identified:
    if hint is not None:
        hint = hint.replace("'{path}'", f"'{path}'").replace("{path}", commands.quoted(str(path)))
    return Identified(None, what, hint)


def _compressed(seen: Seen, path: Path) -> Identified | None:
    """Return what a compressed file or an archive of a model is."""
    models = [name for name in seen.members if name.lower().endswith(_SUFFIXES)]
    if seen.start.startswith(b"PK\x03\x04"):
        if not seen.members:
            return _identified("a damaged zip file", "fetch or convert the model again", path)
        what = "a zip file" if len(models) != 1 else f"a zip file with '{models[0]}'"
        member = models[0] if len(models) == 1 else "FILE"
        return _identified(what, f"unzip {{path}}; then opwest import {commands.quoted(member)}", path)
    if seen.start[:1] == b"x" and _PICKLE.match(_unpacked(seen, zlib.MAX_WBITS)):  # joblib.dump(compress=...)
        return _identified("a pickle, such as of scikit-learn or joblib", _LEARNT, path)
    if seen.start.startswith(b"\x1f\x8b"):
        stem = path.name.removesuffix(path.suffix)
        name = {".gz": stem, ".tgz": f"{stem}.tar"}.get(path.suffix, f"{stem}_unpacked")
        content = _unpacked(seen, zlib.MAX_WBITS | 16)
        kind = "mlf" if content[257:262] == b"ustar" else kind_of_content(content)
        what = "a gzip file" if kind is None else f"a gzip file with a model ({kind})"
        shown = commands.quoted(name)
        return _identified(what, f"gzip -dc {{path}} > {shown}; then opwest import {shown}", path)
    return None


def _unpacked(seen: Seen, bits: int) -> bytes:
    """Return the start of compressed content; empty for damaged content. `bits`: as wbits of zlib."""
    try:
        return zlib.decompressobj(bits).decompress(seen.start, _START)
    except zlib.error:
        return b""
