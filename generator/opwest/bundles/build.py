# SPDX-License-Identifier: Apache-2.0
"""`opwest bundle MANIFEST`: generate a model, link it for its slot, and write the bundle."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from opwest import pipeline
from opwest.base.diagnostics import Diagnostics, fail, nearest
from opwest.base.frozen_dataclass import dataclass
from opwest.base.result import counted
from opwest.base.timing import stage
from opwest.bundles.capabilities import capabilities
from opwest.bundles.checks import check_effects, check_linked, check_model
from opwest.bundles.format import (
    HEADER_SIZE,
    LAYOUT_SHORT_ENUMS,
    LAYOUT_STEPS,
    LINKED,
    LLEXT,
    NAME_SIZE,
    AbiFields,
    Content,
    pack,
)
from opwest.bundles.image import CompileUnit, ImageBuilder, descriptor_of, facts_of, foreign_sections, image_of
from opwest.bundles.llext import relocatable_image
from opwest.bundles.slots import Slot
from opwest.bundles.toolchain import Toolchain, toolchain_of
from opwest.model.inputs.targets import make_target
from opwest.model.readers.fingerprint import model_hash
from opwest.model.types.builds import Target, TargetBuild
from opwest.model.types.model import Model
from opwest.objects.attributes import abi_of
from opwest.objects.elf import SHF_ALLOC, Elf, parse_elf
from opwest.objects.facts import ObjectError
from opwest.objects.targets import named_targets
from opwest.plan.memory import MemoryPlan
from opwest.project.request import Examination, Request, of_variant
from opwest.project.templates import read_own_templates
from opwest.render.bundle import bundle_files, interface_hash, render_bundle_header, render_script
from opwest.render.tables.tensors import used_pools
from opwest.render.templates.renderer import Renderer
from opwest.render.variants import variant_folder


def select(
    examinations: Sequence[Examination], request: BundleRequest, work: Path, faults: Diagnostics
) -> tuple[Examination, TargetBuild, Toolchain]:
    """Return the model to bundle, its objects and its toolchain. Raises OpwestError if they are not clear."""
    if request.build is not None:
        from opwest.bundles.zephyr_build import build_toolchain, choose, configuration

        values = configuration(request.build)
        examination, build = choose(examinations, values, request.target, request.variant, faults)
        is_host = values.get("CONFIG_ARCH_POSIX") == "y"
        return examination, build, build_toolchain(request.build, request.cc, work, is_host=is_host)
    examination = of_variant(examinations, request.variant, faults)[0]
    build, target = _build_for(examination, request.target, faults)
    return examination, build, toolchain_of(target, request.cc, work)


def _build_for(examination: Examination, name: str | None, faults: Diagnostics) -> tuple[TargetBuild, Target]:
    """Return the objects for a target, the only one of the model by default."""
    model = examination.model
    own = {build.target.name: (build, build.target) for build in model.builds if build.target is not None}
    if own:
        if name is None and len(own) > 1:
            text = f"model {model.label} has objects for several targets: {', '.join(own)}"
            faults.error(text, model.location, expected="--target NAME, or --build DIR")
        elif name is not None and name not in own:
            faults.error(f"--target: model {model.label} has no objects for {name!r}", hint=nearest(name, own))
        faults.raise_if_errors()
        return own[name] if name is not None else next(iter(own.values()))
    declared: Mapping[str, Target] = {target.name: target for target in model.declared_targets}
    if name is None:
        faults.error(
            f"the operators of model {model.label} are sources: the processor is not known",
            model.location,
            expected="--target NAME, or --build DIR",
            hint="'opwest targets' lists the names",
        )
    elif name not in declared and name not in named_targets():
        faults.error(f"--target: unknown target {name!r}", hint=nearest(name, [*declared, *named_targets()]))
    faults.raise_if_errors()
    known = str(name)
    return model.builds[0], declared.get(known) or make_target(known, named_targets()[known])


def sbom_of(units: Sequence[CompileUnit]) -> str:
    """Return the lines `SHA-256  bytes  name  compiler` of the objects of the manifest."""
    objects = [(unit.origin, unit.member.content) for unit in units if unit.origin is not None]
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {len(content)}  {_word(name)}  {_compiler(content)}\n"
        for name, content in objects
    )


def _word(name: str) -> str:
    """Return a name without white space and control characters."""
    return "".join("_" if char.isspace() or not char.isprintable() else char for char in name)


def _compiler(content: bytes) -> str:
    """Return the compilers that the section .comment of an object names; "unknown" without one."""
    elf = parse_elf(content)
    section = elf.find(".comment")
    data = elf.data(section) if section else b""
    texts = [part.decode("utf-8", "replace") for part in data.split(b"\0") if part]
    shown = ", ".join("".join(char if char.isprintable() else "?" for char in text) for text in dict.fromkeys(texts))
    return shown or "unknown"


@dataclass(frozen=True, slots=True)
class BundleRequest:
    """The request for one bundle."""

    manifest: Path
    slot: Slot | None
    """None for LLEXT."""
    version: tuple[int, int, int] = (0, 0, 0)
    build: Path | None = None
    """A Zephyr build, whose compiler and options are used."""
    target: str | None = None
    cc: str | None = None
    variant: str | None = None
    cases: int = 10
    """The most golden vectors of each file."""
    steps: bool = False
    """Whether to include the expected results of steps."""
    observable: bool = False
    """Whether run reports the end of each step without expected results in the bundle, too."""
    depfile: Path | None = None


class Made(NamedTuple):
    """A bundle without signatures, and what was learnt on the way."""

    signed: bytes
    content: Content
    model: Model
    headers: dict[str, bytes]
    """<model>_bundle.h and <model>.h by name."""
    vectors: int
    """The number of golden vectors."""
    steps: int
    """The number of expected results of steps."""
    slot: Slot | None


def make_bundle(request: BundleRequest, faults: Diagnostics) -> Made:
    """Return a bundle. Raises OpwestError with all faults of the last stage."""
    project = pipeline.run(
        Request((request.manifest,), None, vendored=False, layout="model", depfile=request.depfile), faults, "render"
    )
    with tempfile.TemporaryDirectory(prefix="opwest-") as temporary:
        work = Path(temporary)
        examination, build, chain = select(project.examinations, request, work, faults)
        faults.raise_if_errors()
        model, plan = examination.model, examination.plan
        check_model(model, build, faults)
        if len(model.name.encode()) >= NAME_SIZE:
            text = f"the name of model {model.name!r} is too long for a bundle"
            faults.error(text, model.location, expected=f"at most {NAME_SIZE - 1} characters")
        faults.raise_if_errors()
        steps = []
        if request.steps:
            from opwest.bundles.steps import step_results

            steps = step_results(request.manifest, model, faults)
        render = Renderer(read_own_templates(), faults)
        folder = work / "models" / model.name / variant_folder(model)
        below = f"models/{model.name}/{variant_folder(model)}".rstrip("/")
        for file in project.files:
            if str(file.path).startswith(f"{below}/"):
                _write(work / str(file.path), file.content)
        for path, source in bundle_files(render, model, plan, request.cases, steps).items():
            _write(folder / path, source)
        objects = work / "work"
        objects.mkdir()
        builder = ImageBuilder(chain, model, build, folder, objects)
        try:
            content = _link(request, plan, builder, render, faults)
        except ObjectError as error:
            message = f"cannot use an object of the image: {error.message}"
            raise fail(message, model.location, expected=error.expected, hint=error.hint) from error
        headers = {
            f"{model.name}_bundle.h": render_bundle_header(render, model),
            f"{model.name}.h": (folder / "include" / f"{model.name}.h").read_bytes(),
        }
    cases = sum(min(vector.count, request.cases) for vector in model.suite.vectors)
    return Made(pack(content), content, model, headers, cases, len(steps), request.slot)


def check_choice(request: BundleRequest) -> None:
    """Report a manifest with errors, or an unknown variant, target or compiler. Raises OpwestError."""
    faults = Diagnostics()
    planned = pipeline.run(Request((request.manifest,), None, vendored=False, layout="model"), faults, "plan")
    faults.raise_if_errors()
    with tempfile.TemporaryDirectory(prefix="opwest-") as temporary:
        select(planned.examinations, request, Path(temporary), faults)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _link(
    request: BundleRequest, plan: MemoryPlan, builder: ImageBuilder, render: Renderer, faults: Diagnostics
) -> Content:
    """Compile and link the image, check it, and return the content of the bundle."""
    model = builder.model
    reports = request.steps or request.observable
    with stage("compile the image"):
        builder.compile(steps=reports)
    with stage("link the image"):
        libraries = builder.libraries()
        defined = {name for unit in builder.units for name in unit.member.defined}
        needed = [name for unit in builder.units for name in unit.member.undefined_strong if name not in defined]
        whole = builder.link_relocatable(libraries.without_errno(needed, defined))
        elf = parse_elf(whole.read_bytes())
        known = check_effects(builder.units, builder.build, faults)
        check_linked(elf, builder, libraries, known, faults)
        faults.raise_if_errors()
        if request.slot is None:
            kind, slot, descriptor = LLEXT, 0, 0
            image = relocatable_image(builder.chain, whole, builder.work)
        else:
            _check_space(request.slot, elf, faults)
            kind, slot = LINKED, request.slot.address
            address = slot + HEADER_SIZE
            script = builder.work / "image.ld"
            script.write_bytes(render_script(render, address))
            elf = parse_elf(builder.link_image(whole, script).read_bytes())
            for name, size in foreign_sections(elf):
                faults.error(
                    f"the image has {counted(size, 'byte')} in section {name!r}: expected one section", model.location
                )
            faults.raise_if_errors()
            image, descriptor = image_of(elf, address), descriptor_of(elf, address)
    facts = facts_of(elf)
    abi = abi_of(elf)
    layout = (LAYOUT_STEPS if reports else 0) | (LAYOUT_SHORT_ENUMS if facts.short_enums else 0)
    pools, pools_align = _pools(model, plan)
    record = AbiFields(
        *(elf.machine, facts.pointer_size, facts.float_abi, facts.big_endian, 0),
        *(facts.metadata_version, facts.host_version, layout, capabilities(abi), facts.slot_size),
        *(len(model.devices), len(model.inputs), len(model.outputs)),
        *(facts.workspace_size, facts.workspace_align, pools, pools_align),
        sum(tensor.type.size for tensor in model.inputs),
        sum(tensor.type.size for tensor in model.outputs),
    )
    return Content(
        kind=kind,
        slot_address=slot,
        descriptor=descriptor,
        version=request.version,
        interface_hash=interface_hash(model),
        model_hash=bytes.fromhex(model_hash(model)),
        name=model.name,
        abi=record,
        image=image,
        sbom=sbom_of(builder.units),
    )


def _check_space(slot: Slot, whole: Elf, faults: Diagnostics) -> None:
    """Report a slot that ends after the last address of the machine. Raises OpwestError."""
    allocated = sum(section.size for section in whole.sections if section.flags & SHF_ALLOC)
    end = slot.address + (HEADER_SIZE + allocated if slot.size is None else slot.size)
    if end > 1 << whole.layout.bits:
        faults.error(
            f"--slot: the slot at 0x{slot.address:x} ends at 0x{end:x}",
            expected=f"at most 0x{1 << whole.layout.bits:x}: addresses of {whole.machine_name} have "
            f"{whole.layout.bits} bits",
        )
        faults.raise_if_errors()


def _pools(model: Model, plan: MemoryPlan) -> tuple[int, int]:
    """Return the size of all pools one after another, each at its alignment, and the largest alignment."""
    end, largest = 0, 1
    for pool in used_pools(model, plan):
        end = -(-end // pool.align) * pool.align + pool.size
        largest = max(largest, pool.align)
    return end, largest
