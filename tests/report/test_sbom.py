# SPDX-License-Identifier: Apache-2.0
"""`opwest report --sbom`: valid SPDX 2.3 in both forms, complete, reproducible; error messages."""

import functools
import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
from elf_writer import archive_of
from golden_support import copy_project
from opwest.base.diagnostics import Diagnostics
from opwest.cli.main import main
from opwest.reports.sbom.collect import check_images, read_build
from requirements_support import need

UNLINKED = re.compile(r"\.opwest/|tests/|models/[^/]+/tests/")


def report(*arguments: object) -> int:
    return main(["report", *map(str, arguments)])


def project(name: str, folder: Path) -> Path:
    manifests = copy_project(name, folder / "source")
    assert main(["generate", *map(str, manifests), "-o", str(folder / "app"), "-q"]) == 0
    return folder / "app"


def sbom(app: Path, *options: object) -> dict:
    place = app.parent / "sbom.json"
    assert report(app, "--sbom", place, *options) == 0
    return json.loads(place.read_text())


def checksums(path: Path) -> list[dict]:
    content = path.read_bytes()
    return [
        {"algorithm": name, "checksumValue": hashlib.new(name.lower(), content).hexdigest()}
        for name in ("SHA1", "SHA256")
    ]


@functools.cache
def _licensing() -> object:
    import license_expression

    return license_expression.get_spdx_licensing()


def validated(path: Path) -> object:
    """Return a document that the reference implementation of SPDX reads, without a fault."""
    need("spdx_tools")
    from spdx_tools.spdx.parser.json.json_parser import parse_from_file
    from spdx_tools.spdx.parser.tagvalue import parser
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

    # Each expression would read the list of licences again, in about 0.1 s.
    parser.get_spdx_licensing = _licensing
    if path.suffix == ".json":
        document = parse_from_file(str(path))
    else:
        # parse_file() writes the tables of PLY into the installed package, where another process may read half of them.
        document = parser.Parser(debug=False, write_tables=False).parse(path.read_text(encoding="utf-8"))
    assert [message.validation_message for message in validate_full_spdx_document(document)] == []
    return document


def related(document: dict, kind: str) -> set[tuple[str, str]]:
    return {
        (r["spdxElementId"], r["relatedSpdxElement"])
        for r in document["relationships"]
        if r["relationshipType"] == kind
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["many_kinds", "devices", "targets", "tvmgen", "variants"])
def test_both_forms_are_valid_and_equal(name, tmp_path) -> None:
    """With files of the user, programs, objects, two models and the files of microTVM, variants."""
    app = project(name, tmp_path)
    for form in ("spdx", "json"):
        assert report(app, "--sbom", tmp_path / f"bill.{form}") == 0
    text, value = validated(tmp_path / "bill.spdx"), validated(tmp_path / "bill.json")
    assert text.creation_info == value.creation_info
    for kind in ("packages", "files"):
        one, other = ({e.spdx_id: e for e in getattr(d, kind)} for d in (text, value))
        assert one == other

    def pairs(document):
        return {(r.spdx_element_id, r.relationship_type, r.related_spdx_element_id) for r in document.relationships}

    assert pairs(text) == pairs(value)


@pytest.mark.parametrize("name", ["many_kinds", "variants", "several"])
def test_every_linked_file_has_its_checksums(name, tmp_path) -> None:
    app = project(name, tmp_path)
    document = sbom(app)
    found = {one["fileName"].removeprefix("./"): one["checksums"] for one in document["files"]}
    of_project = {name: sums for name, sums in found.items() if not name.startswith("inputs/")}
    lock = json.loads((app / ".opwest/lock.json").read_text())
    assert set(of_project) == {name for name in (*lock["files"], *lock["user"]) if not UNLINKED.match(name)}
    for file, sums in of_project.items():
        assert sorted(sums, key=lambda one: one["algorithm"]) == checksums(app / file)
    inputs = {n: digest for model in lock["record"]["models"] for n, digest in model["inputs"].items()}
    assert {n.split("/", 2)[2] for n in found if n.startswith("inputs/")} == set(inputs)


def test_objects_have_targets_and_origins(tmp_path) -> None:
    document = sbom(project("targets", tmp_path))
    binaries = {one["fileName"]: one for one in document["files"] if one["fileTypes"] == ["BINARY"]}
    own = {name: one for name, one in binaries.items() if name.startswith("./models/") and "/objects/" in name}
    assert own
    ids = {one["SPDXID"] for one in own.values()}
    model = next(one["SPDXID"] for one in document["packages"] if one["name"] == "several_targets")
    assert {(model, one) for one in ids} <= related(document, "STATIC_LINK")
    sources = related(document, "COPY_OF") | related(document, "GENERATED_FROM")
    inputs = {one["SPDXID"] for one in document["files"] if one["fileName"].startswith("./inputs/")}
    assert all(any(one == first and other in inputs for first, other in sources) for one in ids)
    assert all(re.match(r"for the target \S+, from \S+", one["comment"]) for one in own.values())


