# SPDX-License-Identifier: Apache-2.0
"""Steps of the build, and the table of the runtime's features."""

import base64
import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from golden_support import copy_project
from opwest.base.diagnostics import Diagnostics
from opwest.zephyr.runtime import FEATURES, features_of, files_of, vendored_files
from projects import check
from requirements_support import need

# --- The linker scripts of models reach the preprocessor from every directory, through Zephyr's list of snippets

MODULE = Path(__file__).resolve().parents[3] / "zephyr_module" / "cmake" / "opwest.cmake"
# As cmake/modules/extensions.cmake of Zephyr 4.2 adds a script to a file of snippets.
ZEPHYR = """\
set(snippets "${CMAKE_BINARY_DIR}/snippets.ld")
file(WRITE "${snippets}" "")
function(zephyr_linker_sources location path)
  file(RELATIVE_PATH relpath ${ZEPHYR_BASE}/include ${path})
  file(STRINGS ${snippets} lines)
  list(APPEND lines "#include \\"${relpath}\\"")
  list(SORT lines)
  string(REPLACE ";" "\\n;" lines "${lines}")
  file(WRITE ${snippets} ${lines} "\\n")
endfunction()
function(zephyr_include_directories folder)
  file(WRITE "${CMAKE_BINARY_DIR}/include_path" "${folder}")
endfunction()
"""


