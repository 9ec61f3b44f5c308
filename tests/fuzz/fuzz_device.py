# SPDX-License-Identifier: Apache-2.0
"""Code on devices, under libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer.

The service over Zephyr's shell and over MCUmgr (with Zephyr's own zcbor, if ZEPHYR_BASE has it), calls by name,
the arguments and functions of operators of TVM's conventions, the programs of an Ethos-U, and bundles (which need
the package cryptography). Needs clang with libFuzzer. Failures are in tests/fuzz/regressions.zip.
"""

import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fuzz_paths  # noqa: F401
from fuzz_engine import store
from fuzz_paths import TESTS
from golden_support import copy_project, generate_quickly
from opwest.runs.compile import RUNTIME_SOURCES

HERE = Path(__file__).parent / "device"
RUNTIME = TESTS.parent / "zephyr_module"
RUNS = 2_000_000
FLAGS = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror")
SANITIZERS = ("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
_CONFIG = ("-DCONFIG_SHELL_CMD_BUFF_SIZE=1024", "-DCONFIG_MCUMGR_TRANSPORT_NETBUF_SIZE=384")
_CONFIG += ("-DCONFIG_OPWEST_SERVICE_SMP_GROUP=28535",)
_PACKED = "fuzz_packed foreign_operators packed_operators packed_memory packed_host_port packed_zephyr_port".split()
_WORDS = "open close run read write describe m empty a absent y 0 1 4 299 300 4294967295 00 ffFF zz -1".split()


class AbsentError(Exception):
    """A target cannot be built here; the text is the reason."""


@dataclass(frozen=True)
class Target:
    """A program with LLVMFuzzerTestOneInput."""

    name: str
    build: Callable[[Path], Path]
    """Compiles it in a directory and returns it. Raises AbsentError."""
    seeds: Callable[[], Sequence[bytes]]
    words: Sequence[bytes] = ()
    edges: int = 60
    """A short run reaches more than this number."""
    longest: int = 1200
    """Bytes of the longest input."""


def _compile(work: Path, name: str, sources: Sequence[Path], options: Sequence[str | Path]) -> Path:
    """Compile and link C code; objects may be among the sources."""
    objects = [source for source in sources if source.suffix == ".o"]
    for number, source in enumerate(one for one in sources if one.suffix != ".o"):
        objects.append(work / f"{name}_{number}.o")
        _clang([*FLAGS, *SANITIZERS, *_CONFIG, *options, "-c", source, "-o", objects[-1]])
    program = work / name
    _clang([*SANITIZERS, *options, *objects, "-o", program])
    return program


def _clang(words: Sequence[str | Path]) -> None:
    if shutil.which("clang") is None:
        raise AbsentError("clang is not on the path")
    done = subprocess.run(["clang", *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0 and "libclang_rt.fuzzer" in done.stderr:
        raise AbsentError("clang has no libFuzzer (Debian: libclang-rt-dev)")
    if done.returncode != 0:
        raise RuntimeError(done.stderr)


def _stubs(work: Path) -> Path:
    """Return a directory with the headers of Zephyr that zephyr_stubs.h names."""
    for header in re.findall(r"/\* (zephyr/\S+\.h) \*/", (HERE / "zephyr_stubs.h").read_text()):
        path = work / "stubs" / header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('#include "zephyr_stubs.h"\n')
    return work / "stubs"


def _include(*folders: Path) -> list[str]:
    return [f"-I{folder}" for folder in (*folders, HERE, RUNTIME / "include", RUNTIME / "src")]


def _of_service(name: str) -> list[Path]:
    parts = ("errors", "service", f"service_{name}", "metadata")
    return [HERE / f"fuzz_{name}.c", HERE / "subject.c", *(RUNTIME / "src" / f"{part}.c" for part in parts)]


def build_shell(work: Path) -> Path:
    """Return the fuzzer of the shell's commands."""
    return _compile(work, "fuzz_shell", _of_service("shell"), _include(_stubs(work)))


def build_smp(work: Path) -> Path:
    """Return the fuzzer of the MCUmgr group."""
    base = os.environ.get("ZEPHYR_BASE") or str(Path.home() / "zephyrproject" / "zephyr")
    zephyr, zcbor = Path(base), Path(base).parent / "modules" / "lib" / "zcbor"
    bulk = zephyr / "subsys/mgmt/mcumgr/util"
    if not (zcbor / "src").is_dir() or not bulk.is_dir():
        raise AbsentError("no Zephyr with zcbor (ZEPHYR_BASE)")
    sources = [*_of_service("smp"), bulk / "src/zcbor_bulk.c"]
    sources += [zcbor / "src" / f"zcbor_{part}.c" for part in ("common", "decode", "encode")]
    options = ["-DZCBOR_CANONICAL=1", "-Wno-unused-parameter", "-Wno-pointer-sign", "-Wno-unused-but-set-variable"]
    options += _include(_stubs(work))
    return _compile(
        work, "fuzz_smp", sources, [*options, f"-isystem{zcbor / 'include'}", f"-isystem{bulk / 'include'}"]
    )


def build_call(work: Path) -> Path:
    """Return the fuzzer of calls by name, on a generated model."""
    source = work / "call_source"
    shutil.rmtree(source, ignore_errors=True)
    app = generate_quickly(copy_project("many_kinds", source), work / "call_app", vendored=False)
    model = app / "models" / "many_kinds"
    record = json.loads((app / ".opwest/lock.json").read_text())["record"]
    [build] = record["models"][0]["builds"]
    objects = []
    for number, name in enumerate(build["sources"]):  # the computation of operators is not under test
        target = work / f"operator_{number}.o"
        words = ["-std=gnu11", "-O1", "-g", "-fsanitize=address", "-include", model / build["rename"]]
        _clang([*words, f"-I{RUNTIME / 'include'}", "-c", model / name, "-o", target])
        objects.append(target)
    sources = [HERE / "fuzz_call.c", *(model / "src" / f"many_kinds_{part}.c" for part in ("metadata",))]
    sources += [model / "src/many_kinds_run.c", model / "constants.S"]
    sources += [RUNTIME / "src" / name for name in RUNTIME_SOURCES]
    options = [*_include(model / "include", model / "src"), f"-Wa,-I{model / 'constants'}"]
    stub = work / "externals.c"
    head = "uint32_t crc32_ieee(const uint8_t *data, unsigned long size)"
    stub.write_text(f"#include <stdint.h>\n{head};\n{head}\n{{\n\treturn data[0] + (uint32_t)size;\n}}\n")
    return _compile(work, "fuzz_call", [*sources, stub, *objects], options)


def build_packed(work: Path) -> Path:
    """Return the fuzzer of TVM's conventions, on a generated model with operators of the fuzzer."""
    source = work / "packed_source"
    shutil.rmtree(source, ignore_errors=True)
    app = generate_quickly(copy_project("conventions", source), work / "packed_app", vendored=False)
    model = app / "models" / "conventions"
    sources = [HERE / f"{part}.c" for part in _PACKED]
    sources += [model / f"src/conventions_{part}.c" for part in ("bridges", "metadata", "run", "tvm_crt")]
    sources += [model / "constants.S"]
    own = ("port_host.c", "port_tvm_host.c")  # the fuzzer contains these ports
    sources += [RUNTIME / "src" / name for name in RUNTIME_SOURCES if name not in own]
    options = [*_include(_stubs(work), model / "include", model / "src"), f"-Wa,-I{model / 'constants'}"]
    return _compile(work, "fuzz_packed", sources, options)


def build_ethos_u(work: Path) -> Path:
    """Return the fuzzer of the check of an Ethos-U's programs."""
    driver = RUNTIME / "drivers" / "ethos_u"
    return _compile(work, "fuzz_ethos_u", [HERE / "fuzz_ethos_u.c", driver / "ethos_u_payload.c"], _include(driver))


def _signer() -> Any:
    try:
        from bundle_files import Signer

        return Signer()
    except ImportError as reason:
        raise AbsentError(str(reason)) from None


def _vendored(work: Path, sources: Sequence[Path]) -> list[Path]:
    """Compile vendored code without UndefinedBehaviorSanitizer, which takes a minute for the curve."""
    objects = [work / f"{source.stem}.o" for source in sources]
    for source, target in zip(sources, objects, strict=True):
        _clang([*FLAGS, "-fsanitize=fuzzer-no-link,address", "-c", source, "-o", target])
    return objects


def _build_bundles(work: Path, name: str, parts: Sequence[str], vendored: Sequence[Path]) -> Path:
    bundle, programs = RUNTIME / "bundle", TESTS / "bundles" / "programs"
    sources = [bundle / "src" / f"{part}.c" for part in parts]
    sources += [RUNTIME / "src" / f"{part}.c" for part in ("compare", "metadata", "port_host", "port_sync_host")]
    sources += [HERE / f"{name}.c", programs / "simulated.c", *_vendored(work, vendored)]
    return _compile(work, name, sources, [*_include(work, bundle / "src", programs), "-pthread"])


def build_bundle(work: Path) -> Path:
    """Return the fuzzer of the reader of bundles and of installations, with the real signatures."""
    key = ", ".join(f"0x{byte:02x}" for byte in _signer().public)
    (work / "fuzz_bundle_key.h").write_text(f"#define FUZZ_BUNDLE_KEY {{{key}}}\n")
    own = {path.stem for path in (RUNTIME / "bundle/src").glob("*.c")} - {"signature_psa"}
    vendored = ("libsodium/opwest_sha512.c", "monocypher/opwest_monocypher.c")
    return _build_bundles(work, "fuzz_bundle", sorted(own), [RUNTIME / "bundle/ext" / name for name in vendored])


def build_bundle_image(work: Path) -> Path:
    """Return the fuzzer of the checks of images."""
    _signer()
    lines = [f"{{{', '.join(map(str, bundle))}}},\n" for bundle in _bundles(signed=False)]
    sizes = ", ".join(str(len(bundle)) for bundle in _bundles(signed=False))
    table = f"static const uint8_t fuzz_bundles[][SLOT_SIZE] = {{\n{''.join(lines)}}};\n"
    (work / "fuzz_bundle_images.h").write_text(f"{table}static const uint32_t fuzz_bundle_sizes[] = {{{sizes}}};\n")
    parts = ("format", "faults", "descriptor", "placement")
    return _build_bundles(work, "fuzz_bundle_image", parts, [])


def _bundles(*, signed: bool) -> Sequence[bytes]:
    from bundle_files import Signer, Variant, signed_part

    signer = Signer()
    found = []
    for variant in (Variant(), Variant(devices=2, state=True, steps=True, places=True), Variant(wrong=1, vectors=1)):
        part = signed_part(variant)
        found.append(signer.bundle(part) if signed else part)
    return found


def _bundle_seeds() -> Sequence[bytes]:
    found = list(_bundles(signed=True))
    return [*found, found[0][:300], found[0][:-80], found[0] + b"more"]


def _bundle_image_seeds() -> Sequence[bytes]:
    """Return no change, and changes of each kind at every pointer of the smallest image."""
    found = [bytes([number, 0]) for number in range(3)]
    for kind in range(6):
        found += [b"\1\1" + struct.pack("<HBBI", at, kind, 0, at // 2 + kind) for at in range(256, 1400, 24)]
    return found


def _shell_seeds() -> Sequence[bytes]:
    lines = "describe\nopen m\nwrite m a 0 00ff\nwrite m a 299 01\nrun m\nread m y 0\nread m a 44\nclose m\nrun m\n"
    return [lines.encode(), b"write m absent 0 00\nopen empty\nwrite m a 4294967295 zz\n", b"write m a 0 " + b"0" * 600]


def _cbor(value: Any) -> bytes:
    """Encode a map of short texts to numbers and bytes (RFC 8949)."""

    def head(kind: int, number: int) -> bytes:
        if number < 24:
            return bytes([kind << 5 | number])
        size = 1 if number < 1 << 8 else 2 if number < 1 << 16 else 4
        return bytes([kind << 5 | 24 + size.bit_length() - 1]) + number.to_bytes(size, "big")

    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(_cbor(key) + _cbor(inner) for key, inner in value.items())
    if isinstance(value, int):
        return head(0, value)
    return head(3, len(value)) + value.encode() if isinstance(value, str) else head(2, len(value)) + value


def _smp_seeds() -> Sequence[bytes]:
    opened = (7, {"model": 0, "do": 0})
    write, end = (5, {"model": 0, "tensor": 0, "off": 1, "data": b"1234"}), (7, {"model": 1, "do": 3})
    rounds: list[list[tuple[int, dict[str, Any]]]] = [
        [(0, {"model": 0}), (2, {"model": 0, "tensor": 0}), (2, {"model": 0, "tensor": 2})],
        [opened, write, (7, {"do": 1}), (4, {"tensor": 2, "off": 0})],
        [opened, (4, {"tensor": 0, "off": 4294967295}), (5, {"tensor": 65536, "data": b""}), end],
        [opened, (5, {"tensor": 0, "off": 299}), (5, {"tensor": 1, "data": b"x"}), (7, {"do": 2}), (4, {})],
    ]
    packed = [[(kind, _cbor(request)) for kind, request in requests] for requests in rounds]
    return [b"".join(bytes([kind, len(body)]) + body for kind, body in requests) for requests in packed]


def _call_seeds() -> Sequence[bytes]:
    found = [b"\0\x00" + bytes(64), b"\1\x05store" + bytes(40)]
    return [*found, b"\0\x0f" + bytes(range(60)), b"\x0e\x03\x02\xff\xff" * 8]


def _packed_seeds() -> Sequence[bytes]:
    by_name = [bytes([0, number]) + bytes(range(1, 90)) for number in range(18)]
    in_table = [bytes([5, number, how]) + bytes(range(40)) for number in range(18) for how in (0, 3, 13)]
    # Workspaces: one of 40 units, and one that is full, so that an allocation of 0 bytes fails too.
    memory = [
        b"\7" + b"\x01\x04\x28\x05\x00\x08\x05\x04\x09\x04\x03\x07" * 9,
        b"\7\x01\x03\x01\x05\x00\x08\x05\x00\x00",
    ]
    return [*by_name, *in_table, b"\2" + bytes(300), *memory]


def _ethos_u_seeds() -> Sequence[bytes]:
    """Return a sound payload for each NPU of the fuzzer, and parts of them: a configuration, NOPs, a stream."""
    configs = ((0x00000007, 0x10066001), (0x10000008, 0x10003000), (0x20000118, 0x20007000))
    commands = (0x4000, 0x1234, 0x11, 0x4001, 0xFFFF0000, 0xFFFF0000)
    found = []
    for number, config in enumerate(configs):
        words = (0x31504F43, 0x00100001, *config, 5, 5, 5, len(commands) << 16 | 2, *commands)
        found.append(bytes([number]) + struct.pack(f"<{len(words)}I", *words))
    return [*found, found[0][:20], found[1] + struct.pack("<2I", 5, 5), b"\0" + bytes(16)]


_WORDS_OF_PAYLOADS = [b"COP1", b"\1\0\x10\0", b"\0\0\xff\xff", b"\5\0\0\0"]
_KEYS = [_cbor(key) for key in ("model", "tensor", "off", "do", "data")]
TARGETS = (
    Target("shell", build_shell, _shell_seeds, [word.encode() for word in _WORDS]),
    Target("smp", build_smp, _smp_seeds, _KEYS),
    Target("call", build_call, _call_seeds, [b"store", b"copy_int8", b"start", b"add", b"finish", b"tick", b"on"]),
    Target("packed", build_packed, _packed_seeds),
    Target("ethos_u", build_ethos_u, _ethos_u_seeds, _WORDS_OF_PAYLOADS, edges=40),
    Target("bundle", build_bundle, _bundle_seeds, [b"OPWB", b"OPWS"], edges=300, longest=4096),
    Target("bundle_image", build_bundle_image, _bundle_image_seeds, edges=200),
)


def run(target: Target, work: Path, runs: int, seed: int = 1) -> dict[str, Any]:
    """Build a target and run it on `runs` inputs; failing inputs are stored."""
    row: dict[str, Any] = {"reader": f"device: {target.name}", "inputs": 0, "cpu_seconds": 0.0, "defects": []}
    work.mkdir(parents=True, exist_ok=True)
    try:
        program = target.build(work)
    except AbsentError as reason:
        return {**row, "skipped": str(reason)}
    corpus, crashes = work / f"corpus_{target.name}", work / f"crash_{target.name}_"
    corpus.mkdir(exist_ok=True)
    for number, content in enumerate(target.seeds()):
        (corpus / f"seed_{number}").write_bytes(content)
    words = work / f"{target.name}.dict"
    words.write_text("".join(f'"{"".join(f"{chr(92)}x{byte:02x}" for byte in word)}"\n' for word in target.words))
    command = [str(program), str(corpus), f"-runs={runs}", f"-seed={seed}", f"-max_len={target.longest}"]
    command += [f"-dict={words}"] if target.words else []  # an empty dictionary is an error
    command += ["-print_final_stats=1", f"-artifact_prefix={crashes}", "-timeout=20", "-rss_limit_mb=2048"]
    begin = time.monotonic()
    log = work / f"{target.name}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(errors="replace")
    counted = re.search(r"stat::number_of_executed_units:\s*(\d+)", text)
    row |= {"inputs": int(counted[1]) if counted else 0, "cpu_seconds": round(used.ru_utime + used.ru_stime, 1)}
    row["seconds"] = round(time.monotonic() - begin, 1)
    coverage = re.findall(r"cov: (\d+)", text)
    row["edges"] = int(coverage[-1]) if coverage else None
    for crash in sorted(work.glob(f"{crashes.name}*")):
        kept = f"device/{target.name}_{crash.name[-12:]}"
        store(kept, crash.read_bytes())
        crash.unlink()
        summary = re.search(r"SUMMARY: .*", text)
        row["defects"].append({"key": summary[0] if summary else f"status {status}", "file": kept, "trace": ""})
    if process.returncode != 0 and not row["defects"]:
        row["defects"].append({"key": f"the program failed: {text[-800:]}", "file": "", "trace": ""})
    return row


def main() -> int:
    """Run the targets; print one row for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--target", action="append", default=[], choices=[target.name for target in TARGETS])
    options.add_argument("--runs", type=int, default=RUNS, metavar="N", help="inputs for each (default: %(default)s)")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options.add_argument("--work", type=Path, default=TESTS.parent / "build" / "fuzz" / "device", metavar="DIR")
    options.add_argument("--json", type=Path, metavar="FILE", help="write the rows to FILE as well")
    given = options.parse_args()
    chosen = [target for target in TARGETS if target.name in (given.target or [t.name for t in TARGETS])]
    print("| target | inputs | CPU s | edges | defects |\n|---|---:|---:|---:|---:|", flush=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(lambda target: run(target, given.work, given.runs, given.seed), chosen))
    for row in rows:
        shown = (
            row.get("skipped") or f"{row['inputs']:,} | {row['cpu_seconds']:,} | {row['edges']} | {len(row['defects'])}"
        )
        print(f"| {row['reader']} | {shown} |")
        for defect in row["defects"]:
            print(f"\n{defect['key']}\n  stored in {defect['file']}")
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(rows, indent=2) + "\n")
    return int(any(row["defects"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
