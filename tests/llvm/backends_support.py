# SPDX-License-Identifier: Apache-2.0
"""The golden models for every target with both back ends, and images of them for hosts and for QEMU."""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import projects
from campaign import sized
from golden_support import copy_project
from opwest.base.diagnostics import Diagnostics
from opwest.model.inputs import targets
from opwest.model.types.dtypes import DTYPES, DType
from opwest.objects.compat import TargetAbi
from opwest.objects.targets import named_targets
from opwest.project.lock import Lock
from opwest.project.metadata_objects import compile_metadata
from opwest.render.application import Planned
from opwest.render.project_files import project_record, render_project
from opwest.runs.compile import RUNTIME_SOURCES
from opwest.runs.harness import own_renderer
from requirements_support import absent, need, need_x86_64

PROGRAMS = Path(__file__).parent / "programs"
MODULE = Path(__file__).resolve().parents[2] / "zephyr_module"
BACK_ENDS = ("c", "llvm")
TARGETS = tuple(named_targets())
ABIS = (
    *("x86-64", "i386", "aarch64-host", "rv32imac", "rv64gc"),
    *("cortex-m0", "cortex-m4f-softfp", "cortex-m55f-mve"),
)
"""A target of each instruction set and float ABI."""
MODELS = ("accelerated", "many_kinds", "asynchronous", "conventions", "streams")
LINKED = (*ABIS, "cortex-m3", "cortex-a53")
"""The targets that images of all models are linked for."""
_OTHERS = tuple(name for name in TARGETS if name not in LINKED)
TARGETS_OF = {model: sized((*LINKED, *_OTHERS[number :: len(MODELS)]), TARGETS) for number, model in enumerate(MODELS)}
"""The targets of each model: in CI, each of the others has one model."""
RUNTIME = tuple(name for name in RUNTIME_SOURCES if not name.startswith("port_"))
ARM, RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"

ROWS = tuple(DTYPES.values())
"""The scalars of an operator that stores one of every dtype."""
UNUSED = """
define i32 @unused_{model}(ptr %x) {{
  %old = load i32, ptr %x
  %new = mul i32 %old, 3
  store i32 %new, ptr %x
  ret i32 0
}}
"""


def _store_ir() -> str:
    """Return an operator as IR that stores its scalars in sequence."""
    lines, offset = [], 0
    for i, row in enumerate(ROWS):
        lines.append(f"  %at{i} = getelementptr i8, ptr %bytes, i32 {offset}")
        lines.append(f"  store {row.llvm} %a{i}, ptr %at{i}, align 1")
        offset += row.size
    parameters = ", ".join(f"{row.llvm} {_extension(row)} %a{i}" for i, row in enumerate(ROWS))
    return f"define i32 @store_ir({parameters}, ptr %bytes) {{\n" + "\n".join([*lines, "  ret i32 -11", "}", ""])


def _extension(row: DType) -> str:
    """Return the attribute of a narrow integer parameter, as C compilers extend it."""
    if row.size >= 4:
        return ""
    return "signext" if row.kind == "int" else "zeroext"


def manifests_for_all_targets(work: Path) -> list[Path]:
    """Copy the golden models into `work`, each with IR that is compiled for its targets."""
    found = []
    for golden, model in (
        ("devices", "accelerated"),
        ("many_kinds", "many_kinds"),
        ("asynchronous", "asynchronous"),
        ("conventions", "conventions"),
        ("streams", "streams"),
    ):
        manifest = copy_project(golden, work / golden)[0]
        ir, text = UNUSED.format(model=model), manifest.read_text()
        if model == "many_kinds":
            ir += _store_ir()
            args = [f"{{name: s{i}, dtype: {dtype}, scalar: true}}" for i, dtype in enumerate(DTYPES)]
            size = sum(row.size for row in ROWS)
            args.append(f"{{name: bytes, dtype: uint8, shape: [{size}], direction: out}}")
            text = text.replace("\noperators:\n", f"\noperators:\n  store_ir: {{args: [{', '.join(args)}]}}\n", 1)
        (manifest.parent / "more.ll").write_text(ir)
        entry = f"\nobjects:\n  - {{files: [more.ll], targets: [{', '.join(TARGETS_OF[model])}]}}\n"
        manifest.write_text(text.replace("\nobjects:\n", entry, 1))
        found.append(manifest)
    return found


def write_application(planned: list[Planned], app: Path, metadata: str) -> Path:
    """Write the files of `generate` without its journal, which waits for the disk."""
    faults = Diagnostics()
    objects = compile_metadata(planned, faults) if metadata == "llvm" else None
    faults.raise_if_errors()
    files = {str(f.path): f.content for f in render_project(own_renderer(), planned, None, objects)}
    files[".opwest/lock.json"] = Lock(project_record(planned, vendored=False, metadata=metadata)).to_bytes()
    for name, content in files.items():
        path = app / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return app