@pytest.mark.parametrize("name", ["plain", "größe", "モデル", "a b", "c++(1)"])
@pytest.mark.parametrize("linked", [False, True])
def test_every_script_is_included_once(tmp_path, linked, name):
    need("cmake")
    need("cc")
    real = tmp_path / "a" / "b" / "zephyr"
    (real / "include").mkdir(parents=True)
    base = tmp_path / "zephyr" if linked else real
    if linked:
        base.symlink_to(real)
    scripts = [tmp_path / name / folder / "model.ld" for folder in ("one", "two", "three")]
    text = MODULE.read_text(encoding="utf-8")
    function = text[text.index("function(opwest_linker_script") :]
    lines = [f'set(ZEPHYR_BASE "{base}")', ZEPHYR, function[: function.index("endfunction()") + len("endfunction()")]]
    for script in scripts:
        script.parent.mkdir(parents=True)
        script.write_text(f"content_{script.parent.name}\n")
        lines.append(f'opwest_linker_script("{script}")')
    (tmp_path / "try.cmake").write_text("\n".join(lines), encoding="utf-8")
    build = tmp_path / name / "build"
    build.mkdir()

    subprocess.run(["cmake", "-P", str(tmp_path / "try.cmake")], cwd=build, check=True)

    command = ["cc", "-E", "-P", "-x", "assembler-with-cpp", "-I", (build / "include_path").read_text("utf-8")]
    done = subprocess.run([*command, str(build / "snippets.ld")], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == ["content_one", "content_three", "content_two"]


@pytest.mark.parametrize("sysbuild", [False, True])
def test_builds_inside_the_application_are_ignored(tmp_path, sysbuild):
    need("cmake")
    need("git")
    text = MODULE.read_text(encoding="utf-8")
    function = text[text.index("function(opwest_ignore_build)") :]
    app, outside = tmp_path / "app", tmp_path / "application"
    (app / "src").mkdir(parents=True)
    (app / "src" / "main.c").touch()
    lines = [f'set(APPLICATION_SOURCE_DIR "{app}")', f"set(SYSBUILD {sysbuild})"]
    lines += [function[: function.index("endfunction()") + len("endfunction()")], "opwest_ignore_build()"]
    (tmp_path / "try.cmake").write_text("\n".join(lines), encoding="utf-8")
    for build in (app / "build" / "native", app / "build-2", outside):
        image = build / "app" if sysbuild else build
        image.mkdir(parents=True)
        (build / "CMakeCache.txt").touch()
        for _ in range(2):
            subprocess.run(["cmake", "-P", str(tmp_path / "try.cmake")], cwd=image, check=True)
    assert not (outside / ".gitignore").exists() and not (app / ".gitignore").exists()
    subprocess.run(["git", "init", "-q"], cwd=app, check=True)
    subprocess.run(["git", "add", "."], cwd=app, check=True)
    done = subprocess.run(["git", "ls-files"], cwd=app, capture_output=True, text=True, check=True)
    assert done.stdout == "src/main.c\n"


# --- opwest_add_bundle() without Zephyr: its options, and manifests without a model

ROOT = Path(__file__).resolve().parents[3]
MANIFEST = ROOT / "examples" / "digits" / "manifest.yaml"


def configured(folder, arguments, manifest=MANIFEST, **environment):
    """Configure a project with one bundle; return the messages and the rules of the build."""
    need("cmake", "make")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(one NONE)\nadd_custom_target(zephyr_generated_headers)\n"
        f"set(PYTHON_EXECUTABLE {sys.executable})\ninclude({ROOT}/zephyr_module/cmake/opwest.cmake)\n"
        f"opwest_add_bundle(one MANIFEST {manifest} {arguments})\n"
    )
    command = ["cmake", "-G", "Unix Makefiles", "-S", folder, "-B", folder / "build"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    rules = folder / "build" / "CMakeFiles" / "opwest_bundle.one.dir"
    return " ".join(done.stderr.split()), "".join(path.read_text() for path in rules.glob("*make*"))


def test_values_that_cmake_takes_for_false(tmp_path):
    errors, rules = configured(tmp_path, "SLOT 0 UNSIGNED VECTORS 0 VERSION 0 VARIANT off")
    assert not errors
    for option in ("--slot 0", "--vectors 0", "--model-version 0", "--variant off", "--unsigned"):
        assert f" {option}" in rules
    assert "opwest_bundle/one/include/digits_bundle.h" in rules


@pytest.mark.parametrize("arguments", ["SLOT 0", "UNSIGNED", "LLEXT UNSIGNED other"])
def test_missing_and_unknown_arguments(tmp_path, arguments):
    errors, _ = configured(tmp_path, arguments)
    assert "opwest_add_bundle(one): expected MANIFEST <file> SLOT <slot> or LLEXT" in errors


def test_a_manifest_without_the_name_of_a_model(tmp_path):
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text("version: 1\n")
    errors, _ = configured(tmp_path, "LLEXT UNSIGNED", manifest)
    assert "missing key 'model'" in errors
    assert "opwest_add_bundle(one): cannot read the name of the model: see the messages above" in errors


def test_a_build_with_a_key_names_the_package_for_signatures(tmp_path):
    """The workspace's Python lacks cryptography, which requirements.txt does not list."""
    absent = tmp_path / "absent" / "cryptography" / "__init__.py"
    absent.parent.mkdir(parents=True)
    absent.write_text("raise ImportError\n")
    errors, _ = configured(tmp_path, "SLOT 0 KEY key.pem", PYTHONPATH=str(absent.parents[1]))
    assert not errors
    for file in ("key.pem", "build/zephyr/.config", "build/zephyr/zephyr.dts"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    command = ["cmake", "--build", tmp_path / "build"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    text = "opwest: error: signatures require the package 'cryptography', which is not installed\n"
    assert f'{text}  hint: pip install "cryptography>=42"\n' in done.stderr


# --- The step of the build that makes a C array of public keys

RUNTIME = Path(__file__).resolve().parents[3] / "zephyr_module"
SCRIPT = RUNTIME / "scripts" / "bundle_keys.py"
PREFIX = bytes.fromhex("302a300506032b6570032100")
# RFC 8410, section 10.1.
BODY = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="
PUBLIC = f"-----BEGIN PUBLIC KEY-----\n{BODY}\n-----END PUBLIC KEY-----\n"
KEY = bytes.fromhex("19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1")


def pem(der, label="PUBLIC KEY"):
    return f"-----BEGIN {label}-----\n{base64.b64encode(der).decode()}\n-----END {label}-----\n"


def written(folder, *texts):
    """Run the script; return its errors, and the files if there are none."""
    files = [folder / f"{index}.pem" for index in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    header, source = folder / "out" / "opwest" / "bundle_keys.h", folder / "out" / "bundle_keys.c"
    header.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, SCRIPT, "--header", header, "--source", source, *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if done.stderr else 0)
    return done.stderr, header, source


def test_c_array_contains_the_keys_of_all_files(tmp_path):
    other = bytes(range(32))
    errors, header, source = written(tmp_path, PUBLIC, "a comment\n" + pem(PREFIX + other) + pem(PREFIX + other[::-1]))
    assert not errors
    program = tmp_path / "main.c"
    program.write_text(
        "#include <stdio.h>\n#include <opwest/bundle_keys.h>\nint main(void) {\n"
        "for (unsigned i = 0; i < OPWEST_BUNDLE_KEY_COUNT; i++) { for (int j = 0; j < 32; j++)\n"
        '{ printf("%02x", opwest_bundle_keys[i].bytes[j]); } printf("\\n"); } return 0; }\n'
    )
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME / 'include'}", f"-I{header.parents[1]}"]
    subprocess.run(["cc", *flags, program, source, "-o", tmp_path / "main"], check=True)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert printed.split() == [KEY.hex(), other.hex(), other[::-1].hex()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "found no PEM block"),
        (b"\xff\xfe", "not a text file"),
        (pem(bytes(48), "PRIVATE KEY"), "found a private key: firmware contains only public keys"),
        (pem(bytes(48), "CERTIFICATE"), "found 'CERTIFICATE'"),
        (pem(bytes.fromhex("302a300506032b656e032100") + KEY), "found a public key of another algorithm"),
        (pem(PREFIX + KEY[:-1]), "found a public key of another algorithm"),
        (pem(PREFIX + KEY + b"\0"), "found a public key of another algorithm"),
        (PUBLIC.replace("MCow", "MC*w"), "damaged base64"),
        (PUBLIC + PUBLIC[:-10], "incomplete PEM block"),
        (PUBLIC[:-10] + pem(PREFIX + bytes(32)), "incomplete PEM block"),
        (PUBLIC.replace("END PUBLIC", "END PRIVATE"), "incomplete PEM block"),
    ],
)
def test_other_files_are_refused(tmp_path, text, found):
    errors, header, _ = written(tmp_path, PUBLIC, text)
    assert re.search(rf"1\.pem: error: cannot read '1\.pem': {re.escape(found)}", errors), errors
    assert "expected: a PEM file with Ed25519 public keys" in errors and "0.pem" not in errors
    assert not header.exists()


