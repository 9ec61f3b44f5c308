# SPDX-License-Identifier: Apache-2.0
"""The files of the runtime by feature, and their selection for an application with given models.

The counterpart is zephyr_module/CMakeLists.txt, which compiles the sources of a feature where its option is set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from opwest.base.frozen_dataclass import dataclass
from opwest.base.paths import spelled
from opwest.base.resources import resource
from opwest.model.types.model import Model


@dataclass(frozen=True, slots=True)
class Feature:
    """Files of the runtime that are used together."""

    files: tuple[str, ...]
    """Paths in zephyr_module/; one that ends in / is a directory with its content."""
    needs: tuple[str, ...] = ()
    """Other features that these files include or call."""
    links: tuple[str, ...] = ()
    """Features that use these files together: they are copied where all of them are."""
    option: str | None = None
    """The option that selects the feature in the manifest's `application: kconfig`."""
    compatible: str | None = None
    """The compatible of the devicetree nodes of its driver."""


def _headers(*names: str) -> tuple[str, ...]:
    return tuple(f"include/opwest/{name}.h" for name in names)


def _sources(*names: str) -> tuple[str, ...]:
    return tuple(f"src/{name}" for name in names)


def _driver(name: str, binding: str, *sources: str) -> tuple[str, ...]:
    shared = (f"dts/bindings/accelerator/opwest,{binding}.yaml", "dts/bindings/vendor-prefixes.txt")
    return (*(f"drivers/{name}/{file}" for file in ("Kconfig", *sources)), *shared)