def applications(work: Path, back_ends: Sequence[str] = BACK_ENDS, count: int | None = None) -> dict[str, Path]:
    """Return the application of each back end, with all models, or the first `count`."""
    planned = projects.check(manifests_for_all_targets(work / "source")[:count], Diagnostics())
    return {metadata: write_application(planned, work / metadata, metadata) for metadata in back_ends}


def target_abi(name: str) -> TargetAbi:
    return targets.make_target(name, named_targets()[name])


@dataclass(frozen=True)
class Machine:
    """How a target's code is compiled, linked and run here."""

    compiler: str
    flags: tuple[str, ...]
    emulator: tuple[str, ...] = ()
    memory: tuple[int, int] | None = None
    """Addresses of code and data of a bare image; None where there is an operating system."""


_AN385 = ("mps2-an385", 0, 0x20000000)
# By LLVM's CPU: the machine of QEMU (7.2), and the addresses of code and data.
_BOARDS = {
    "cortex-m0": ("microbit", 0, 0x20000000),
    "cortex-m0plus": ("microbit", 0, 0x20000000),
    "cortex-m3": _AN385,
    "cortex-m4": ("mps2-an386", 0, 0x20000000),
    "cortex-m7": ("mps2-an500", 0, 0x20000000),
    "cortex-m33": ("mps2-an505", 0x10000000, 0x38000000),
    "cortex-m55": ("mps3-an547", 0x10000000, 0x30000000),
    "cortex-m23": ("mps2-an505", 0x10000000, 0x38000000),  # a Cortex-M33, whose instructions include these
}
_BOARDS |= dict.fromkeys(("cortex-m52", "cortex-m85"), _BOARDS["cortex-m55"])  # the same instructions without PACBTI
# Flags of GCC in addition to the CPU and the float ABI.
_GCC_CPU = {
    "cortex-m4": ("-mcpu=cortex-m4", ""),
    "cortex-m4f": ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"),
    "cortex-m4f-softfp": ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"),
    "cortex-m7f": ("-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16"),
    "cortex-m7f-double": ("-mcpu=cortex-m7", "-mfpu=fpv5-d16"),
    "cortex-m33": ("-mcpu=cortex-m33+nodsp", ""),
    "cortex-m33f": ("-mcpu=cortex-m33+nodsp", "-mfpu=fpv5-sp-d16"),
    "cortex-m33f-softfp": ("-mcpu=cortex-m33+nodsp", "-mfpu=fpv5-sp-d16"),
    "cortex-m55": ("-mcpu=cortex-m55+nofp", ""),
    "cortex-m55f": ("-mcpu=cortex-m55+nomve", "-mfpu=auto"),
    "cortex-m55f-mvei": ("-mcpu=cortex-m55+nomve.fp", "-mfpu=auto"),
    "cortex-m55f-mve": ("-mcpu=cortex-m55", "-mfpu=auto"),
}
# GCC 12 has no Cortex-M52 and M85.
_GCC_CPU |= {
    name.replace("m55", core): flags for core in ("m52", "m85") for name, flags in _GCC_CPU.items() if "m55" in name
}


def machine_of(target: str) -> Machine:
    """Return the tools for a named target; skip the running test, with the reason, if they are missing."""
    known = named_targets()[target]
    if known["machine"] in ("x86-64", "i386"):
        # Code for i386 is not position-independent.
        plain = ("-no-pie",) if known["bits"] == 32 else ()
        machine = Machine("gcc", (f"-m{known['bits']}", *plain))
        need_x86_64()
    elif known["machine"] == "aarch64":
        # Code for bare metal is not position-independent.
        machine = Machine(*_aarch64_compiler(), ("qemu-aarch64",))
    elif known["machine"] == "arm":
        cpu = known["llvm"]["cpu"]
        board, code, data = _BOARDS[cpu]
        core, fpu = _GCC_CPU.get(target, (f"-mcpu={cpu}", ""))
        flags = ("-mthumb", core, f"-mfloat-abi={known['float_abi']}", *([fpu] if fpu else []))
        emulator = ("qemu-system-arm", "-machine", board)
        machine = Machine(ARM, flags, emulator, (code, data))
    else:
        model = ("-mcmodel=medany",) if known["bits"] == 64 else ()
        emulator = (f"qemu-system-riscv{known['bits']}", "-machine", "virt", "-bios", "none")
        flags = (f"-march={target}", f"-mabi={known['llvm']['abi']}", *model)
        machine = Machine(RISCV, flags, emulator, (0x80000000, 0x80400000))
    need(machine.compiler, *machine.emulator[:1])
    if fault := _fault_of_compiler(machine.compiler, machine.flags, bare=machine.memory is not None):
        absent(f"{target}: {fault}", "aarch64-linux-gnu" if known["machine"] == "aarch64" else machine.compiler)
    return machine


def _aarch64_compiler() -> tuple[str, tuple[str, ...]]:
    """Return the compiler and its flags. Debian's GCC for it conflicts with gcc-multilib; clang does not."""
    if shutil.which("aarch64-linux-gnu-gcc"):
        return "aarch64-linux-gnu-gcc", ("-static", "-Wl,-z,noexecstack")
    return "clang", ("--target=aarch64-linux-gnu", "-static", "-Wl,-z,noexecstack")


