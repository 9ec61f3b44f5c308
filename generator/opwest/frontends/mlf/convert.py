# SPDX-License-Identifier: Apache-2.0
"""The stages of the import: read, determine main's arguments, correct the code, write.

C operators depend on an Arm instruction set, and on the libraries that they call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from opwest.base.diagnostics import nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.compiler.faults import fault
from opwest.compiler.folder import npz, refuse_occupied, write_folder
from opwest.frontends.mlf.aot import draft
from opwest.frontends.mlf.c_text import foreign_calls
from opwest.frontends.mlf.code import Code, Sources, corrected, read_code, with_headers
from opwest.frontends.mlf.draft import Draft, TensorOption, manifest_text
from opwest.frontends.mlf.graph import Graph
from opwest.frontends.mlf.library import Library, read_library
from opwest.frontends.mlf.metadata import Metadata, read_metadata, read_params
from opwest.frontends.mlf.ports import Model, Relay, kept_name, read_relay
from opwest.frontends.mlf.wrapper import Header, interface_lines, read_header
from opwest.model.inputs.targets import fitting
from opwest.model.types.c_names import reserved_model_name
from opwest.objects.library_symbols import provider_of
from opwest.objects.targets import named_targets, processors
from opwest.zephyr import cmsis_nn

_MAX_TEXT = 1 << 22


@dataclass(frozen=True)
class Options:
    """The request for an import."""

    model: str | None = None
    """The model's name; None: the module's."""
    module: str | None = None
    """The selected module of an archive with several."""
    target: str | None = None
    """The named target of compiled objects; None: the target in the objects."""
    tensors: Mapping[str, TensorOption] = field(default_factory=dict)
    compat: Literal["tvmgen"] | None = None
    """microTVM's C interface for applications that use it."""


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    folder: Path
    model: str
    version: int | None
    """The version of the format; None without metadata.json."""
    files: tuple[str, ...]
    operators: int
    steps: int
    constant_bytes: int
    workspace_bytes: int
    tvm_workspace_bytes: int | None
    """Bytes of memory in TVM's plan, if main is unpacked."""
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]
    header: str | None
    """The header of microTVM's C interface in the format; None without one."""


def import_mlf(path: Path, folder: Path, options: Options | None = None) -> Imported:
    """Import a tar or a directory in Model Library Format. Raises OpwestError before anything is written."""
    options = options or Options()
    if options.target is not None and options.target not in named_targets():
        hint = nearest(options.target, named_targets())
        raise fault(f"unknown target {options.target!r}", None, "a name listed by 'opwest targets'", hint)
    refuse_occupied(folder)
    library = read_library(path)
    metadata = read_metadata(library, options.module)
    code = read_code(library, metadata.module)
    if options.target is not None and not code.objects:
        raise fault("--target has no effect: the archive contains no objects", str(path))
    names = library.under("src/", f"{metadata.module}.relay") or library.under("src/", ".relay", "relay.txt")
    relay = read_relay(library.files[names[0]]) if names else Relay({}, None)
    header = _header(library, metadata)
    origin = f"Imported from {path.name} by `opwest import mlf`."
    if code.main:
        headers = with_headers(library, code.texts).headers
        result = draft(Model(metadata, relay, header, code, options.tensors, str(path), headers))
    else:
        if options.tensors:
            raise fault("--tensor has no effect: the graph records the tensors", str(path))
        result = _graph(library, code, metadata, origin)
    sources = with_headers(library, code.texts)
    code.texts = dict(sources.texts)
    result.files |= {f"operators/{name}": text.encode() for name, text in sources.headers.items()}
    _add_code(result, code, metadata, origin, options.target, str(path), sources)
    name = options.model or _model_name(metadata, result)
    compat = interface_lines(result, header, metadata, str(path)) if options.compat else []
    files = {**result.files, "manifest.yaml": manifest_text(name, result, origin, compat).encode()}
    write_folder(folder, files)
    if result.memory is not None:
        tvm_workspace, workspace = result.memory
    else:
        scratch = [a.shape[0] for o in result.operators for a in o.args if a.direction == "scratch"]
        tvm_workspace = None
        workspace = max(scratch, default=0) + max((o.workspace for o in result.operators), default=0)
    return Imported(
        folder,
        name,
        metadata.version,
        tuple(sorted(files)),
        len(result.operators),
        len(result.steps),
        sum(len(c) for n, c in files.items() if n.startswith("constants")),
        workspace,
        tvm_workspace,
        tuple(result.remarks),
        tuple(result.warnings),
        f"tvmgen_{metadata.module}.h" if header.inputs or header.outputs else None,
    )


