# SPDX-License-Identifier: Apache-2.0
"""Invalid and malicious archives and directories: error messages, no output."""

import gzip
import json
import os
import struct
import tarfile
import time

import mlf_made as made
import pytest
from opwest.base.diagnostics import OpwestError
from opwest.frontends.mlf import Options, import_mlf
from opwest.frontends.mlf.draft import TensorOption
from opwest.frontends.mlf.library import MEMBER_BYTES

USMP = made.usmp()
TAR = made.tar_of(USMP)
LIB0 = "codegen/host/src/default_lib0.c"
LIB1 = "codegen/host/src/default_lib1.c"
GRAPH = "executor-config/graph/default.graph"
PARAMS = "parameters/default.params"
GOOD_PARAMS = made.graph()[PARAMS]


def refused(tmp_path, content, **options):
    """Import a tar, or the tar of files; return the message."""
    tar = tmp_path / "in.tar"
    tar.write_bytes(made.tar_of(content) if isinstance(content, dict) else content)
    return refused_path(tmp_path, tar, **options)


def refused_path(tmp_path, path, **options):
    """Import a path; check that no files were written; return the message."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OpwestError) as found:
        import_mlf(path, tmp_path / "out", Options("mine", **options))
    assert sorted(tmp_path.rglob("*")) == before
    return str(found.value)


def member(**attributes):
    """Return a tar with one more member."""
    one = tarfile.TarInfo("./codegen/host/src/more.c")
    one.linkname = "/etc/passwd"
    for name, value in attributes.items():
        setattr(one, name, value)
    return one.tobuf() + TAR


def pax(content, after=b""):
    """Return a tar that begins with a pax header."""
    one = tarfile.TarInfo("x")
    one.type, one.size = tarfile.XHDTYPE, len(content)
    return one.tobuf() + content + bytes(-len(content) % 512) + after + bytes(1024)


KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a character device",
    tarfile.BLKTYPE: "a block device",
    tarfile.FIFOTYPE: "a FIFO",
    tarfile.GNUTYPE_SPARSE: "of the unknown kind b'S'",
}
OUTSIDE = ("../out/x", "/tmp/x", "codegen/../../x", "a\\b", "codegen/" + "x" * 200 + "/../../../../evil")
TARS = [
    *(
        (member(type=kind), f"'codegen/host/src/more.c' is {words}", "expected: only files and directories")
        for kind, words in KINDS.items()
    ),
    *((member(name=name), "is invalid or outside the archive's directory") for name in OUTSIDE),
    (member(name="./metadata.json"), "duplicate member 'metadata.json'"),
    (member(name="codegen/host"), "'codegen/host' is both a file and a directory"),
    (TAR[:1100], "truncated archive: member of"),
    (TAR.rstrip(b"\0")[: 1024 * 3], "missing end mark"),
    (TAR[:100], "not a tar: the file is too short"),
    (b"", "not a tar: the file is too short"),
    (bytes(10240), "the archive is empty"),
    (
        TAR[:515] + bytes([TAR[515] ^ 1]) + TAR[516:],
        "damaged member: wrong checksum of the header (at byte 512)",
        "no file of the archive was imported",
    ),
    (b"x" * 2048, "not a tar: no header at the start"),
    (gzip.compress(TAR), "the file is compressed with gzip", "an uncompressed tar"),
    (tarfile.TarInfo("./runtime/x").tobuf() * 100, "duplicate member"),
    (
        b"".join(tarfile.TarInfo(f"./runtime/{n}").tobuf() for n in range(20_001)) + bytes(1024),
        "the archive has too many members",
    ),
    (pax(b"9 path=x"), "invalid pax header"),
    (pax(b"ab path=x\n"), "invalid pax header"),
    (pax(b"22 GNU.sparse.major=1\n"), "unsupported sparse file"),
    (pax(b"11 size=-5\n", tarfile.TarInfo("y").tobuf()), "size is not a number"),
    (pax(bytes(65537)), "a header has 65537 bytes"),
    ({"readme.md": b"hello"}, "no model in Model Library Format"),
]


def changed(files, name, old, new):
    assert old in files[name]
    return {**files, name: files[name].replace(old, new)}


def version(number):
    content = json.dumps({**json.loads(USMP["metadata.json"]), "version": number}).encode()
    words = f"Model Library Format version {number!r}"
    return {**USMP, "metadata.json": content}, words, "expected: version 5, 6 or 7 (TVM 0.8 to 0.18)"


def metadata(content, words):
    return {**USMP, "metadata.json": content}, words


def params(content, words):
    return {**made.graph(), PARAMS: content}, words


def graph(change, words):
    content = json.loads(made.graph()[GRAPH])
    change(content)
    return {**made.graph(), GRAPH: json.dumps(content).encode()}, words


FILES = [
    *(version(number) for number in (4, 8, "7", None, True)),
    metadata(b"{", "not JSON: "),
    metadata(b"[]", "the JSON is []"),
    metadata(b"[" * 100_000, "nested too deeply"),
    metadata(b'{"version": 7, "modules": {}}', "no module in metadata.json"),
    metadata(b'{"version": 7, "modules": {"default": {"style": "operator"}}}', "single operators without a model"),
    metadata(b'{"version": 7, "modules": {"default": 3}}', "module 'default' is 3"),
    (
        changed(USMP, "metadata.json", b'"size": 16', b'"size": 20'),
        *("input 'x' has the shape [1, 4] of float32, 16 bytes", "20 bytes"),
    ),
    (
        changed(USMP, "metadata.json", b'"dtype": "float32"', b'"dtype": "int8"'),
        "float32 in the definition of main, int8 in metadata.json",
    ),
    (changed(USMP, LIB0, b"float b1_let[3]", b"float b1_let[2]"), "array of 2 float32 with 3 valid values"),
    (changed(USMP, LIB0, b"float b1_let[3]", b"float b1_let[999999999]"), "the constants have more than"),
    (changed(USMP, LIB0, b".b1_let", b".b3_let"), "constant 'b1_let' has no values"),
    params(GOOD_PARAMS[:-1], "the parameter file is truncated in parameter 'p0'"),
    params(GOOD_PARAMS + b"x", "1 byte after the last array"),
    params(b"x" + GOOD_PARAMS[1:], "wrong magic number"),
    params(GOOD_PARAMS[:16] + struct.pack("<Q", 1 << 60) + GOOD_PARAMS[24:], f"{1 << 60} names"),
    params(
        GOOD_PARAMS.replace(struct.pack("<qq", 4, 3), struct.pack("<qq", 4, 4)), "has the shape [4, 4] and 48 bytes"
    ),
    params(
        GOOD_PARAMS.replace(struct.pack("<BBH", 2, 32, 1), struct.pack("<BBH", 4, 32, 1)),
        "has the type code 4, 32 bits",
    ),
    graph(lambda g: g["nodes"][3]["inputs"].append([6, 0, 0]), "is read before it is computed"),
    graph(
        lambda g: g["nodes"][3]["attrs"].update(func_name="nobody"), "undefined function 'nobody' called by the graph"
    ),
    graph(lambda g: g["attrs"]["device_index"][1].__setitem__(0, 2), "unsupported TVM device 2 of a node"),
    graph(lambda g: g["attrs"]["shape"][1][3].append(7), "changes the size of the reshaped tensor"),
    graph(lambda g: g["attrs"]["dltype"][1].__setitem__(0, "handle"), "unknown element type 'handle'"),
    graph(lambda g: g["attrs"]["dltype"][1].__setitem__(0, ["x"]), "unknown element type \"['x']\""),
    graph(lambda g: g["heads"].__setitem__(0, [0, 0, 0]), "result 0 of the graph is not written by a step"),
    graph(lambda g: g["heads"].__setitem__(0, [99, 0, 0]), "the graph refers to node 99"),
    graph(lambda g: g.pop("heads"), "missing list 'heads' in the graph"),
    graph(lambda g: g["attrs"]["shape"][1][2].__setitem__(0, 5), "parameter 'p0' is float32 [4, 3]"),
    ({**USMP, "codegen/host/src/default_lib9.cc": b"int x;"}, "is C++"),
    ({**USMP, "codegen/host/lib/default_lib9.o": b"\x7fELF garbage"}, "default_lib9.o): error:"),
    ({**USMP, "codegen/host/src/a, b: c.c": b"int x;"}, "invalid file name"),
    (
        changed(made.workspace(), LIB1, b"(uint64_t)12, 0, 8", b"(uint64_t)n, 0, 8"),
        "allocates a workspace of 'n' bytes",
    ),
]


@pytest.mark.parametrize("case", [*TARS, *FILES], ids=lambda case: case[1])
def test_refusals(case, tmp_path):
    content, *words = case
    message = refused(tmp_path, content)
    for one in words:
        assert one in message


def test_excessive_sizes_allocate_no_memory(tmp_path):
    """A sparse file of gigabytes is rejected by its headers and not read."""
    path = tmp_path / "bomb.tar"
    one = tarfile.TarInfo(f"./{LIB0}")
    one.size = MEMBER_BYTES + 1
    path.write_bytes(one.tobuf())
    os.truncate(path, 3 << 30)
    start = time.process_time()
    assert f"has {MEMBER_BYTES + 1} bytes" in refused_path(tmp_path, path)
    assert time.process_time() - start < 2


def test_directories(tmp_path):
    folder = made.unpack(USMP, tmp_path / "model")
    (folder / "codegen/host/src/more.c").symlink_to("/etc/passwd")
    assert "'codegen/host/src/more.c' is a symbolic link" in refused_path(tmp_path, folder)
    (tmp_path / "empty").mkdir()
    assert "no model in Model Library Format" in refused_path(tmp_path, tmp_path / "empty")
    assert "cannot read the file" in refused_path(tmp_path, tmp_path / "absent.tar")


def test_several_modules(tmp_path):
    whole = json.loads(USMP["metadata.json"])
    whole["modules"]["other"] = whole["modules"]["default"]
    files = {**USMP, "metadata.json": json.dumps(whole).encode()}
    message = refused(tmp_path, files)
    assert "the archive contains 2 modules: default, other" in message and "choose one with --module" in message
    assert "unknown module 'othr'" in refused(tmp_path, files, module="othr")
    import_mlf(tmp_path / "in.tar", tmp_path / "out", Options("mine", module="default"))


def test_unknown_tensor_of_an_option(tmp_path):
    given = {"x": TensorOption(None, (1, 4)), "y": TensorOption(None, (2,)), "z": TensorOption(None, (2,))}
    message = refused(tmp_path, made.usmp(bare=True), tensors=given)
    assert "unknown input or output 'z' in --tensor" in message


def test_nonempty_directory_is_unchanged(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    assert "the directory is not empty" in refused(tmp_path, TAR)