FEATURES: Mapping[str, Feature] = {
    "core": Feature(
        (
            *("CMakeLists.txt", "Kconfig", "zephyr/module.yml"),
            *("cmake/opwest.cmake", "cmake/opwest_service.cmake"),
            *("snippets/opwest-service/", "snippets/transports/"),
            *_headers("model", "port", "registry", "status"),
            *_sources("metadata.c", "port_zephyr.c", "registry.c", "status.c"),
        )
    ),
    "syscalls": Feature(_sources("syscalls_zephyr.h")),
    "devices": Feature(
        (
            *_headers("accelerator", "device_calls", "devices", "launch"),
            *_sources("accelerator.c", "device_calls.c", "device_launches.c", "device_ownership.c", "devices.c"),
            *_sources("accelerator_syscalls.c", "devices_internal.h", "port_devices_zephyr.c"),
        ),
        needs=("syscalls",),
    ),
    "stream": Feature(
        (*_headers("stream"), *_sources("stream.c", "stream_frames.c", "stream_internal.h")), needs=("devices",)
    ),
    "drivers": Feature(
        (*_headers("accelerator_context", "port_sync"), *_sources("accelerator_context.c", "port_sync_zephyr.c")),
        needs=("devices",),
        option="CONFIG_OPWEST_ACCELERATOR",
    ),
    "npu_emul": Feature(
        (
            *_headers("npu_emul", "npu_emul_state"),
            *_driver(
                "npu_emul",
                "npu-emul",
                *(f"npu_emul{part}.c" for part in ("", "_enqueue", "_faults", "_kernels", "_program", "_queue")),
                *("npu_emul_internal.h", "npu_emul_zephyr.c"),
            ),
        ),
        needs=("drivers",),
        option="CONFIG_OPWEST_NPU_EMUL",
        compatible="opwest,npu-emul",
    ),
    "ethos_u": Feature(
        (
            *_headers("ethos_u", "profile", "profile_devices"),
            *_driver(
                "ethos_u",
                "ethos-u",
                *(f"ethos_u{part}.c" for part in ("", "_payload", "_pmu", "_queue")),
                *("ethos_u_internal.h", "ethos_u_payload.h"),
            ),
            *_sources("profile_devices.c", "profile_devices.ld", "profile_devices_shell.c"),
        ),
        needs=("drivers",),
        option="CONFIG_OPWEST_ETHOS_U",
        compatible="opwest,ethos-u",
    ),
    "npu_emul_functions": Feature(
        (*_headers("accelerator_functions", "npu_emul_functions"), "drivers/npu_emul/npu_emul_functions.c"),
        needs=("npu_emul",),
        links=("bundle", "npu_emul"),
    ),
    "ethos_u_functions": Feature(
        (*_headers("accelerator_functions", "ethos_u_functions"), "drivers/ethos_u/ethos_u_functions.c"),
        needs=("ethos_u",),
        links=("bundle", "ethos_u"),
    ),
    "runner": Feature(
        (*_headers("runner"), *_sources("runner_syscalls.c", "runner_zephyr.c")),
        needs=("syscalls",),
        option="CONFIG_OPWEST_RUNNER",
    ),
    "tvm": Feature(
        (
            *_headers("dlpack", "tvm_backend", "tvm_ffi", "tvm_packed", "tvm_workspace"),
            *_sources("port_tvm_zephyr.c", "tvm_backend.c"),
            "include_tvm/",
        ),
        option="CONFIG_OPWEST_TVM",
    ),
    "halide": Feature(
        (*_headers("halide_buffer"), *_sources("halide_backend.c")), needs=("tvm",), option="CONFIG_OPWEST_HALIDE"
    ),
    "memref": Feature(_headers("memref")),
    "state": Feature((*_headers("state"), *_sources("state.c"))),
    "model_list": Feature((*_headers("model_list"), *_sources("models.ld")), option="CONFIG_OPWEST_MODEL_LIST"),
    "shell": Feature(_sources("shell.c"), needs=("model_list",), option="CONFIG_OPWEST_SHELL"),
    "profile": Feature(
        (
            *_headers("port_profile", "profile"),
            *_sources("port_profile_native.c", "port_profile_zephyr.c", "profile.c", "profile.ld", "profile_shell.c"),
        ),
        option="CONFIG_OPWEST_PROFILE",
    ),
    "input_check": Feature(
        ("Kconfig.input_check", *_headers("profile"), *_sources("input_check.c")), option="CONFIG_OPWEST_CHECK_INPUTS"
    ),
    "errors": Feature((*_headers("errors"), *_sources("errors.c")), option="CONFIG_OPWEST_ERROR_NAMES"),
    "service": Feature(
        (
            *_headers("service"),
            *_sources("service.c", "service.ld", "service_internal.h"),
            *_sources("service_shell.c", "service_smp.c", "service_zephyr.c"),
            *("snippets/opwest-service-shell/", "snippets/opwest-udp/"),
        ),
        needs=("errors", "shell"),
        option="CONFIG_OPWEST_SERVICE",
    ),
    "service_call": Feature(
        _sources("service_call.c"), needs=("service", "devices"), option="CONFIG_OPWEST_SERVICE_CALL"
    ),
    "bundle": Feature(
        (
            *_headers("bundle", "bundle_format", "bundle_llext", "bundle_port", "bundle_service"),
            *_headers("bundle_storage_zephyr", "bundles"),
            *("bundle/CMakeLists.txt", "bundle/Kconfig", "cmake/opwest_bundle.cmake", "scripts/bundle_keys.py"),
            *("bundle/ext/", "bundle/src/", "bundle/zephyr/"),
            *("snippets/opwest-bundle-service/", "snippets/opwest-bundle-service-shell/"),
        ),
        needs=("drivers", "errors", "state", "vectors"),
        option="CONFIG_OPWEST_BUNDLE",
    ),
    "flash_emul": Feature(
        (
            *_headers("flash_emul"),
            *(f"drivers/flash_emul/{name}" for name in ("Kconfig", "flash_emul.c", "flash_emul_native.c")),
            *("dts/bindings/flash_controller/opwest,flash-emul.yaml", "dts/bindings/vendor-prefixes.txt"),
        ),
        option="CONFIG_OPWEST_BUNDLE_FLASH_EMUL",
        compatible="opwest,flash-emul",
    ),
    "sources": Feature(("scripts/check_operators.py", "scripts/effects.py")),
    "vectors": Feature((*_headers("compare"), *_sources("compare.c"))),
}
"""The features that are copied into applications."""

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]((?:opwest|tvm|dlpack)/[\w./-]+)[>"]', re.MULTILINE)


def vendored_files(models: Sequence[Model]) -> dict[PurePosixPath, bytes]:
    """Return the files of the runtime for an application with these models, by path in modules/opwest."""
    root = resource("zephyr_module")
    return {PurePosixPath(path): (root / path).read_bytes() for path in files_of(features_of(models))}


def features_of(models: Sequence[Model]) -> frozenset[str]:
    """Return the features that the models and their applications use, with their dependencies."""
    features = {"core"}
    waiting = [name for model in models for name in _used(model)]
    while waiting:
        name = waiting.pop()
        if name not in features:
            features.add(name)
            waiting += FEATURES[name].needs
    features |= {name for name, one in FEATURES.items() if one.links and features.issuperset(one.links)}
    return frozenset(features)


def files_of(features: Iterable[str]) -> list[str]:
    """Return the paths in zephyr_module/ of all files of some features, sorted."""
    root = resource("zephyr_module")
    paths: set[str] = set()
    for path in (path for name in features for path in FEATURES[name].files):
        if path.endswith("/"):
            paths |= {spelled(file.relative_to(root)) for file in (root / path).rglob("*") if file.is_file()}
        else:
            paths.add(path)
    return sorted(paths)


def _used(model: Model) -> Iterator[str]:
    if model.devices or any(operator.takes_device for operator in model.operators):
        yield "devices"
    if any(device.handle is None for device in model.devices):
        yield "drivers"  # a driver of the application may use the class and its context
    if model.needs_tvm or model.compat or any(operator.uses_tvm for operator in model.operators):
        yield "tvm"
    if model.needs_halide:
        yield "halide"
    yield from (called.convention.feature for called in model.operators if called.convention.feature is not None)
    if model.states:
        yield "state"
    if model.streams:
        yield "stream"
    if model.suite.vectors:
        yield "vectors"
    if any(build.sources for build in model.builds):
        yield "sources"
    if any(device.host_latency_us is not None for device in model.devices):
        yield "npu_emul"
    options = {key for key, value in model.application.kconfig if value == "y"}
    trees = [file.content.decode("utf-8", errors="replace") for _, file in model.application.overlays]
    trees += [tree.value for device in model.devices for _, tree in device.boards]
    trees += [device.devicetree.value for device in model.devices if device.devicetree]
    for name, feature in FEATURES.items():
        if feature.option in options or (feature.compatible and any(feature.compatible in text for text in trees)):
            yield name
    yield from _included(model)


def _included(model: Model) -> Iterator[str]:
    """Yield the features whose headers the user's own files include."""
    contents = [source.content for build in model.builds for source in build.sources]
    contents += [file.content for file in model.application.files]
    contents += [f"#include <{device.handle.header}>".encode() for device in model.devices if device.handle]
    headers = {header.decode() for content in contents for header in _INCLUDE.findall(content)}
    places = {f"{folder}/{header}" for folder in ("include", "include_tvm") for header in headers}
    for name in FEATURES if places else ():
        if not places.isdisjoint(files_of([name])):
            yield name