def _graph(library: Library, code: Code, metadata: Metadata, origin: str) -> Draft:
    """Return a model of the graph executor."""
    name = f"executor-config/graph/{metadata.module}.graph"
    names = [name] if name in library.files else library.under("executor-config/graph/", ".graph", ".json")
    if not names:
        words = f"; exported for the executor {', '.join(metadata.executors)}" if metadata.executors else ""
        text = f"neither the function 'tvmgen_{metadata.module}___tvm_main__' nor a graph found{words[:200]}"
        expected = "main of TVM's ahead-of-time executor, or executor-config/graph"
        raise fault(text, str(library.path), expected)
    file = f"parameters/{metadata.module}.params"
    content = library.files.get(file)
    params = read_params(content, library.place(file)) if content is not None else {}
    graph = Graph(library.files[names[0]], library.place(names[0]), code, metadata, params)
    result = graph.draft(origin)
    if graph.constants:
        result.files["constants.npz"] = npz(graph.constants)
    return result


def _model_name(metadata: Metadata, result: Draft) -> str:
    remarks: list[str] = []
    name = kept_name(metadata.module, "model", set(), remarks)
    reserved = reserved_model_name(name)
    if reserved is not None:
        name = f"model_{name}"
        remarks.append(f"the model is named '{name}': {reserved[0]}")
    result.remarks += [f"{remark}; --model selects another name" for remark in remarks]
    return name


def _header(library: Library, metadata: Metadata) -> Header:
    content = library.files.get(f"codegen/host/include/tvmgen_{metadata.module}.h", b"")
    if len(content) > _MAX_TEXT:
        raise fault(f"the header has {counted(len(content), 'byte')}", str(library.path), f"at most {_MAX_TEXT}")
    return read_header(content.decode("utf-8", "replace"))


def _add_code(
    result: Draft, code: Code, metadata: Metadata, origin: str, target: str | None, place: str, sources: Sources
) -> None:
    """Add sources and objects with their dependencies: libraries, an instruction set."""
    needs = needs_of(code.texts.values(), code.defined)
    heads = [text[:4000].split("\n", 3)[:3] for text in code.texts.values()]
    comments = [line for head in heads for line in head if line.startswith("// tvm target:")]
    targets = [*comments, *metadata.targets]
    guards, remarks = _guards(needs, targets)
    result.remarks += remarks
    if needs.cmsis_nn and extension_of(targets) is None:
        result.warnings.append(
            "the operators call CMSIS-NN, but no target specifies the instruction set for its buffers (none, DSP or "
            "MVE) with -mcpu: with another instruction set, the operators fail or compute wrong results"
        )
    head = f"/* {origin} You can edit it. */\n"
    for name, text in code.texts.items():
        own = needs_of([text], code.defined)
        bound = own.cmsis_nn or own.cmsis_nn_headers or own.intrinsics
        source, remarks = corrected(name, text, code.glue, head, guards if bound else [])
        file = f"operators/{name}"
        result.files[file] = source.encode()
        result.objects.append((None, file))
        result.remarks += remarks
    for name, (content, member) in code.objects.items():
        matching = [target] if target is not None else fitting([member], name)
        if not matching:
            raise fault(f"no named target matches '{name}' ({member.abi.machine})", place, "--target NAME")
        chosen = matching[0]
        file = f"objects/{chosen}/{name}"
        result.files[file] = content
        result.objects.append((chosen, file))
    _add_libraries(result, code, needs, sources)


def _add_libraries(result: Draft, code: Code, needs: Needs, sources: Sources) -> None:
    """Add external symbols: those of CMSIS-NN by its Kconfig symbols, others by name."""
    for symbol, option in needs.cmsis_nn.items():
        result.externals[symbol] = (cmsis_nn.PROVIDER, (option,))
    if needs.cmsis_nn or needs.cmsis_nn_headers:
        result.kconfig |= cmsis_nn.KCONFIG
    for header in (name for name in needs.headers if name not in sources.headers):
        result.warnings.append(f"the operators include <{header}>, which is not in a known Zephyr module")
    for symbol in _unknown_calls(code, needs, sources.defined):
        result.externals[symbol] = ("a library that you add to the application", ())
        result.warnings.append(f"the operators call {symbol}, which is not in a known Zephyr module")


def _unknown_calls(code: Code, needs: Needs, provided: set[str]) -> list[str]:
    """Return called functions that are neither defined nor known; headers define `provided`."""
    known = provided | code.defined | set(needs.cmsis_nn) | set(needs.intrinsics)
    called = dict.fromkeys(call for text in code.texts.values() for call in foreign_calls(text))
    return [
        call
        for call in called
        if call not in known
        and not call.startswith(("TVMBackend", "TVMAPI", "TVMFunc", "TVMFFI", "__"))
        and not (needs.cmsis_nn_headers and call.startswith(("arm_", "read_and_pad")))
        and provider_of(call, "arm", "picolibc") is None
    ]


Extension = Literal["none", "DSP", "MVE"]