def test_missing_and_duplicate_files(tmp_path):
    errors, header, _ = written(tmp_path, PUBLIC, PUBLIC)
    assert errors == f"1.pem: error: duplicate key {KEY.hex()}\n" and not header.exists()
    command = [sys.executable, SCRIPT, "--header", tmp_path / "h", "--source", tmp_path / "c", tmp_path / "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "error: cannot read 'none': No such file or directory" in done.stderr


# --- The table of the runtime's features: complete, closed under includes, and equal to the files that CMake compiles

SHARED = {
    *("dts/bindings/vendor-prefixes.txt", "include/opwest/accelerator_functions.h", "include/opwest/profile.h"),
}
BUNDLE = ("bundle/CMakeLists.txt", "bundle/zephyr/llext.cmake", "bundle/zephyr/sending.cmake")
INCLUDED = {"bundle/ext/libsodium/hash_sha512_cp.c", "bundle/ext/monocypher/monocypher.c"}
"""Vendored sources that another one includes."""


def closure(name):
    """Return a feature with its dependencies."""
    found, waiting = {"core"}, [name]
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting += FEATURES[name].needs
    return found


NOT_COPIED = (
    "bundle/image/",
    "include/opwest/bundle_image.h",
    "cmake/opwest_add_model.cmake",
    "cmake/opwest_compare.cmake",
    "include/opwest/npu_emul_host.h",
    *(f"src/port{part}_host.c" for part in ("", "_input_check", "_profile", "_sync", "_tvm")),
    "src/port_host_cache.c",
    "drivers/npu_emul/make_program.py",
    "drivers/npu_emul/npu_emul_host.c",
    *("conformance/CMakeLists.txt", "conformance/Kconfig", "conformance/include/opwest/conformance.h"),
    *(
        f"conformance/src/{name}.c"
        for name in ("failures", "jobs", "ownership", "power", "programs", "support", "waits")
    ),
    *("conformance/src/cases.h", "conformance/src/runner_host.c", "conformance/src/runner_zephyr.c"),
)
"""Files for opwest_add_model(), `opwest run --host`, drivers and developers, used from the installed opwest."""


def test_every_file_is_in_one_feature_or_is_not_copied():
    there = {path.relative_to(RUNTIME).as_posix() for path in RUNTIME.rglob("*") if path.is_file()}
    there = {path for path in there if "__pycache__" not in path}
    left = {path for path in there if path.startswith(tuple(name for name in NOT_COPIED if name.endswith("/")))}
    listed = [path for name in FEATURES for path in files_of([name])]
    listed += [*left, *(name for name in NOT_COPIED if not name.endswith("/"))]
    assert sorted(set(listed)) == sorted(there)
    assert {path for path in listed if listed.count(path) > 1} == SHARED


OF_OPTION = r"^#if.*\bCONFIG_OPWEST_(?:PROFILE|CHECK_INPUTS|BUNDLE_DEVICES)\b.*\n(?:#include .*\n)+#endif$"
"""Headers of another feature, where its option is set."""


@pytest.mark.parametrize("name", FEATURES)
def test_included_files_of_a_feature_are_copied(name):
    files = set(files_of(closure(name)))
    for path in files:
        text = re.sub(OF_OPTION, "", (RUNTIME / path).read_text(errors="replace"), flags=re.MULTILINE)
        for quoted, header in re.findall(r'^#include ([<"])([^>"]+)[>"]', text, re.MULTILINE):
            beside = posixpath.normpath(PurePosixPath(path).parent / header)
            if quoted == '"':
                assert beside in files, (path, header)
            elif header.startswith(("opwest/", "tvm/", "dlpack/")):
                assert {f"include/{header}", f"include_tvm/{header}"} & files, (path, header)


def test_cmake_compiles_what_is_copied():
    texts = [(RUNTIME / name).read_text() for name in ("CMakeLists.txt", *BUNDLE)]
    compiled = set(re.findall(r"(?<![\w/])(?:src|drivers|bundle)/[\w/]+\.(?:c|ld)\b", "".join(texts)))
    copied = {path for path in files_of(FEATURES) if path.endswith((".c", ".ld"))} - INCLUDED
    assert compiled == copied


def test_options_are_those_of_kconfig():
    kconfig = "\n".join(path.read_text() for path in RUNTIME.rglob("Kconfig*"))
    options = {feature.option for feature in FEATURES.values() if feature.option}
    assert options <= {f"CONFIG_{name}" for name in re.findall(r"^(?:menu)?config (\w+)$", kconfig, re.MULTILINE)}
    bindings = {path.stem for path in (RUNTIME / "dts/bindings").glob("*/*.yaml")}
    assert {feature.compatible for feature in FEATURES.values() if feature.compatible} == bindings


def models_of(folder, name, *edits):
    manifests = copy_project(name, folder)
    for old, new in edits:
        text = manifests[0].read_text()
        assert old in text
        manifests[0].write_text(text.replace(old, new, 1))
    return [model for model, _ in check(manifests, Diagnostics())]


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("minimal", {"core", "sources"}),
        ("vectors", {"core", "sources", "vectors"}),
        ("asynchronous", {"core", "sources", "devices", "syscalls", "drivers"}),
        ("conventions", {"core", "sources", "devices", "syscalls", "drivers", "tvm", "halide", "memref"}),
        ("many_kinds", {"core", "errors", "sources", "service", "shell", "model_list"}),
        ("several", {"core", "sources", "shell", "model_list", "profile"}),
    ],
)
def test_features_of_models(tmp_path, name, features):
    models = models_of(tmp_path / "source", name)
    assert features_of(models) == features
    assert {str(path) for path in vendored_files(models)} == set(files_of(features))