def test_members_of_archives_have_the_licence_and_the_origin_of_their_archive(tmp_path) -> None:
    manifest = copy_project("targets", tmp_path / "source")[0]
    compiled = tmp_path / "source/objects/x86-64/scale.o"
    (compiled.with_name("libscale.a")).write_bytes(archive_of(compiled.read_bytes()))
    compiled.unlink()
    text = manifest.read_text().replace("objects/x86-64/scale.o", "objects/x86-64/libscale.a")
    manifest.write_text(f"license: LicenseRef-Vendor\n{text}")
    assert main(["generate", str(manifest), "-o", str(tmp_path / "app"), "-q"]) == 0
    document = sbom(tmp_path / "app")
    files = {one["fileName"]: one for one in document["files"]}
    archive = files["./inputs/several_targets/objects/x86-64/libscale.a"]
    (name,) = [one for one, file in files.items() if "(" in file.get("comment", "")]
    member = files[name]
    assert sorted(member["checksums"], key=lambda one: one["algorithm"]) == checksums(tmp_path / "app" / name)
    assert (member["licenseConcluded"], archive["licenseConcluded"]) == ("LicenseRef-Vendor", "LicenseRef-Vendor")
    assert re.fullmatch(r"for the target x86-64, from objects/x86-64/libscale\.a\(\S+\.o\)", member["comment"])
    assert (member["SPDXID"], archive["SPDXID"]) in related(document, "GENERATED_FROM")
    package = next(one for one in document["packages"] if one["name"] == "several_targets")
    assert (package["SPDXID"], member["SPDXID"]) in related(document, "STATIC_LINK")
    assert package["licenseDeclared"] == "LicenseRef-Vendor"
    assert package["licenseConcluded"] == "Apache-2.0 AND LicenseRef-Vendor"
    assert {one["supplier"] for one in document["packages"]} == {"NOASSERTION"}


