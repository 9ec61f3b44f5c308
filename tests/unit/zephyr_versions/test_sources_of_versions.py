# SPDX-License-Identifier: Apache-2.0
"""Sources and CMake files of versions of Zephyr; west.yml."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from campaign import sized
from golden_support import PROJECTS, copy_project, generate_quickly
from opwest.zephyr.west_manifest import read_west_manifest
from opwest.zephyr.workspace import Workspace
from requirements_support import need, skip_here

# --- What newer versions of Zephyr require of the sources that applications compile

ROOT = Path(__file__).resolve().parents[3]


FOLDERS = ("zephyr_module", "project_template", "examples", "generator/opwest/drafting/templates")
PROGRAMS = "tests/zephyr/programs"
SUFFIXES = {".c", ".h", ".S", ".cpp", ".hpp", ".ld", ".jinja", ".inc"}
GENERATED = re.compile(
    r"#\s*include\s+[<\"](syscalls/|generated/|linker/|autoconf\.h|version\.h|app_version\.h|offsets\.h|syscall_list\.h|"
    r"devicetree_generated\.h|kobj-types|otype-to|driver-validation|device_extern|core-isa-dM|arch/|device\.h|kernel\.h|"
    r"sys/(printk|util|byteorder|atomic)\.h|logging/|drivers/|shell/|toolchain\.h|devicetree\.h|init\.h|llext/)"
)
"""Zephyr's headers without `zephyr/`: CONFIG_LEGACY_GENERATED_INCLUDE_PATH and CONFIG_LEGACY_INCLUDE_PATH."""


@pytest.fixture(scope="module")
def applications(tmp_path_factory):
    """The golden projects, without the runtime."""
    work = tmp_path_factory.mktemp("applications")
    return {name: generate_quickly(copy_project(name, work / name / "source"), work / name) for name in PROJECTS}


def sources(*folders):
    for folder in folders:
        found = [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES and path.is_file()]
        assert found, folder
        yield from found


def test_headers_of_zephyr_have_the_prefix(applications):
    """The only exceptions are the alternatives for Zephyr 3.4, behind __has_include."""
    wrong = []
    for path in sources(*FOLDERS, PROGRAMS, *applications.values()):
        lines = path.read_text(errors="replace").splitlines()
        has_alternative = False
        for number, line in enumerate(lines):
            has_alternative = "__has_include" in line or (has_alternative and "#endif" not in line)
            if GENERATED.search(line) and not has_alternative:
                wrong.append(f"{path}:{number + 1}: {line.strip()}")
    assert wrong == []


REMOVED = (
    *("llext_get_fn_table", "zephyr,memory-region-mpu", "boilerplate.cmake", "ZephyrUnittest", "zephyr_file_copy"),
    *("Z_MIN", "Z_MAX", "Z_CLAMP", "shell_set_bypass", "sys_clock.h", "SOC_V2_DIR", "__ASSERT_ON", "K_OBJ_FUTEX"),
)
"""Names that Zephyr 4.3, 4.4 and 4.5 removed or deprecated, or whose parameters they changed."""


def test_nothing_removed_is_used(applications):
    folders = (*FOLDERS, PROGRAMS, *applications.values())
    texts = list(sources(*folders)) + [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".cmake", ".txt", ".conf", ".overlay", ".yaml", ".yml", ".dtsi") or path.name == "Kconfig"
    ]
    found = {
        (name, str(path))
        for path in texts
        if path.is_file()
        for name in REMOVED
        if re.search(rf"{re.escape(name)}(?![\w-])", path.read_text(errors="replace"))
    }
    assert found == set()
    conf = [path for path in texts if path.suffix in (".conf", ".jinja") or path.name == "Kconfig"]
    assert [
        path for path in conf if re.search(r"CONFIG_SRAM_(SIZE|BASE_ADDRESS)", path.read_text(errors="replace"))
    ] == []


MOVED = {"zephyr/fs/nvs.h": "zephyr/kvss/nvs.h"}
"""Headers that Zephyr 4.4 moved, with their new paths."""


def test_moved_headers_are_alternatives(applications):
    used = set()
    for path in sources(*FOLDERS, PROGRAMS, *applications.values()):
        text = path.read_text(errors="replace")
        for old, new in MOVED.items():
            if f"#include <{old}>" in text:
                used.add(old)
                before = text[: text.index(f"#include <{old}>")].splitlines()
                assert [line.partition(" /*")[0] for line in before[-3:]] == [
                    f"#if __has_include(<{new}>)",
                    f"#include <{new}>",
                    "#else",
                ], path
    assert used == set(MOVED)


