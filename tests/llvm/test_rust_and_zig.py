# SPDX-License-Identifier: Apache-2.0
"""Drafts of objects and IR of Zig and rustc, and their comparison with the manifest."""

import os
import subprocess
import sys

import yaml
from opwest.cli.main import main
from opwest.objects.elf import parse_elf
from opwest.objects.facts import ObjectFile
from opwest.objects.inspect import inspect_object
from requirements_support import need, need_x86_64

ZIG = """
fn clamp(x: i32) i8 { return @intCast(@min(@max(x, -128), 127)); }
export fn zig_scale(in: [*]const i8, out: [*]i8, count: i32, factor: f32) i32 {
    if (count < 0) return -22;
    for (0..@as(usize, @intCast(count))) |i| {
        out[i] = clamp(@intFromFloat(@as(f32, @floatFromInt(in[i])) * factor));
    }
    return 0;
}
"""
RUST = """#![no_std]
#[panic_handler] fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }
mod inner { #[inline(never)] pub fn clamp(v: f32) -> i8 { v as i8 } }
#[no_mangle]
pub unsafe extern "C" fn rust_scale(input: *const i8, out: *mut i8, count: i32, factor: f32) -> i32 {
    if count < 0 { return -22; }
    for i in 0..count as usize { *out.add(i) = inner::clamp(*input.add(i) as f32 * factor); }
    0
}
#[no_mangle]
pub unsafe extern "C" fn rust_scale_two(input: *const i8, out: *mut i8, count: i32, factor: f32) -> i32 {
    if count < 0 { return -22; }
    for i in 0..count as usize { *out.add(i) = inner::clamp(*input.add(i) as f32 * factor); }
    0
}
"""
ARGS = "{args: [{name: a, dtype: int8, shape: [8]}, {name: b, dtype: int8, shape: [8], direction: out}, "
ARGS += "{name: n, dtype: int32, scalar: true}, {name: f, dtype: float32, scalar: true}]}"
RUN = "run: {inputs: {x: {dtype: int8, shape: [8]}}, outputs: {y: {dtype: int8, shape: [8]}}, "
RUN += "steps: [{call: zig_scale, args: [x, y, 8, 2]}]}"


def run(folder, *command):
    caches = {f"ZIG_{kind}_CACHE_DIR": str(folder.parent / "zig-cache") for kind in ("GLOBAL", "LOCAL")}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=os.environ | caches)
    assert done.returncode == 0, done.stderr


def zig(folder, output, *flags):
    (folder / "scale.zig").write_text(ZIG)
    run(folder, sys.executable, "-m", "ziglang", "build-obj", "scale.zig", f"-femit-bin={output}", *flags)


def rust(folder, output, *flags):
    (folder / "scale.rs").write_text(RUST)
    run(folder, "rustc", "-C", "panic=abort", "scale.rs", "-o", output, *flags)


def check(manifest, text, capsys):
    manifest.write_text(text)
    main(["check", str(manifest)])
    return capsys.readouterr().err


def test_drafts_of_rust_and_zig(tmp_path, capsys):
    """Drafts list the exported functions, with types from debug information and constness from names of types."""
    need_x86_64()
    need("rustc", "ziglang", "llvmlite")
    rust(tmp_path, "librs.a", "--crate-type=staticlib", "-g")
    zig(tmp_path, "zig.o", "-target", "thumb-freestanding-eabi", "-mcpu", "cortex_m3", "-O", "Debug")
    flags = ["-target", "thumb-freestanding-eabi", "-mcpu", "cortex_m3", "-O", "ReleaseSafe", "-fno-emit-bin"]
    zig(tmp_path, "no.o", *flags, "-femit-llvm-ir=zig.ll")
    for file, operators in (
        ("librs.a", {"rust_scale", "rust_scale_two"}),
        ("zig.o", {"zig_scale"}),
        ("zig.ll", {"zig_scale"}),
    ):
        made = tmp_path / "manifest.yaml"
        made.unlink(missing_ok=True)
        assert main(["init", str(tmp_path / file), "-o", str(made)]) == 0
        found = yaml.safe_load(made.read_text())["operators"]
        assert found.keys() == operators, file
        for one in found.values():
            assert [(a["dtype"], a.get("direction", "in")) for a in one["args"]] == [
                ("int8", "in"), ("int8", "out"), ("int32", "in"), ("float32", "in"),
            ]  # fmt: skip
    capsys.readouterr()
    # The manifest is compared with debug information, and with IR without it.
    rust(tmp_path, "rs.ll", "--crate-type=lib", "-O", "--emit=llvm-ir")
    wrong = ARGS.replace("name: f, dtype: float32", "name: f, dtype: int32")
    objects = "[{target: cortex-m3, files: [zig.o]}, {targets: [cortex-m3], files: [rs.ll]}]"
    text = (
        f"{{version: 1, model: z, objects: {objects}, operators: {{zig_scale: {wrong}, rust_scale: {wrong}}}, {RUN}}}"
    )
    seen = check(tmp_path / "z.yaml", text, capsys)
    assert "argument 4 'f' is int32 (int32_t), the function takes f32" in seen
    assert "function 'rust_scale' takes a float of 32 bits for 'f'" in seen
    # On bare metal, objects of every mode are accepted; Debug is the one above.
    for mode in ("ReleaseSafe", "ReleaseFast", "ReleaseSmall"):
        zig(tmp_path, "mode.o", "-target", "thumb-freestanding-eabi", "-mcpu", "cortex_m3", "-O", mode, "-fno-strip")
        assert main(["inspect", str(tmp_path / "mode.o")]) == 0
        assert "exportable    yes" in capsys.readouterr().out, mode
    # Unwind tables of Arm refer to libgcc.
    assert main(["inspect", str(tmp_path / "zig.o")]) == 0
    printed = capsys.readouterr().out
    assert "__aeabi_unwind_cpp_pr0  libgcc" in printed and "exportable    yes" in printed
    objects = "[{target: cortex-m3, files: [zig.o]}]"
    text = f"{{version: 1, model: z, objects: {objects}, operators: {{zig_scale: {ARGS}}}, {RUN}}}"
    assert not check(tmp_path / "z.yaml", text, capsys)
    assert main(["generate", str(tmp_path / "z.yaml"), "-o", str(tmp_path / "app")]) == 0
    (emitted,) = (tmp_path / "app").rglob("zig.o")
    made = inspect_object(emitted)
    assert isinstance(made, ObjectFile)
    # Nothing in the model unwinds: the unwinder is not linked.
    assert "__aeabi_unwind_cpp_pr0" in made.members[0].undefined_weak
    assert not {".ARM.exidx", ".note.GNU-stack"} & {s.name for s in parse_elf(emitted.read_bytes()).sections}
