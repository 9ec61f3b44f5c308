# SPDX-License-Identifier: Apache-2.0
"""Sources and CMake files of versions of Zephyr."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign import sized
from requirements_support import need

# --- What newer versions of Zephyr require of the sources that applications compile

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "golden"))

from golden_support import PROJECTS, copy_project, generate_quickly  # noqa: E402

FOLDERS = ("zephyr_module", "project_template", "examples", "generator/opwest/new_driver/templates")
PROGRAMS = "tests/zephyr/programs"
SUFFIXES = {".c", ".h", ".S", ".cpp", ".hpp", ".ld", ".jinja", ".inc"}
GENERATED = re.compile(
    r"#\s*include\s+[<\"](syscalls/|generated/|linker/|autoconf\.h|version\.h|app_version\.h|offsets\.h|syscall_list\.h|"
    r"devicetree_generated\.h|kobj-types|otype-to|driver-validation|device_extern|core-isa-dM|arch/|device\.h|kernel\.h|"
    r"sys/(printk|util|byteorder|atomic)\.h|logging/|drivers/|shell/|toolchain\.h|devicetree\.h|init\.h|llext/)"
)
"""Zephyr's headers without `zephyr/`: CONFIG_LEGACY_GENERATED_INCLUDE_PATH and CONFIG_LEGACY_INCLUDE_PATH."""


@pytest.fixture(scope="module")
def applications(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The golden projects, without the runtime."""
    work = tmp_path_factory.mktemp("applications")
    return {name: generate_quickly(copy_project(name, work / name / "source"), work / name) for name in PROJECTS}


def sources(*folders: str | Path) -> Iterator[Path]:
    for folder in folders:
        found = [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES and path.is_file()]
        assert found, folder
        yield from found


def test_headers_of_zephyr_have_the_prefix(applications: dict[str, Path]) -> None:
    """The only exceptions are the alternatives for Zephyr 3.4, behind __has_include."""
    wrong = []
    for path in sources(*FOLDERS, PROGRAMS, *applications.values()):
        lines = path.read_text(errors="replace").splitlines()
        for number, line in enumerate(lines):
            if GENERATED.search(line) and not any(
                "__has_include" in before for before in lines[max(number - 4, 0) : number]
            ):
                wrong.append(f"{path}:{number + 1}: {line.strip()}")
    assert wrong == []


REMOVED = (
    *("llext_get_fn_table", "zephyr,memory-region-mpu", "boilerplate.cmake", "ZephyrUnittest", "zephyr_file_copy"),
    *("Z_MIN", "Z_MAX", "Z_CLAMP", "shell_set_bypass", "sys_clock.h", "SOC_V2_DIR", "__ASSERT_ON", "K_OBJ_FUTEX"),
)
"""Names that Zephyr 4.3, 4.4 and 4.5 removed or deprecated, or whose parameters they changed."""


def test_nothing_removed_is_used(applications: dict[str, Path]) -> None:
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


def test_moved_headers_are_alternatives(applications: dict[str, Path]) -> None:
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


def test_options_of_newer_versions_are_set() -> None:
    """Zephyr 4.4: MCUMGR_TRANSPORT_UART depends on UART_MCUMGR. Zephyr 4.5: PSA_CRYPTO for PSA_CRYPTO_CLIENT."""
    module = ROOT / "zephyr_module"
    texts = {path: path.read_text() for path in module.rglob("Kconfig*") if path.is_file()}
    transports = [text for text in texts.values() if "imply MCUMGR_TRANSPORT_UART" in text]
    assert len(transports) == 2
    for text in transports:
        assert "imply UART_MCUMGR if !SHELL_BACKEND_SERIAL && $(dt_chosen_enabled,$(OPWEST_CHOSEN_UART))" in text
    (depends,) = [
        line for text in texts.values() for line in text.splitlines() if "PSA_CRYPTO_CLIENT" in line and "#" not in line
    ]
    assert {"PSA_CRYPTO", "PSA_CRYPTO_CLIENT", "BUILD_WITH_TFM"} <= set(depends.split())


def overlays() -> list[Path]:
    found = [path for folder in ("examples", "tests") for path in (ROOT / folder).rglob("*.overlay")]
    return [path for path in found if "fixed-partitions" in path.read_text()]


def test_partitions_pass_addresses_on() -> None:
    """Zephyr 4.4: `ranges` in the node of the partitions and in the flash."""
    assert len(overlays()) >= 7
    for path in overlays():
        text = path.read_text()
        flash = re.search(r'"soc-nv-flash";\s*reg = <(0x[0-9a-f]+ 0x[0-9a-f]+)>;', text)
        assert flash and f"ranges = <0x0 {flash[1]}>;" in text, path
        assert re.search(r'"fixed-partitions";(\s*#[a-z]+-cells = <1>;)+\s*ranges;', text), path


PORTABLE = ("metadata", "registry", "status", "devices", "device_calls", "device_launches", "device_ownership")
STANDARDS = sized(("c17", "gnu11"), ("c11", "c17", "gnu17", "gnu11"))


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize(
    "golden", ["minimal", "vectors", "devices", "asynchronous", "streams", "conventions", "tvmgen"]
)
def test_emitted_sources_compile_as_c17(standard: str, golden: str, applications: dict[str, Path]) -> None:
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
def test_the_runtime_compiles_as_c17(standard: str) -> None:
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

CMAKE = Path(__file__).resolve().parents[3] / "zephyr_module" / "cmake" / "opwest.cmake"
TARGETS = """set(one_NAME cortex-m4)
set(one_KCONFIG CONFIG_CPU_CORTEX_M4=y)
set(two_NAME cortex-m4f)
set(two_KCONFIG CONFIG_CPU_CORTEX_M4=y)
"""


def run_script(folder: Path, board: str, qualifiers: str, calls: str) -> str:
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
def test_messages_name_the_board(tmp_path: Path, board: str, qualifiers: str, expected: str) -> None:
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
