# SPDX-License-Identifier: Apache-2.0
"""The table of features: what each one needs from a machine."""

from __future__ import annotations

from collections.abc import Iterator

from opwest.base.frozen_dataclass import dataclass
from opwest.doctor import needs
from opwest.doctor.machine import Machine
from opwest.doctor.needs import Lack, Need, toolchain, variant
from opwest.tuning.machines import MACHINES

_TUNED = {one.core: one.emulator for one in MACHINES.values()}
_ARM_CORES = tuple(dict.fromkeys(e[2] for e in _TUNED.values() if e[0] == "qemu-system-arm"))
_CORE = (needs.python, needs.packages)
_BUILD = (needs.workspace, needs.build_tools, variant)
_ARM = (*_BUILD, toolchain("arm"), needs.cortex_m)
_RISCV = (*_BUILD, toolchain("riscv"))
_NATIVE = (*_BUILD, needs.linux, needs.compiler)
_SMP = (needs.single("smpclient"), needs.module("zcbor"))


@dataclass(frozen=True)
class Feature:
    """A feature of opwest."""

    name: str
    """Its argument of `opwest doctor`."""
    purpose: str
    needs: tuple[Need, ...]
    basic: bool = False
    """Whether the exit code without arguments depends on it."""
    extra: str | None = None
    """The extra of pyproject.toml that declares its packages; the feature is absent where that is not declared."""


FEATURES = (
    Feature("generate", "check, inspect, init, import mlf, plan, generate", _CORE, basic=True),
    Feature("update", "update projects, merging your changes", (*_CORE, needs.git), basic=True),
    Feature("report", "reports and their comparison", _CORE, basic=True),
    Feature("run-host", "run --host", (*_CORE, needs.compiler)),
    Feature("run-host-32", "run --host --bits 32", (*_CORE, needs.compiler, needs.compiler_32)),
    Feature("llvm", "operators in LLVM IR, --metadata=llvm", (*_CORE, needs.single("llvmlite"))),
    Feature("import-models", "import tflite, import onnx", (*_CORE, needs.extra("models")), extra="models"),
    Feature("import-tvm", "Relax modules (opwest.frontends.tvm)", (*_CORE, needs.extra("tvm")), extra="tvm"),
    Feature(
        "import-npu",
        "import tflite --npu (Vela)",
        (*_CORE, needs.extra("models"), needs.extra("vela")),
        extra="vela",
    ),
    Feature("tune-arm", "tune for Cortex-M in QEMU", (*_CORE, needs.arm_gcc, needs.qemu("arm", *_ARM_CORES))),
    Feature("tune-riscv", "tune for RISC-V in QEMU", (*_CORE, needs.riscv_gcc, needs.qemu("riscv32", "virt"))),
    Feature("bundle", "link bundles for Cortex-M", (*_CORE, needs.arm_gcc)),
    Feature("bundle-sign", "sign and verify bundles", (*_CORE, needs.extra("bundle")), extra="bundle"),
    Feature("west", "west opwest, opwest_add_model()", (needs.workspace, needs.workspace_packages)),
    Feature("build-native-sim", "west build for native_sim/native/64", _NATIVE),
    Feature("build-arm", "west build for Cortex-M boards", _ARM),
    Feature("build-riscv", "west build for RISC-V boards", _RISCV),
    Feature("run-native-sim", "run --board native_sim/native/64", (*_CORE, *_NATIVE)),
    Feature(
        "run-qemu-arm",
        "run --board mps2/an385, mps3/corstone300/an547",
        (*_CORE, *_ARM, *_SMP, needs.qemu("arm", "mps2-an385", "mps3-an547")),
    ),
    Feature("run-qemu-riscv", "run --board qemu_riscv32", (*_CORE, *_RISCV, *_SMP, needs.qemu("riscv32", "virt"))),
    Feature("run-serial", "run --board on a connected board", (*_CORE, needs.single("smpclient"), needs.serial_port)),
    Feature("docs", "make docs", (needs.extra("docs"),), extra="docs"),
)


@dataclass(frozen=True)
class State:
    """A feature on a machine: it works if nothing lacks."""

    feature: Feature
    lacks: tuple[Lack, ...]


def states(machine: Machine) -> tuple[State, ...]:
    """Return the state of every feature that this opwest has."""
    return tuple(State(feature, tuple(_lacks(feature, machine))) for feature in offered(machine))


def offered(machine: Machine) -> tuple[Feature, ...]:
    """Return the features without those whose packages this opwest does not declare."""
    extras = machine.declared.extras
    return tuple(one for one in FEATURES if one.extra is None or one.extra in extras)


def _lacks(feature: Feature, machine: Machine) -> Iterator[Lack]:
    found: dict[Lack, None] = {}
    for need in feature.needs:
        found |= dict.fromkeys(need(machine))
    yield from found