def test_options_of_newer_versions_are_set():
    """Zephyr 4.4: MCUMGR_TRANSPORT_UART depends on UART_MCUMGR. Zephyr 4.5: PSA_CRYPTO for PSA_CRYPTO_CLIENT."""
    module = ROOT / "zephyr_module"
    texts = {path: path.read_text() for path in module.rglob("Kconfig*") if path.is_file()}
    options = (module / "snippets" / "transports" / "smp_uart.conf").read_text().splitlines()
    assert {"CONFIG_UART_MCUMGR=y", "CONFIG_MCUMGR_TRANSPORT_UART=y"} <= set(options)
    (depends,) = [
        line for text in texts.values() for line in text.splitlines() if "PSA_CRYPTO_CLIENT" in line and "#" not in line
    ]
    assert {"PSA_CRYPTO", "PSA_CRYPTO_CLIENT", "BUILD_WITH_TFM"} <= set(depends.split())


def overlays():
    found = [path for folder in ("examples", "tests") for path in (ROOT / folder).rglob("*.overlay")]
    return [path for path in found if "fixed-partitions" in path.read_text()]


def test_partitions_pass_addresses_on():
    """Zephyr 4.4: `ranges` in the node of the partitions and in the flash. CMake replaces @SLOTS@."""
    assert len(overlays()) >= 3
    for path in overlays():
        text = path.read_text()
        flash = re.search(r'"soc-nv-flash";\s*reg = <(0x(?:[0-9a-f]+|@SLOTS@) 0x[0-9a-f]+)>;', text)
        assert flash and f"ranges = <0x0 {flash[1]}>;" in text, path
        assert re.search(r'"fixed-partitions";(\s*#[a-z]+-cells = <1>;)+\s*ranges;', text), path