@functools.cache
def _fault_of_compiler(compiler: str, flags: tuple[str, ...], *, bare: bool) -> str | None:
    """Return the reason why a compiler cannot build a program; None if it can."""
    link = ["-nostdlib", "-Wl,-e,main", "-lgcc"] if bare else []
    done = subprocess.run(
        [compiler, *flags, "-x", "c", "-", "-o", os.devnull, *link],
        input="int main(void) { return 0; }\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    return None if done.returncode == 0 else f"{compiler} {' '.join(flags)}: {done.stderr.strip()[:200]}"


def read_record(app: Path) -> dict:
    return json.loads((app / ".opwest" / "lock.json").read_text())["record"]


def run_tool(command: list, cwd: Path) -> str:
    """Run a command that must succeed with empty standard error."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


_FLAGS = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-fdata-sections"]


def compile_sources(machine: Machine, work: Path, sources: list[Path], options: list[str]) -> list[Path]:
    work.mkdir(parents=True)
    bare = ["-ffreestanding"] if machine.memory else []
    # Own headers if the compiler has none.
    own = ["-idirafter", PROGRAMS / "include"] if machine.memory else []
    compiling = [flag for flag in machine.flags if not flag.startswith(("-Wl,", "-static", "-no-pie"))]
    for source in sources:  # one at a time, as ccache requires
        run_tool([machine.compiler, *compiling, *_FLAGS, *bare, *options, *own, "-c", source], work)
    return sorted(work.glob("*.o"))


def build_operators(machine: Machine, target: str, app: Path, work: Path) -> list[Path]:
    """Return the objects of the models' operators for a target: C is compiled, IR was compiled by opwest."""
    found = []
    for model in read_record(app)["models"]:
        folder = app / "models" / model["name"]
        build = next(b for b in model["builds"] if b["target"] == target)
        options = ["-fwrapv", *_exact(target), "-include", folder / build["rename"], *includes(app)]
        options += ["-idirafter", MODULE / "include_tvm"]
        sources = [folder / source for source in build["sources"]]
        found += compile_sources(machine, work / model["name"], sources, options)
        found += [folder / item for item in build["objects"]]
    return found


def _exact(target: str) -> tuple[str, ...]:
    """Return the flags for results of float32 that do not depend on the processor."""
    sse = ("-msse2", "-mfpmath=sse") if named_targets()[target]["machine"] == "i386" else ()
    return ("-ffp-contract=off", *sse)


def includes(app: Path) -> list[str]:
    """Return the -I options of an application and the runtime."""
    folders = [MODULE, *(app / "models" / model["name"] for model in read_record(app)["models"])]
    return [f"-I{folder / 'include'}" for folder in folders]


def metadata_objects(machine: Machine, target: str, app: Path, work: Path, options: Sequence[str] = ()) -> list[Path]:
    """Return the objects of run, metadata, registry, constants and devices, for either back end."""
    found: list[Path] = []
    record = read_record(app)
    for model in record["models"]:
        name = model["name"]
        folder = app / "models" / name
        if any(tensor["reached"] for tensor in model["tensors"]):
            found += compile_sources(machine, work / f"{name}_d", [folder / "src" / f"{name}_devices.c"], includes(app))
        if record["metadata"] == "llvm":
            found.append(folder / "objects" / target / f"{name}_metadata.o")
            continue
        parts = ("metadata", "run", *(part for part in ("bridges", "tvm_crt") if model[part]))
        sources = [folder / "src" / f"{name}_{part}.c" for part in parts]
        named = f'-DOPWEST_TARGET="{target}"'
        found += compile_sources(machine, work / name, sources, [*includes(app), named, *options])
        if model["constants"]:
            own = [f"-Wa,-I{folder / 'constants'}"]
            found += compile_sources(machine, work / f"{name}_constants", [folder / "constants.S"], own)
    return found


def link(machine: Machine, objects: list[Path], program: Path) -> Path:
    """Link a program; the linker may not warn."""
    options = ["-Wl,--fatal-warnings", "-Wl,--gc-sections"]
    if machine.memory:
        code, data = machine.memory
        entry = "-Wl,-e,reset"
        options += [f"-Wl,--defsym=CODE={code},--defsym=DATA={data}", f"-T{PROGRAMS / 'bare.ld'}", entry]
        options += ["-nostdlib", "-Wl,--no-warn-rwx-segments"]
    run_tool([machine.compiler, *machine.flags, *options, *objects, "-lgcc", "-o", program], program.parent)
    return program


def execute(machine: Machine, program: Path) -> str:
    """Run a program, under QEMU if it is for another machine, and return its output."""
    command = [*machine.emulator, str(program)]
    if machine.memory:
        command = [*machine.emulator, "-nographic", "-monitor", "none", "-serial", "none"]
        command += ["-semihosting-config", "enable=on,target=native", "-kernel", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    text = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(command)}\n{done.returncode}\n{text[-2000:]}"
    assert text.startswith("begin\n") and text.endswith("end\n"), text[-2000:]
    return text
