# SPDX-License-Identifier: Apache-2.0
"""The Kconfig files, snippets and CMake files of the runtime and of applications: what Zephyr's style permits."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
RUNTIME = ROOT / "zephyr_module"
KCONFIG = sorted(path for path in RUNTIME.rglob("Kconfig*") if path.is_file())

HEAP_OF_A_DRIVER = "HEAP_MEM_POOL_ADD_SIZE_OPWEST_ETHOS_U"
"""Zephyr adds the values of all symbols with this prefix."""
HELPERS = {
    *("FLASH_HAS_DRIVER_ENABLED", "FLASH_HAS_EXPLICIT_ERASE", "FLASH_HAS_PAGE_LAYOUT"),
    *("MCUMGR_SMP_CBOR_MIN_DECODING_LEVEL_2", "MCUMGR_SMP_CBOR_MIN_ENCODING_LEVEL_2"),
}
"""Symbols without a prompt, which Zephyr's own options select."""
LEAVES = {"CRC", "EVENTS", "REBOOT", "TIMING_FUNCTIONS"}
"""Options without dependencies that only add functions."""


def statements(keyword):
    """Yield the file and the symbol of each statement with a keyword."""
    for path in KCONFIG:
        for symbol in re.findall(rf"^\s*(?:{keyword})\s+([A-Z]\w+)(?: if .*)?$", path.read_text(), re.MULTILINE):
            yield path.relative_to(RUNTIME).as_posix(), symbol


def test_only_own_symbols_are_defined():
    defined = list(statements("config|menuconfig|configdefault"))
    assert len(defined) > 50
    foreign = {symbol for _, symbol in defined if not re.match(r"OPWEST(_|$)", symbol)}
    assert foreign == {HEAP_OF_A_DRIVER}
    assert ("Kconfig", "OPWEST") in defined


def test_selected_symbols_are_own_helpers_or_leaves():
    selected = {symbol for _, symbol in statements("select")}
    assert {symbol for symbol in selected if not symbol.startswith("OPWEST_")} == HELPERS | LEAVES


def test_nothing_is_enabled_by_the_module_alone():
    text = (RUNTIME / "Kconfig").read_text()
    (menu,) = re.findall(r"^menuconfig OPWEST\n(.*?)^if OPWEST$", text, re.MULTILINE | re.DOTALL)
    assert "default" not in menu and text.rstrip().endswith("endif # OPWEST")
    # Everything else, and the files that this file includes, is inside.
    before = text[: text.index("menuconfig OPWEST\n")]
    assert not re.search(r"^\s*[^#\s]", before, re.MULTILINE)


def snippets():
    """Return the snippets by name: the folder, and the files for all boards and by regular expression."""
    found = {}
    for path in sorted((RUNTIME / "snippets").rglob("snippet.yml")):
        content = yaml.safe_load(path.read_text())
        found[content["name"]] = path.parent, content["append"], content.get("boards", {})
    return found


def conf_of(name, board):
    """Return the values that a snippet sets for a board, as scripts/snippets.py of Zephyr selects its files."""
    folder, always, boards = snippets()[name]
    files = [always["EXTRA_CONF_FILE"]]
    for pattern, settings in boards.items():
        assert pattern.startswith("/") and pattern.endswith("/")
        if re.fullmatch(pattern[1:-1], board) and "EXTRA_CONF_FILE" in settings["append"]:
            files.append(settings["append"]["EXTRA_CONF_FILE"])
    values = {}
    for file in files:
        lines = [line for line in (folder / file).read_text().splitlines() if line and not line.startswith("#")]
        for line in lines:
            symbol, value = re.fullmatch(r"CONFIG_(\w+)=(\S+)", line).groups()
            assert values.get(symbol, value) == value, (board, symbol)
            values[symbol] = value
    return values


SHELL = ("native_sim", "native_sim/native/64", "native_posix_64")
SMP_SHELL = ("mps2/an386", "mps2_an385", "mps3/corstone300/an547", "mps4/corstone315/fvp", "v2m_beetle")
SMP_UART = (
    *("nucleo_l4r5zi", "nrf52840dk/nrf52840", "qemu_cortex_m3", "nano_33_ble/nrf52840", "nsim", "v2m_musca_b1"),
    *("max32655evkit/max32655/m4", "mimxrt1050_evk", "mpfs_icicle", "vmu_rt1170", "esp32c3_devkitm", "b_u585i_iot02a"),
)


@pytest.mark.parametrize("service", ["opwest-service", "opwest-bundle-service"])
def test_every_board_has_one_transport(service):
    own = "OPWEST_BUNDLE_SERVICE" if service == "opwest-bundle-service" else "OPWEST_SERVICE"
    for board in (*SHELL, *SMP_SHELL, *SMP_UART):
        values = conf_of(service, board)
        assert values[own] == "y"
        used = {"SHELL", "MCUMGR_TRANSPORT_SHELL", "MCUMGR_TRANSPORT_UART"} & {k for k, v in values.items() if v == "y"}
        if board in SHELL:
            assert used == {"SHELL"} and "MCUMGR" not in values, board
        else:
            over_shell = {"SHELL", "MCUMGR_TRANSPORT_SHELL"}
            assert used == (over_shell if board in SMP_SHELL else {"MCUMGR_TRANSPORT_UART"}), board
            assert values["MCUMGR"] == values["ZCBOR"] == values["MCUMGR_GRP_OS_MCUMGR_PARAMS"] == "y"
            assert int(values["MCUMGR_SMP_CBOR_MAX_MAIN_MAP_ENTRIES"]) > 22, "OPWEST_BUNDLE_SMP depends on it"
        with_shell = conf_of(f"{service}-shell", board)
        assert with_shell["MCUMGR_TRANSPORT_SHELL"] == "y" and "MCUMGR_TRANSPORT_UART" not in with_shell


def test_udp_on_this_machine_has_smp_too():
    values = conf_of("opwest-udp", "native_sim/native/64")
    assert values["MCUMGR"] == values["MCUMGR_TRANSPORT_UDP"] == values["NET_NATIVE_OFFLOADED_SOCKETS"] == "y"
    assert "MCUMGR" not in conf_of("opwest-udp", "nrf52840dk/nrf52840"), "the service sets it"


CMAKE = [
    path
    for folder in (RUNTIME, ROOT / "project_template", ROOT / "generator" / "opwest" / "drafting" / "templates")
    for path in sorted(folder.rglob("*"))
    if path.name.removesuffix(".jinja").endswith(("CMakeLists.txt", ".cmake"))
]


@pytest.mark.parametrize("path", CMAKE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_cmake_files_leave_the_cache_and_their_includer_alone(path):
    text = path.read_text()
    assert not re.search(r"\bGLOB_RECURSE\b|\bFORCE\b|\bCACHE (INTERNAL|STRING|PATH|BOOL)\b", text)
    outside = re.sub(r"^function\(.*?^endfunction\(\)$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"^\s*return\(\)", outside, re.MULTILINE)