_CPU = re.compile(r"-mcpu=([\w.+-]+)")
_ATTRIBUTES = re.compile(r"-mattr=(\S+)")
_INTRINSIC = re.compile(
    r"\b(__?(?:arm_)?(?:smlad|smlald|smuad|smlabb|smlatt|sxtb16|sxtab16|uxtb16|ssub16|sadd16|pkhbt|pkhtb|qadd16|usat16)"
    r"|__(?:SMLAD|SMLALD|SMUAD|SXTB16|SXTAB16|UXTB16|SSUB16|SADD16|PKHBT|PKHTB|QADD16|SSAT16))\s*\("
)
_ARM_CALL = re.compile(r"\b(arm_\w+)\s*\(")
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_KNOWN_HEADERS = frozenset(
    """stdint.h stdio.h stdlib.h string.h math.h stdbool.h stddef.h inttypes.h assert.h limits.h float.h errno.h
    arm_acle.h""".split()
)
_TVM_HEADERS = re.compile(r"(tvm|dlpack|dmlc)/|tvmgen_\w+\.h\Z")
_CMSIS_NN_HEADERS = re.compile(r"arm_nn\w*\.h\Z")


@dataclass(frozen=True)
class Needs:
    """The dependencies of the sources besides the C library."""

    cmsis_nn: Mapping[str, str]
    """Functions of CMSIS-NN with the Kconfig symbol that enables each."""
    cmsis_nn_headers: bool
    intrinsics: tuple[str, ...]
    """The DSP intrinsics in use."""
    headers: tuple[str, ...]
    """Headers that are not part of C, TVM or CMSIS-NN."""


def needs_of(texts: Iterable[str], defined: Iterable[str]) -> Needs:
    """Return the dependencies of C sources; `defined` are the functions that they define."""
    own = set(defined)
    calls: dict[str, str] = {}
    headers: dict[str, None] = {}
    intrinsics: dict[str, None] = {}
    cmsis_headers = False
    for text in texts:
        for name in dict.fromkeys(_ARM_CALL.findall(text)):
            option = cmsis_nn.cmsis_nn_option(name)
            if option is not None and name not in own and not _INTRINSIC.match(f"__{name}("):
                calls[name] = option
        intrinsics |= dict.fromkeys(name for name in _INTRINSIC.findall(text) if name not in own)
        for header in _INCLUDE.findall(text):
            if _CMSIS_NN_HEADERS.search(header):
                cmsis_headers = True
            elif header not in _KNOWN_HEADERS and not _TVM_HEADERS.match(header):
                headers[header] = None
    return Needs(calls, cmsis_headers, tuple(intrinsics), tuple(headers))


def extension_of(targets: Iterable[str]) -> tuple[Extension, str] | None:
    """Return the instruction set of TVM's target, and the processor's name; None if no target specifies one.

    The rules are those of TVM's CMSIS-NN code generator: `-mcpu`, and `+nomve`, `+nodsp` there or in `-mattr`.
    """
    # The target of the CMSIS-NN functions takes precedence over the host's.
    for text in sorted(targets, key=lambda t: "cmsis-nn" not in t):
        named = _CPU.search(text)
        if named is None:
            continue
        attributes = _ATTRIBUTES.search(text)
        flags = named[1] + (attributes[1] if attributes else "")
        cpu = named[1].split("+")[0].lower()
        known = processors().get(cpu)
        if known is not None and known.mve and "+nomve" not in flags:
            return "MVE", cpu
        if known is not None and known.dsp and "+nodsp" not in flags:
            return "DSP", cpu
        return "none", cpu
    return None


_GUARDS: Mapping[Extension, tuple[str, str]] = {
    "none": (
        "!defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE)",
        "an Arm Cortex-M without DSP extension and without MVE",
    ),
    "DSP": (
        "defined(__ARM_FEATURE_DSP) && !defined(__ARM_FEATURE_MVE)",
        "an Arm Cortex-M with the DSP extension and without MVE",
    ),
    "MVE": ("defined(__ARM_FEATURE_MVE)", "an Arm Cortex-M with MVE (Helium)"),
}
"""For each instruction set: its condition in C, and its description."""


def _guards(needs: Needs, targets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return preprocessor lines that reject processors other than TVM's target, and remarks."""
    known = extension_of(targets)
    if needs.cmsis_nn and known is not None:
        extension, cpu = known
        condition, required = _GUARDS[extension]
        # On other machines CMSIS-NN is plain C, whose buffers are not larger than those for DSP; for MVE they can be.
        only = "" if extension == "MVE" else "defined(__arm__) && "
        reason = "the sizes of CMSIS-NN's buffers depend on the instruction set"
        text = f"generated by TVM for {cpu}: requires {required}, because {reason}"
        words = "without DSP and MVE" if extension == "none" else extension
        remark = f"the calls of CMSIS-NN are only for {cpu} ({words})"
        return [f'#if {only}!({condition})\n#error "{text}"\n#endif\n'], [remark]
    if needs.intrinsics:
        name = next((i for i in needs.intrinsics if i[2:3].isupper()), needs.intrinsics[0])
        text = f"{name} requires an Arm Cortex-M with the DSP extension (Cortex-M4, M7, M33, M55)"
        # Older CMSIS-NN headers included the CMSIS header that declares these names.
        core = "#else\n#include <cmsis_compiler.h>\n" if name[2:3].isupper() else ""
        remark = f"the operators use DSP intrinsics ({name}) and require a Cortex-M with the DSP extension"
        return [f'#if !defined(__ARM_FEATURE_DSP)\n#error "{text}"\n{core}#endif\n'], [remark]
    return [], []
