# SPDX-License-Identifier: Apache-2.0
"""The child process: a crash is an ordinary error, and no other module needs llvmlite."""

import random
import subprocess
import sys
import time

import pytest
from campaign import sized
from llvm_support import ADD, EVERYTHING, bitcode, needs_llvmlite, target
from opwest.objects.llvm import child
from opwest.objects.llvm.api import compile_many, read_many
from opwest.objects.llvm.child import useful_line
from opwest.objects.llvm.facts import CompileJob, IrModule, LlvmError

# LLVM has no instruction for this: `Cannot select`, and abort.
ABORTS = target("cortex-m55f-mvei", name="odd", features="-vfp2sp,-mve.fp", triple="thumbv8.1m.main-unknown-none-eabi",
                float_abi="softfp")  # fmt: skip
DOUBLES = b"define double @f(double %a) { %b = fmul double %a, %a ret double %b }"


def job(ir=ADD, name="cortex-m3", optimize="size"):
    return CompileJob(ir.encode(), target(name), optimize, "op.ll")


@needs_llvmlite
def test_aborted_job_is_an_error_and_others_are_completed():
    results = compile_many([job(), CompileJob(DOUBLES, ABORTS, name="double.ll"), job(), job(name="rv32imac")])
    assert [type(r) for r in results] == [bytes, LlvmError, bytes, bytes]
    fault = results[1]
    assert fault.message.startswith(
        "LLVM ended with SIGABRT while compiling double.ll for odd: LLVM ERROR: Cannot select"
    )
    assert "compile the operators again" in fault.hint
    assert results[0] == results[2]


@needs_llvmlite
def test_too_little_memory(monkeypatch):
    monkeypatch.setattr(child, "MEMORY", 1 << 30)
    big = (
        "@a = constant [{0} x i8] zeroinitializer\n"
        "@b = constant {{ i8, [{0} x i8] }} {{ i8 1, [{0} x i8] zeroinitializer }}\n"
    )
    fault, small = compile_many([job(big.format(700_000_000)), job()])
    assert isinstance(fault, LlvmError) and isinstance(small, bytes)
    assert "memory" in fault.message or "SIGABRT" in fault.message or "bad_alloc" in fault.message


def slow():
    """A function that takes LLVM far longer than a second: 30,000 dependent steps in one block."""
    steps = "".join(f"  %a{i} = call i32 @g(i32 %a{i - 1}, i32 %a{i // 2})\n" for i in range(1, 60_000))
    return f"declare i32 @g(i32, i32)\ndefine i32 @f(i32 %a0) {{\n{steps}  ret i32 %a59999\n}}\n"


@needs_llvmlite
def test_timeout(monkeypatch):
    monkeypatch.setattr(child, "SECONDS", 1.0)
    started = time.monotonic()
    fault, small = compile_many([job(slow(), optimize="speed"), job()])
    assert isinstance(fault, LlvmError) and isinstance(small, bytes)
    assert "LLVM took more than 1 s compiling op.ll" in fault.message
    assert time.monotonic() - started < 10


@needs_llvmlite
def test_limits_are_set_in_the_child():
    script = (
        "import resource, sys; sys.argv=['x'];"
        "from opwest.base.processes import limit_process, limit_next_request;"
        "limit_process(1 << 32); limit_next_request(7);"
        "print([resource.getrlimit(k)[0] for k in (resource.RLIMIT_AS, resource.RLIMIT_CORE)],"
        "resource.getrlimit(resource.RLIMIT_CPU)[0])"
    )
    output = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert output == "[4294967296, 0] 8\n"


def mutants(content, count, seed):
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        data = bytearray(content)
        for _ in range(chance.choice((1, 1, 1, 2, 8))):
            # Not the magic number, which would be another error.
            bit = chance.randrange(32, len(data) * 8)
            data[bit // 8] ^= 1 << bit % 8
        found.append(bytes(data))
    return found


@pytest.mark.slow
@needs_llvmlite
def test_damaged_bitcode_is_rejected_or_read(monkeypatch):
    monkeypatch.setattr(child, "SECONDS", 10.0)
    started = time.monotonic()
    damaged = mutants(bitcode(EVERYTHING), sized(100, 300), 1)
    results = compile_many([CompileJob(one, target("cortex-m3"), name="op.bc") for one in damaged])
    assert len(results) == len(damaged)
    assert all(isinstance(r, bytes | LlvmError) for r in results)
    faults = [r.message for r in results if isinstance(r, LlvmError)]
    assert faults and all(f and f.isprintable() and len(f) <= 501 for f in faults)
    assert time.monotonic() - started < 60


@needs_llvmlite
def test_damaged_bitcode_is_read_or_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(child, "SECONDS", 10.0)
    paths = []
    for index, one in enumerate(mutants(bitcode(EVERYTHING), 100, 2)):
        paths.append(tmp_path / f"{index}.bc")
        paths[-1].write_bytes(one)
    assert all(isinstance(r, IrModule | LlvmError) for r in read_many(paths))


@needs_llvmlite
def test_many_jobs_share_one_process(monkeypatch):
    started = time.monotonic()
    start, starts = subprocess.Popen, []

    def counted(*arguments, **options):
        starts.append(arguments)
        return start(*arguments, **options)

    monkeypatch.setattr("opwest.objects.llvm.child.subprocess.Popen", counted)
    results = compile_many([job()] * 50)
    assert all(r == results[0] for r in results) and isinstance(results[0], bytes)
    assert len(starts) == 1
    assert time.monotonic() - started < 5


def test_useful_lines_of_error_output():
    assert useful_line("") == ""
    assert useful_line("a\nLLVM ERROR: no\nnoise\n") == "LLVM ERROR: no"
    assert useful_line("python: /build/x/y.cpp:3: void f(): Assertion `a' failed.\n") == "Assertion `a' failed."
    assert useful_line("first\nlast\n") == "last"


def test_importing_the_interface_does_not_import_llvmlite():
    script = "import sys, opwest.objects.llvm.api; print('llvmlite' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout == "False\n"
    )


@needs_llvmlite
def test_module_in_the_working_directory_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "llvmlite.py").write_text("raise SystemExit('taken over')\n")
    (tmp_path / "json.py").write_text("raise SystemExit('taken over')\n")
    monkeypatch.chdir(tmp_path)
    (result,) = compile_many([job()])
    assert isinstance(result, bytes)