PORTABLE = ("metadata", "registry", "status", "devices", "device_calls", "device_launches", "device_ownership")
STANDARDS = sized(("c17", "gnu11"), ("c11", "c17", "gnu17", "gnu11"))


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize(
    "golden", ["minimal", "vectors", "devices", "asynchronous", "streams", "conventions", "tvmgen"]
)
def test_emitted_sources_compile_as_c17(standard, golden, applications):
    """C17 is the default of Zephyr 4.4; opwest's sources are C11, and compile as both without warnings."""
    need("gcc")
    app = applications[golden]
    for model in sorted((app / "models").iterdir()):
        files = [path for path in sorted((model / "src").glob("*.c")) if "devicetree" not in path.read_text()]
        assert files
        includes = [f"-I{folder}" for folder in (*app.glob("models/*/include"), ROOT / "zephyr_module/include")]
        includes.append(f"-idirafter{ROOT / 'zephyr_module/include_tvm'}")
        flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", '-DOPWEST_TARGET="any"', "-fsyntax-only"]
        done = subprocess.run(["gcc", *flags, *includes, *files], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.parametrize("standard", STANDARDS)
def test_the_runtime_compiles_as_c17(standard):
    need("gcc")
    module = ROOT / "zephyr_module"
    files = [module / "src" / f"{name}.c" for name in PORTABLE]
    files += [p for p in sorted((module / "bundle" / "src").glob("*.c")) if "psa/crypto.h" not in p.read_text()]
    files += [
        module / "src" / name for name in ("compare.c", "state.c", "stream.c", "stream_frames.c", "tvm_backend.c")
    ]
    includes = [f"-I{module / folder}" for folder in ("include", "bundle/src", "bundle")]
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-idirafter{module / 'include_tvm'}"]
    done = subprocess.run(["gcc", *flags, *includes, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


# --- The module's CMake functions with the variables of several versions of Zephyr

CMAKE = ROOT / "zephyr_module" / "cmake" / "opwest.cmake"
TARGETS = """set(one_NAME cortex-m4)
set(one_KCONFIG CONFIG_CPU_CORTEX_M4=y)
set(two_NAME cortex-m4f)
set(two_KCONFIG CONFIG_CPU_CORTEX_M4=y)
"""


def run_script(folder, board, qualifiers, calls):
    """Run calls of the functions in CMake's script mode; return what CMake printed."""
    need("cmake")
    script = folder / "script.cmake"
    variables = f'set(BOARD "{board}")\nset(BOARD_QUALIFIERS "{qualifiers}")\n'
    script.write_text(f'{variables}include("{CMAKE}")\n{TARGETS}{calls}')
    done = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True, check=False)
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("board", "qualifiers", "expected"),
    [
        ("qemu_cortex_m3", "", "qemu_cortex_m3"),  # 3.4 to 3.6
        ("nucleo_l4r5zi", "/stm32l4r5xx", "nucleo_l4r5zi/stm32l4r5xx"),  # 3.7 to 4.3
        ("nucleo_l4r5zi", "stm32l4r5xx", "nucleo_l4r5zi/stm32l4r5xx"),  # from 4.4 on
        ("nrf5340dk", "/nrf5340/cpuapp/ns", "nrf5340dk/nrf5340/cpuapp/ns"),
        ("nrf5340dk", "nrf5340/cpuapp/ns", "nrf5340dk/nrf5340/cpuapp/ns"),
    ],
)
def test_messages_name_the_board(tmp_path, board, qualifiers, expected):
    none = run_script(tmp_path, board, qualifiers, "opwest_select_target(found digits one)\n")
    assert f"opwest: model digits has objects for no target that this build ({expected}) matches." in none
    assert "cortex-m4: CONFIG_CPU_CORTEX_M4=n (needs y)" in none
    both = run_script(
        tmp_path, board, qualifiers, "set(CONFIG_CPU_CORTEX_M4 y)\nopwest_select_target(found digits one two)\n"
    )
    assert f"objects for 2 targets that this build ({expected}) matches: cortex-m4 and cortex-m4f." in both
    variants = "set(CONFIG_CPU_CORTEX_M4 y)\nset(digits_VARIANTS a b)\nset(digits_VARIANT_a one)\n"
    variants += "set(digits_VARIANT_b two)\nopwest_select_variant(found digits)\n"
    twice = run_script(tmp_path, board, qualifiers, variants)
    assert f"2 variants with targets that this build ({expected}) matches: a and b." in twice


# --- The hint for a missing module: the group of opwest's west.yml, or the list of imported projects

OPWEST = ROOT / "west.yml"
ZEPHYR = "manifest: {projects: [{name: cmsis_6}, {name: picolibc}, {name: hal_gigadevice}, {name: hal_nordic}]}\n"
NORDIC = "run `west config manifest.group-filter -- +opwest-nordic`, then `west update`"


def workspace(top, files, path="own", more=""):
    """Return a workspace with a manifest repository, and Zephyr's manifest with four projects."""
    for name, text in {
        ".west/config": f"[manifest]\npath = {path}\nfile = west.yml\n{more}",
        "zephyr/west.yml": ZEPHYR,
        **files,
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return Workspace(top / "zephyr")


def hint(made, name):
    return made.ways_to_install([name])[name]


ADD = "add {} to your west.yml (to its name-allowlist, if it has one), then run `west update`"
ADD_NORDIC = ADD.format("hal_nordic")
UPDATE = "run `west update`"
ACTIVATE = f"activate its group 'opwest-nordic': {NORDIC}"
OPWEST_AS_MANIFEST = ({"opwest/west.yml": OPWEST.read_text()}, "opwest")


def importing(project, *opwest):
    """Return a workspace whose manifest has one project, with opwest's repository at some places."""
    manifests = {f"{place}/west.yml": OPWEST.read_text() for place in opwest}
    return {"own/west.yml": f"manifest: {{projects: [{project}]}}\n", **manifests}, "own"


HINTS = [
    (OPWEST_AS_MANIFEST, "hal_nordic", ACTIVATE),
    (OPWEST_AS_MANIFEST, "cmsis_6", UPDATE),  # west update cmsis_6 is refused: it is imported
    (OPWEST_AS_MANIFEST, "hal_gigadevice", ADD.format("hal_gigadevice")),
    *[
        (importing(f"{{name: opwest, path: tools/opwest, import: {form}}}", "tools/opwest"), "hal_nordic", ACTIVATE)
        for form in ("true", "west.yml", "[west.yml]", "{file: west.yml}")
    ],
    (importing("{name: opwest, import: {name-allowlist: [zephyr, hal_st]}}", "opwest"), "hal_nordic", ADD_NORDIC),
    *[
        (importing(f"{{name: zephyr, import: {imports}}}"), "hal_nordic", expected)
        for imports, expected in [
            ("true", UPDATE),
            ("{name-blocklist: [hal_nordic]}", ADD_NORDIC),
            ("{name-allowlist: [cmsis_6]}", ADD_NORDIC),
            ("{name-allowlist: [cmsis_6, hal_nordic]}", UPDATE),
        ]
    ],
    (({}, "zephyr"), "hal_nordic", "run `west update hal_nordic`"),
    *[
        (
            ({".west/config": config}, "own"),
            "hal_nordic",
            "run `west update hal_nordic` (add hal_nordic to the name-allowlist of your west.yml, if it has one)",
        )
        for config in ("", "[manifest\n", "[manifest]\npath = nowhere\n")
    ],
]


@pytest.mark.parametrize(("manifests", "name", "expected"), HINTS)
def test_hint(tmp_path, manifests, name, expected):
    assert hint(workspace(tmp_path, *manifests), name) == expected


def test_commands_activate_all_groups_and_keep_those_of_the_user(tmp_path):
    made = workspace(
        tmp_path, {"opwest/west.yml": OPWEST.read_text()}, "opwest", "group-filter = +opwest-nxp,-hal,-opwest-nordic\n"
    )
    ways = made.ways_to_install(["hal_nordic", "cmsis-nn", "hal_nxp"])
    elements = "+opwest-nxp,-hal,+opwest-nordic,+opwest-cmsis-nn"
    assert f"manifest.group-filter -- {elements}`" in ways["hal_nordic"]
    assert f"manifest.group-filter -- {elements}`" in ways["cmsis-nn"]
    assert ways["hal_nxp"] == "run `west update hal_nxp`"  # its group is active


def test_manifests_that_import_each_other(tmp_path):
    text = "manifest: {self: {import: more}, projects: [{name: own, import: true}, {name: x, groups: [g]}, 5]}\n"
    made = workspace(tmp_path, {"own/west.yml": text, "own/more/a.yml": "manifest: {group-filter: [-g, 3, '-']}\n"})
    assert "'g'" in hint(made, "x")


def test_commands_of_the_hint_activate_the_project(tmp_path):
    need("west")
    made = workspace(tmp_path, {"opwest/west.yml": OPWEST.read_text()}, "opwest")
    manifest = read_west_manifest(made.top)
    assert manifest is not None and manifest.inactive_groups("hal_nordic") == ("opwest-nordic",)
    command = hint(made, "hal_nordic").split("`")[1].split()
    assert command[:2] == ["west", "config"]
    subprocess.run([sys.executable, "-m", *command], cwd=tmp_path / "opwest", check=True)
    again = read_west_manifest(made.top)
    assert again is not None and again.inactive_groups("hal_nordic") == ()
    assert again.inactive_groups("hal_nxp") == ("opwest-nxp",)


# --- west.yml: its optional projects have Zephyr's revisions, are inactive by default, and can be activated

ZEPHYR_MANIFEST = Path.home() / "zephyrproject" / "zephyr"
ALLOWED = {"cmsis_6", "hal_stm32", "picolibc", "zcbor"}
ALWAYS = {"manifest", "zephyr", *ALLOWED}


def own():
    content: dict[str, Any] = yaml.safe_load((ROOT / "west.yml").read_text())["manifest"]
    return content


def optional():
    return {one["name"]: one for one in own()["projects"] if "groups" in one}


@pytest.fixture(scope="module")
def imported():
    """Return the projects of the tree's west.yml, if it is of the release that west.yml names."""
    if not (ZEPHYR_MANIFEST / "west.yml").is_file():
        skip_here("no Zephyr workspace")
    (named,) = [one["revision"] for one in own()["projects"] if one["name"] == "zephyr"]
    text = (ZEPHYR_MANIFEST / "VERSION").read_text()
    numbers = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    found = f"v{numbers['VERSION_MAJOR']}.{numbers['VERSION_MINOR']}.{numbers['PATCHLEVEL']}"
    if found != named:
        skip_here(f"the tree is Zephyr {found}, west.yml names {named}: the revisions differ")
    return {
        one["name"]: one for one in yaml.safe_load((ZEPHYR_MANIFEST / "west.yml").read_text())["manifest"]["projects"]
    }


def test_revisions_and_paths_are_those_of_zephyr(imported):
    assert len(optional()) == 9
    for name, project in optional().items():
        theirs = imported[name]
        for key in ("revision", "path", "west-commands"):
            assert project.get(key) == theirs.get(key), f"{name}: {key}"


def test_imported_projects_are_not_listed_again(imported):
    """An explicit project replaces the imported one, with its groups."""
    assert set(imported) >= ALLOWED and ALLOWED.isdisjoint(optional())


def active(*enabled):
    need("west")
    from west import manifest

    def read(project, file):
        assert (project.name, file) == ("zephyr", "west.yml")
        content = yaml.safe_load((ZEPHYR_MANIFEST / file).read_text())
        # The folder submanifests, empty in Zephyr's repository: west reads it only in an existing workspace.
        assert content["manifest"]["self"].pop("import") == "submanifests"
        text: str = yaml.safe_dump(content)
        return text

    found = manifest.Manifest.from_data((ROOT / "west.yml").read_text(), importer=read)
    return {one.name for one in found.projects if found.is_active(one, extra_filter=enabled)}


def test_default_projects(imported):
    assert active() == ALWAYS


@pytest.mark.slow
def test_each_optional_project_can_be_activated(imported):
    groups: dict[str, set[str]] = {}
    for name, project in optional().items():
        for group in project["groups"]:
            groups.setdefault(group, set()).add(name)
    assert {f"-{group}" for group in groups} == set(own()["group-filter"])
    for group, names in groups.items():
        assert active(f"+{group}") == ALWAYS | names
    assert active(*(f"+{group}" for group in groups)) == ALWAYS | set(optional())


def test_imported_projects_keep_their_groups(imported):
    assert active("-hal") == ALWAYS - {"cmsis_6", "hal_stm32"}