def test_equal_inputs_give_equal_documents(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    first = sbom(project("minimal", tmp_path / "one"))
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert sbom(tmp_path / "two" / "app") == first
    assert first["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    dated = sbom(tmp_path / "one" / "app")
    assert dated["creationInfo"]["created"] == "2026-01-01T00:00:00Z"
    assert dated["documentNamespace"] != first["documentNamespace"]
    (tmp_path / "one/app/src/main.c").write_text("int main(void) { return 0; }\n")
    assert sbom(tmp_path / "one" / "app")["documentNamespace"] != dated["documentNamespace"]


def test_licences(tmp_path) -> None:
    manifest = copy_project("many_kinds", tmp_path / "source")[0]
    manifest.write_text("license: mit or LicenseRef-Acme\n" + manifest.read_text())
    source = tmp_path / "source/operators/copies.c"
    source.write_text("/* SPDX-License-Identifier: Some Thing */\n" + source.read_text())
    assert main(["generate", str(manifest), "-o", str(tmp_path / "app"), "-q"]) == 0
    document = sbom(tmp_path / "app")
    files = {one["fileName"]: one for one in document["files"]}
    constant = files["./models/many_kinds/constants/gains.bin"]
    assert constant["licenseConcluded"] == "MIT OR LicenseRef-Acme"
    assert constant["licenseInfoInFiles"] == ["NOASSERTION"]
    assert files["./modules/opwest/src/registry.c"]["licenseConcluded"] == "Apache-2.0"
    assert files["./inputs/many_kinds/operators/copies.c"]["licenseConcluded"] == "LicenseRef-Some-Thing"
    own = {one["licenseId"] for one in document["hasExtractedLicensingInfos"]}
    assert own == {"LicenseRef-Acme", "LicenseRef-Some-Thing"}


@pytest.mark.filterwarnings("ignore")
def test_imported_model_hostile_names_and_document_of_zephyr(tmp_path) -> None:
    app = project("minimal", tmp_path)
    record = {"model": "../models/a <text> b.tflite", "sha256": "ab" * 32, "options": {}}
    (tmp_path / "source/import.json").write_text(json.dumps(record))
    lines = "SPDXVersion: SPDX-2.3\nDocumentNamespace: http://example.org/build\n"
    build = tmp_path / "build.spdx"
    build.write_text(f"{lines}FileName: ./zephyr/zephyr.elf\nSPDXID: SPDXRef-File-zephyr.elf\n")
    document = sbom(app, "--zephyr-spdx", build)
    imported = next(one for one in document["packages"] if one["name"] == "a <text> b.tflite")
    assert imported["checksums"] == [{"algorithm": "SHA256", "checksumValue": "ab" * 32}]
    external = document["externalDocumentRefs"][0]
    assert external["checksum"]["checksumValue"] == hashlib.sha1(build.read_bytes()).hexdigest()
    links = related(document, "STATIC_LINK")
    assert ("DocumentRef-zephyr-build:SPDXRef-File-zephyr.elf", "SPDXRef-Package-minimal") in links
    assert report(app, "--sbom", tmp_path / "bill.spdx", "--zephyr-spdx", build) == 0
    for name in ("sbom.json", "bill.spdx"):
        validated(tmp_path / name)


def test_image_of_another_build(tmp_path) -> None:
    image = tmp_path / "zephyr.elf"
    image.write_bytes(b"image")
    lines = "SPDXVersion: SPDX-2.3\nDocumentNamespace: http://example.org/build\n"
    entry = "FileName: ./zephyr/zephyr.elf\nSPDXID: SPDXRef-File-zephyr.elf\nFileChecksum: SHA1: {}\n"
    build = tmp_path / "build.spdx"
    found = hashlib.sha1(b"image").hexdigest()
    for sha1, expected in ((found, []), ("0" * 40, [f"the image is not that of '{build}': its SHA-1 is {found}"])):
        build.write_text(lines + entry.format(sha1))
        faults = Diagnostics()
        check_images(read_build(build), build, [image], faults)
        assert [one.message for one in faults] == expected
    check_images(read_build(build), build, [tmp_path / "zephyr.exe"], faults)
    assert len(list(faults)) == 1


def test_standard_output_and_both_outputs(tmp_path, capsys) -> None:
    app = project("minimal", tmp_path)
    capsys.readouterr()
    assert report(app, "--sbom", "-") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("SPDXVersion: SPDX-2.3\n")
    assert report(app, "--sbom", tmp_path / "x.spdx", "-o", tmp_path / "x.html") == 0
    assert (tmp_path / "x.spdx").read_text() == printed and (tmp_path / "x.html").is_file()
    assert report(app, "--sbom", tmp_path / "x.spdx") == 0  # its own file is overwritten


def test_errors(tmp_path, capsys, monkeypatch) -> None:
    app = project("minimal", tmp_path)
    manifest = next((tmp_path / "source").glob("*.yaml"))
    (tmp_path / "mine.spdx").write_text("mine")
    (tmp_path / "bad.spdx").write_text("SPDXVersion: SPDX-2.3\nDocumentNamespace: http://a.b\n")
    bill = tmp_path / "bill.spdx"

    def fails(*arguments: object) -> str:
        capsys.readouterr()
        assert report(*arguments) == 1
        return capsys.readouterr().err

    assert fails(manifest, "--sbom", bill) == (
        "opwest: error: --sbom requires a generated application\n  hint: opwest generate MANIFEST -o DIR\n"
    )
    assert "the file exists and is not a bill of materials" in fails(app, "--sbom", tmp_path / "mine.spdx")
    assert (tmp_path / "mine.spdx").read_text() == "mine"
    assert "it does not contain zephyr/zephyr.elf" in fails(app, "--sbom", bill, "--zephyr-spdx", tmp_path / "bad.spdx")
    assert "not a tag-value document" in fails(app, "--sbom", bill, "--zephyr-spdx", manifest)
    assert "No such file" in fails(app, "--sbom", bill, "--zephyr-spdx", tmp_path / "none")
    assert "--format has no effect on a bill of materials" in fails(app, "--sbom", bill, "--format", "json")
    assert "--zephyr-spdx has no effect without --sbom" in fails(app, "-o", bill, "--zephyr-spdx", bill)
    assert "--output and --sbom name the same file" in fails(app, "-o", bill, "--sbom", bill)
    same = bill.parent / ".." / bill.parent.name / bill.name
    assert "--output and --sbom name the same file" in fails(app, "-o", same, "--sbom", bill)
    assert "--sbom - prints the bill of materials only" in fails(app, "-o", bill, "--sbom", "-")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "now")
    assert fails(app, "--sbom", bill) == (
        "opwest: error: SOURCE_DATE_EPOCH is 'now'\n  expected: seconds since 1970, such as 1767225600\n"
    )
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    (app / "models/minimal/model.cmake").unlink()
    assert "cannot read a file of the bill of materials: No such file" in fails(app, "--sbom", bill)
    manifest.write_text(manifest.read_text() + "\n# changed\n")
    assert "cannot write the bill of materials: the project is out of date" in fails(app, "--sbom", bill)
    assert not bill.exists()