@pytest.mark.parametrize("option", sorted(f.option for f in FEATURES.values() if f.option))
def test_option_of_the_manifest_selects_a_feature(tmp_path, option):
    edit = ("model: minimal", f"model: minimal\napplication: {{kconfig: {{{option}: %s}}}}")
    (selected,) = [name for name, feature in FEATURES.items() if feature.option == option]
    assert selected in features_of(models_of(tmp_path / "y", "minimal", (edit[0], edit[1] % "y")))
    assert features_of(models_of(tmp_path / "n", "minimal", (edit[0], edit[1] % "n"))) == {"core", "sources"}


@pytest.mark.parametrize(
    ("header", "feature"),
    [
        ("opwest/npu_emul.h", "npu_emul"),
        ("opwest/ethos_u.h", "ethos_u"),
        ("tvm/runtime/c_runtime_api.h", "tvm"),
        ("opwest/compare.h", "vectors"),
    ],
)
def test_included_header_selects_its_feature(tmp_path, header, feature):
    (manifest,) = copy_project("minimal", tmp_path / "source")
    (source,) = (path for path in manifest.parent.rglob("*.c"))
    text = source.read_text()
    source.write_text(f"#include <opwest/port.h>\n{text}")
    assert features_of([model for model, _ in check([manifest], Diagnostics())]) == {"core", "sources"}
    source.write_text(f"  #  include <{header}>\n{text}")
    assert features_of([model for model, _ in check([manifest], Diagnostics())]) == closure(feature) | {"sources"}


def test_overlay_selects_the_driver_of_its_nodes(tmp_path):
    for compatible, feature in (("opwest,npu-emul", "npu_emul"), ("opwest,ethos-u", "ethos_u")):
        (manifest,) = copy_project("minimal", tmp_path / feature)
        (manifest.parent / "board.overlay").write_text(f'/ {{ npu {{ compatible = "{compatible}"; }}; }};\n')
        text = manifest.read_text()
        manifest.write_text(text + "application: {overlays: {qemu_cortex_m3: board.overlay}}\n")
        assert features_of([model for model, _ in check([manifest], Diagnostics())]) == closure(feature) | {"sources"}
