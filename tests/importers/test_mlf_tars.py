# SPDX-License-Identifier: Apache-2.0
"""Invalid and malicious archives and directories: error messages, no output."""

import gzip
import io
import json
import os
import random
import struct
import tarfile
import time

import mlf_made as made
import pytest
from opwest.diagnostics import OpwestError
from opwest.importers.mlf import Options, import_mlf
from opwest.importers.mlf.draft import TensorOption
from opwest.importers.mlf.limits import MEMBER_BYTES


def refused(tmp_path, content, **options):
    """Import a tar; check that no files were written; return the message."""
    tar = tmp_path / "in.tar"
    tar.write_bytes(content)
    return refused_path(tmp_path, tar, **options)


def refused_path(tmp_path, path, **options):
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OpwestError) as found:
        import_mlf(path, tmp_path / "out", Options("mine", **options))
    assert sorted(tmp_path.rglob("*")) == before
    return str(found.value)


def changed(files, name, old, new):
    content = files[name]
    assert old in content
    return {**files, name: content.replace(old, new)}


def evil(change, files=None):
    """Return a tar with one more member."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        one = tarfile.TarInfo("./codegen/host/src/more.c")
        change(one)
        archive.addfile(one)
        for name, content in (files or made.usmp()).items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def of_kind(kind):
    def change(one):
        one.type, one.linkname = kind, "/etc/passwd"

    return change


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.SYMTYPE, "is a symbolic link"),
        (tarfile.LNKTYPE, "is a hard link"),
        (tarfile.CHRTYPE, "is a character device"),
        (tarfile.BLKTYPE, "is a block device"),
        (tarfile.FIFOTYPE, "is a FIFO"),
        (tarfile.GNUTYPE_SPARSE, "is of the unknown kind b'S'"),
    ],
)
def test_other_kinds_than_files(kind, words, tmp_path):
    message = refused(tmp_path, evil(of_kind(kind)))
    assert f"'codegen/host/src/more.c' {words}" in message
    assert "expected: only files and directories" in message


@pytest.mark.parametrize("name", ["../out/x", "/tmp/x", "codegen/../../x", "a\\b"])
def test_names_outside_the_directory(name, tmp_path):
    message = refused(tmp_path, evil(lambda one: setattr(one, "name", name)))
    assert "is invalid or outside the archive's directory" in message


def test_long_names_are_checked_too(tmp_path):
    name = "codegen/" + "x" * 200 + "/../../../../evil"
    assert "is invalid or outside the archive's directory" in refused(
        tmp_path, evil(lambda one: setattr(one, "name", name))
    )


def test_duplicate_names_and_files_used_as_directories(tmp_path):
    message = refused(tmp_path, evil(lambda one: setattr(one, "name", "./metadata.json")))
    assert "duplicate member 'metadata.json'" in message
    message = refused(tmp_path, evil(lambda one: setattr(one, "name", "codegen/host")))
    assert "'codegen/host' is both a file and a directory" in message


def test_truncated_archives(tmp_path):
    whole = made.tar_of(made.usmp())
    assert "truncated archive: member of" in refused(tmp_path, whole[:1100])
    assert "missing end mark" in refused(tmp_path, whole.rstrip(b"\0")[: 1024 * 3])
    assert "not a tar: the file is too short" in refused(tmp_path, whole[:100])
    assert "not a tar: the file is too short" in refused(tmp_path, b"")
    assert "the archive is empty" in refused(tmp_path, bytes(10240))


def test_damaged_headers(tmp_path):
    whole = bytearray(made.tar_of(made.usmp()))
    whole[512 + 3] ^= 1
    message = refused(tmp_path, bytes(whole))
    assert "damaged member: wrong checksum of the header (at byte 512)" in message
    assert "no file of the archive was imported" in message
    assert "not a tar: no header at the start" in refused(tmp_path, b"x" * 2048)


def test_compressed_archives(tmp_path):
    message = refused(tmp_path, gzip.compress(made.tar_of(made.usmp())))
    assert "the file is compressed with gzip" in message and "an uncompressed tar" in message


def test_excessive_sizes_allocate_no_memory(tmp_path):
    """A sparse file of gigabytes is rejected by its headers and not read."""
    path = tmp_path / "bomb.tar"
    one = tarfile.TarInfo("./codegen/host/src/default_lib0.c")
    one.size = MEMBER_BYTES + 1
    path.write_bytes(one.tobuf())
    os.truncate(path, 3 << 30)
    start = time.process_time()
    message = refused_path(tmp_path, path)
    assert f"has {MEMBER_BYTES + 1} bytes" in message
    assert time.process_time() - start < 2


def test_many_members(tmp_path):
    block = tarfile.TarInfo("./runtime/x").tobuf()
    assert "duplicate member" in refused(tmp_path, block * 100)
    names = b"".join(tarfile.TarInfo(f"./runtime/{n}").tobuf() for n in range(20_001))
    assert "the archive has too many members" in refused(tmp_path, names + bytes(1024))


def test_pax_headers(tmp_path):
    def header(content):
        one = tarfile.TarInfo("x")
        one.type, one.size = tarfile.XHDTYPE, len(content)
        return one.tobuf() + content + bytes(-len(content) % 512)

    assert "invalid pax header" in refused(tmp_path, header(b"9 path=x") + bytes(1024))
    assert "unsupported sparse file" in refused(tmp_path, header(b"22 GNU.sparse.major=1\n") + bytes(1024))
    assert "size is not a number" in refused(
        tmp_path, header(b"11 size=-5\n") + tarfile.TarInfo("y").tobuf() + bytes(1024)
    )
    assert "a header has 65537 bytes" in refused(tmp_path, header(bytes(65537)))


def test_directories_with_links(tmp_path):
    folder = made.unpack(made.usmp(), tmp_path / "model")
    (folder / "codegen/host/src/more.c").symlink_to("/etc/passwd")
    assert "'codegen/host/src/more.c' is a symbolic link" in refused_path(tmp_path, folder)


def test_no_model_at_all(tmp_path):
    message = refused(tmp_path, made.tar_of({"readme.md": b"hello"}))
    assert "no model in Model Library Format" in message
    (tmp_path / "empty").mkdir()
    assert "no model in Model Library Format" in refused_path(tmp_path, tmp_path / "empty")
    assert "cannot read the file" in refused_path(tmp_path, tmp_path / "absent.tar")


@pytest.mark.parametrize("version", [4, 8, "7", None, True])
def test_unknown_versions(version, tmp_path):
    whole = {**json.loads(made.metadata(7)), "version": version}
    message = refused(tmp_path, made.tar_of({**made.usmp(), "metadata.json": json.dumps(whole).encode()}))
    assert f"Model Library Format version {version!r}" in message
    assert "expected: version 5, 6 or 7 (TVM 0.8 to 0.18)" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "not JSON: "),
        (b"[]", "the JSON is []"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"version": 7, "modules": {}}', "no module in metadata.json"),
        (b'{"version": 7, "modules": {"default": {"style": "operator"}}}', "single operators without a model"),
        (b'{"version": 7, "modules": {"default": 3}}', "module 'default' is 3"),
    ],
)
def test_invalid_metadata(content, words, tmp_path):
    assert words in refused(tmp_path, made.tar_of({**made.usmp(), "metadata.json": content}))


def test_several_modules(tmp_path):
    whole = json.loads(made.metadata(7))
    whole["modules"]["other"] = whole["modules"]["default"]
    files = {**made.usmp(), "metadata.json": json.dumps(whole).encode()}
    message = refused(tmp_path, made.tar_of(files))
    assert "the archive contains 2 modules: default, other" in message and "choose one with --module" in message
    assert "unknown module 'othr'" in refused(tmp_path, made.tar_of(files), module="othr")
    import_mlf(tmp_path / "in.tar", tmp_path / "out", Options("mine", module="default"))


def test_wrong_sizes(tmp_path):
    files = changed(made.usmp(), "metadata.json", b'"size": 16', b'"size": 20')
    message = refused(tmp_path, made.tar_of(files))
    assert "input 'x' has the shape [1, 4] of float32, 16 bytes" in message and "20 bytes" in message
    files = changed(made.usmp(), "metadata.json", b'"dtype": "float32"', b'"dtype": "int8"')
    assert "float32 in the definition of main, int8 in metadata.json" in refused(tmp_path, made.tar_of(files))


def test_missing_information_of_the_directory_is_requested(tmp_path):
    files = made.tar_of(made.usmp(bare=True))
    message = refused(tmp_path, files)
    assert "the directory does not record the shape of input 'x' (float32)" in message
    assert "specify it, for example --tensor x=1,10" in message
    required = {"x": TensorOption(None, (1, 4)), "y": TensorOption(None, (2,)), "z": TensorOption(None, (2,))}
    assert "unknown input or output 'z' in --tensor" in refused(tmp_path, files, tensors=required)


def test_constants_of_a_wrong_size(tmp_path):
    name = "codegen/host/src/default_lib0.c"
    files = changed(made.usmp(), name, b"float b1_let[3]", b"float b1_let[2]")
    assert "array of 2 float32 with 3 valid values" in refused(tmp_path, made.tar_of(files))
    files = changed(made.usmp(), name, b"float b1_let[3]", b"float b1_let[999999999]")
    assert "the constants have more than" in refused(tmp_path, made.tar_of(files))
    files = changed(made.usmp(), name, b".b1_let", b".b3_let")
    assert "constant 'b1_let' has no values" in refused(tmp_path, made.tar_of(files))


def test_parameters(tmp_path):
    name = "parameters/default.params"
    good = made.graph()[name]
    cases = {
        good[:-1]: "the parameter file is truncated in parameter 'p0'",
        good + b"x": "1 bytes after the last array",
        b"x" + good[1:]: "wrong magic number",
        good[:16] + struct.pack("<Q", 1 << 60) + good[24:]: f"{1 << 60} names",
        good.replace(struct.pack("<qq", 4, 3), struct.pack("<qq", 4, 4)): "has the shape [4, 4] and 48 bytes",
        good.replace(struct.pack("<BBH", 2, 32, 1), struct.pack("<BBH", 4, 32, 1)): "has the type code 4, 32 bits",
    }
    for content, words in cases.items():
        assert words in refused(tmp_path, made.tar_of({**made.graph(), name: content}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g: g["nodes"][3]["inputs"].append([6, 0, 0]), "is read before it is computed"),
        (
            lambda g: g["nodes"][3]["attrs"].update(func_name="nobody"),
            "undefined function 'nobody' called by the graph",
        ),
        (lambda g: g["attrs"]["device_index"][1].__setitem__(0, 2), "unsupported TVM device 2 of a node"),
        (lambda g: g["attrs"]["shape"][1][3].append(7), "changes the size of the reshaped tensor"),
        (lambda g: g["attrs"]["dltype"][1].__setitem__(0, "handle"), "unknown element type 'handle'"),
        (lambda g: g["attrs"]["dltype"][1].__setitem__(0, ["x"]), "unknown element type \"['x']\""),
        (lambda g: g["heads"].__setitem__(0, [0, 0, 0]), "result 0 of the graph is not written by a step"),
        (lambda g: g["heads"].__setitem__(0, [99, 0, 0]), "the graph refers to node 99"),
        (lambda g: g.pop("heads"), "missing list 'heads' in the graph"),
        (lambda g: g["attrs"]["shape"][1][2].__setitem__(0, 5), "parameter 'p0' is float32 [4, 3]"),
    ],
)
def test_graphs(change, words, tmp_path):
    name = "executor-config/graph/default.graph"
    graph = json.loads(made.graph()[name])
    change(graph)
    assert words in refused(tmp_path, made.tar_of({**made.graph(), name: json.dumps(graph).encode()}))


def test_unsupported_code(tmp_path):
    files = {**made.usmp(), "codegen/host/src/default_lib9.cc": b"int x;"}
    assert "is C++" in refused(tmp_path, made.tar_of(files))
    files = {**made.usmp(), "codegen/host/lib/default_lib9.o": b"\x7fELF garbage"}
    assert "default_lib9.o: error:" in refused(tmp_path, made.tar_of(files)).replace(")", "")
    files = {**made.usmp(), "codegen/host/src/a, b: c.c": b"int x;"}
    assert "invalid file name" in refused(tmp_path, made.tar_of(files))
    files = changed(made.workspace(), "codegen/host/src/default_lib1.c", b"(uint64_t)12, 0, 8", b"(uint64_t)n, 0, 8")
    assert "allocates a workspace of 'n' bytes" in refused(tmp_path, made.tar_of(files))


def test_text_without_end_is_read_in_time(tmp_path):
    """Backtracking patterns would take hours on these."""
    name = "codegen/host/src/default_lib0.c"
    rng = random.Random(1)
    parts = [
        b"static struct a {",
        b"static uint8_t x[",
        b"return f(",
        b"((((",
        b"TVM_DLL int32_t f(",
        b"/*",
        b'#include "',
        b"a =",
    ]
    start = time.process_time()
    for part in parts:
        files = made.usmp()
        files[name] = files[name] + b"\n" + part * (200_000 // len(part)) + bytes([rng.randrange(32, 127)])
        tar = tmp_path / "in.tar"
        tar.write_bytes(made.tar_of(files))
        try:
            import_mlf(tar, tmp_path / f"out{len(part)}", Options("mine"))
        except OpwestError as error:
            assert error.diagnostics
    assert time.process_time() - start < 30


def test_nonempty_directory_is_unchanged(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    assert "the directory is not empty" in refused(tmp_path, made.tar_of(made.usmp()))
