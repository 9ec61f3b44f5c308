# SPDX-License-Identifier: Apache-2.0
"""Errors before CMake runs, with a small tree like Zephyr's."""

import json

import pytest
from opwest.base.resources import resource
from opwest.cli.main import main
from opwest.zephyr.version import BOARD_NAME, Version, board_fault, cortex_m, parse_version, successors
from opwest.zephyr.workspace import Workspace, find_workspace

BOARDS = {
    "arm/mps3": "board:\n  name: mps3\n  socs:\n  - name: corstone300\n    variants:\n    - name: an547\n",
    "native/native_sim": "boards:\n- name: native_sim\n  socs:\n  - name: native\n    variants: [{name: '64'}]\n",
    "nordic/dk": "board: {name: nrf5340dk, socs: [{name: nrf5340, variants: [{name: ns, cpucluster: cpuapp}]}]}\n",
    "st/disco": "board: {name: disco, socs: [{name: stm32l4r5xx}]}\n",
    "broken/one": "board: [\n",
}
OPERATOR = "#include <stdint.h>\nint32_t f(float *y);\nint32_t f(float *y) { *y = 1; return 0; }\n"
MANIFEST = """version: 1
model: tiny
objects: [{files: [f.c]}]
operators: {f: {args: [{name: y, dtype: float32, shape: [1], direction: out}]}}
externals: [{symbol: helper, from: a driver, kconfig: CONFIG_HELPER}]
run: {inputs: {}, outputs: {y: {dtype: float32, shape: [1]}}, steps: [{call: f, args: [y]}]}
"""


@pytest.fixture
def tree(tmp_path):
    base = tmp_path / "work" / "zephyr"
    base.mkdir(parents=True)
    (tmp_path / "work" / ".west").mkdir()
    (base / "VERSION").write_text("VERSION_MAJOR = 4\nVERSION_MINOR = 2\nPATCHLEVEL = 0\nEXTRAVERSION = rc1\n")
    (base / "west.yml").write_text(
        "manifest: {projects: [{name: cmsis_6, path: modules/hal/cmsis_6}, {name: hal_stm32}, {name: hal_nordic}]}\n"
    )
    for vendor, soc in (("st", "stm32l4r5xx"), ("nordic", "nrf5340"), ("arm", "corstone300")):
        (base / "soc" / vendor).mkdir(parents=True)
        clusters = "        cpuclusters: [{name: cpuapp}, {name: cpunet}]\n" if vendor == "nordic" else ""
        text = f"family:\n  - name: all\n    socs:\n      - name: {soc}\n{clusters}"
        (base / "soc" / vendor / "soc.yml").write_text(text)
    for folder, text in BOARDS.items():
        (base / "boards" / folder).mkdir(parents=True)
        (base / "boards" / folder / "board.yml").write_text(text)
    (base / "boards/arm/mps3/mps3_corstone300_an547.yaml").write_text("identifier: mps3/corstone300/an547\narch: arm\n")
    (base / "boards/st/disco/disco.yaml").write_text("identifier: disco\narch: arm\n")
    (base / "Kconfig").write_text("config PRESENT\n\tbool\nconfig $(module)_LOG_LEVEL_DBG # made\n")
    (tmp_path / "f.c").write_text(OPERATOR)
    (tmp_path / "manifest.yaml").write_text(MANIFEST)
    return base


def checked(tree, capsys, *arguments, manifest=MANIFEST):
    file = tree.parents[1] / "manifest.yaml"
    file.write_text(manifest)
    code = main(["check", str(file), "--zephyr-base", str(tree), *arguments])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "version"),
    [
        *(
            ("4.2", Version(4, 2)),
            ("v3.7.1", Version(3, 7, 1)),
            ("4.2.0-rc1", Version(4, 2)),
            ("3.4.99", Version(3, 4, 99)),
        ),
        *(("4", None), ("", None), ("four", None), ("4.2.0.1x.y z", Version(4, 2))),
    ],
)
def test_versions_are_read(text, version):
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("board", "version", "instead"),
    [
        ("native_posix", (4, 2), "native_sim"),
        ("native_posix_64", (4, 2), "native_sim/native/64"),
        ("native_posix_64", (4, 1), None),
        ("native_sim_64", (3, 7), "native_sim/native/64"),
        ("native_sim_64", (3, 6), None),
        ("native_sim", (3, 4), "native_posix"),
        ("native_sim/native/64", (3, 4), "native_posix_64"),
        ("native_sim/native/64", (3, 6), "native_sim_64"),
        ("native_sim_64", (3, 4), "native_posix_64"),
        ("mps3/corstone300/an547", (3, 6), "mps3_an547"),
        ("nrf5340dk/nrf5340/cpuapp", (3, 6), "nrf5340dk_nrf5340_cpuapp"),
        ("mps3/corstone300/an547", (3, 7), None),
        ("disco@B/soc", (3, 5), "disco_soc"),
    ],
)
def test_names_of_boards_by_version(board, version, instead):
    fault = board_fault(board, Version(*version))
    assert (fault and fault[1]) == instead
    assert fault is None or f"found {version[0]}.{version[1]}" in fault[0]


@pytest.mark.parametrize(
    ("board", "expected"),
    [
        ("mps2_an385", ["mps2/an385"]),
        ("mps3_an547", ["mps3/corstone300/an547"]),
        ("mps2_an521", ["mps2/an521/cpu0", "mps2/an521/cpu1"]),
        ("dk_nrf5340_cpuapp", ["dk/nrf5340/cpuapp"]),
        ("lpc55s69_evk_cpu0", ["lpc55s69_evk/lpc55s69/cpu0"]),
        ("qemu_xtensa", ["qemu_xtensa/dc233c"]),
        ("absent", []),
    ],
)
def test_boards_of_hardware_model_2_by_former_names(board, expected):
    full = ["mps2/an385", "mps2//an385", "mps2/an521/cpu0", "mps2/an521/cpu1", "mps3/corstone300/an547"]
    full += ["dk/nrf5340/cpuapp", "lpc55s69_evk/lpc55s69/cpu0", "lpc55s69_evk/*/cpu0", "qemu_xtensa/dc233c"]
    assert successors(board, full, {"qemu_xtensa": "qemu_xtensa/dc233c"}) == expected


def test_boards_of_the_tree(tree):
    boards = Workspace(tree).boards
    assert boards["native_sim"] == {"native_sim", "native_sim/native", "native_sim/native/64", "native_sim//64"}
    assert "mps3/corstone300/an547" in boards["mps3"] and "broken" not in boards


@pytest.mark.parametrize(
    "board", ["native_sim/native/64", "disco", "disco@2", "nrf5340dk/nrf5340/cpuapp", "mps3//an547"]
)
def test_existing_board(tree, capsys, board):
    code, text = checked(tree, capsys, "--board", board)
    assert code == 0 and "error" not in text


@pytest.mark.parametrize(
    ("board", "message"),
    [
        ("mps33", "error: unknown board 'mps33' in {tree}\n  hint: did you mean 'mps3'?"),
        (
            "0123456789",
            "error: unknown board '0123456789' in {tree}\n"
            "  hint: `west boards` lists the boards; set BOARD_ROOT for your own",
        ),
        (
            "mps3/corstone300/an548",
            "error: unknown qualifiers of board 'mps3': 'mps3/corstone300/an548'\n  expected: mps3 or mps3//an547",
        ),
        ("native_posix", "native_posix was removed in Zephyr 4.2, found 4.2\n  expected: native_sim"),
        ("mps3_corstone300_an547", "unknown board 'mps3_corstone300_an547' in {tree}\n  hint: did you mean 'mps3/cor"),
        ("old_disco", "unknown board 'old_disco' in {tree}\n  hint: did you mean 'disco/new'?"),
    ],
)
def test_missing_board(tree, capsys, board, message):
    (tree / "boards" / "deprecated.cmake").write_text("set(old_disco_DEPRECATED\n    disco/new\n)\n")
    code, text = checked(tree, capsys, "--board", board)
    assert code == 1 and message.format(tree=tree) in text


def test_boards_of_the_manifest_cause_warnings(tree, capsys):
    manifest = MANIFEST + "boards: [native_sim, elsewhere]\n"
    code, text = checked(tree, capsys, manifest=manifest)
    boards = f"manifest.yaml:{manifest.count(chr(10))}:22"
    assert code == 0 and f"{boards}: warning: unknown board 'elsewhere'" in text


def test_missing_module_is_reported_with_its_command(tree, capsys):
    code, text = checked(tree, capsys, "--board", "mps3/corstone300/an547", "--board", "disco")
    assert code == 0
    assert "required for board mps3/corstone300/an547\n  hint: run `west update cmsis_6`" in text
    assert "required for board disco\n  hint: run `west update hal_stm32`" in text
    text = checked(tree, capsys, "--board", "nrf5340dk/nrf5340/cpuapp")[1]
    assert "required for board nrf5340dk/nrf5340/cpuapp\n  hint: run `west update hal" in text
    (tree.parent / ".west/config").write_text("[manifest]\npath = own\n")
    (tree.parent / "own").mkdir()
    (tree.parent / "own/west.yml").write_text(
        "manifest: {group-filter: [-vendors], projects: [{name: hal_nordic, groups: [vendors]}]}\n"
    )
    text = checked(tree, capsys, "--board", "nrf5340dk/nrf5340/cpuapp")[1]
    assert (
        "required for board nrf5340dk/nrf5340/cpuapp\n  hint: activate its group 'vendors': "
        "run `west config manifest.group-filter -- +vendors`, then `west update`\n"
    ) in text
    (tree.parent / "modules/hal/cmsis_6/zephyr").mkdir(parents=True)
    (tree.parent / "modules/hal/cmsis_6/zephyr/module.yml").write_text("name: cmsis_6\n")
    assert "cmsis_6" not in checked(tree, capsys, "--board", "mps3/corstone300/an547")[1]


def test_unknown_option_is_reported(tree, capsys):
    assert (
        "manifest.yaml:5:13: warning: CONFIG_HELPER of external 'helper' is not defined in the Kconfig"
        in checked(tree, capsys)[1]
    )
    assert (
        "CONFIG_PRESENT" not in checked(tree, capsys, manifest=MANIFEST.replace("CONFIG_HELPER", "CONFIG_PRESENT"))[1]
    )


def test_unknown_option_of_the_application_is_reported(tree, capsys):
    options = (
        "application: {{kconfig: {{CONFIG_PRESENT: y, CONFIG_FOO_LOG_LEVEL_DBG: y, CONFIG_DT_HAS_X: y, {}: y}}}}\n"
    )
    code, text = checked(tree, capsys, manifest=MANIFEST + options.format("CONFIG_PRESEMT"))
    assert code == 0
    assert text.count("is not defined in the Kconfig files") == 2  # this one and CONFIG_HELPER
    assert "manifest.yaml:7:93: warning: CONFIG_PRESEMT is not defined in the Kconfig files of" in text
    assert (
        "hint: did you mean CONFIG_PRESENT? "
        "Otherwise check with `west list` whether the module that defines it is missing" in text
    )
    own = tree.parent / "application"
    own.mkdir()
    (own / "Kconfig").write_text("menuconfig PRESEMT\n")
    assert "PRESEMT" not in checked(tree, capsys, manifest=MANIFEST + options.format("CONFIG_PRESEMT"))[1]


def test_boards_outside_the_tree(tree, capsys, monkeypatch, tmp_path):
    for folder, name in ((tmp_path / "mine" / "boards" / "own", "own"), (tree.parent / "app/hw/boards/x/y", "other")):
        folder.mkdir(parents=True)
        (folder / "board.yml").write_text(f"board: {{name: {name}, socs: [{{name: corstone300}}]}}\n")
    (tree.parent / "app" / "zephyr").mkdir()
    (tree.parent / "app" / "zephyr" / "module.yml").write_text("build:\n  settings:\n    board_root: hw\n")
    assert checked(tree, capsys, "--board", "other")[0] == 0
    assert checked(tree, capsys, "--board", "own")[0] == 1
    monkeypatch.setenv("BOARD_ROOT", f"{tmp_path / 'nothing'};{tmp_path / 'mine'}")
    assert checked(tree, capsys, "--board", "own")[0] == 0


def test_board_of_several_socs(tree, capsys):
    (tree / "boards/st/two").mkdir()
    (tree / "boards/st/two/board.yml").write_text("board: {name: two, socs: [{name: a}, {name: b}]}\n")
    code, text = checked(tree, capsys, "--board", "two")
    assert code == 1
    assert "error: board 'two' has several SoCs or CPU clusters: specify one\n  expected: two/a or two/b" in text


def test_board_of_several_clusters(tree, capsys):
    expected = " or ".join(
        f"nrf5340dk/{soc}/{one}" for soc in ("", "nrf5340") for one in ("cpuapp", "cpuapp/ns", "cpunet")
    )
    for board, fault in (
        ("nrf5340dk", "board 'nrf5340dk' has several SoCs or CPU clusters: specify one"),
        ("nrf5340dk/nrf5340", "unknown qualifiers of board 'nrf5340dk': 'nrf5340dk/nrf5340'"),
    ):
        code, text = checked(tree, capsys, "--board", board)
        assert code == 1 and f"error: {fault}\n  expected: {expected}\n" in text


@pytest.mark.parametrize("board", ["", "foo bar", "/", "native_sim;rm", "mps2@"])
def test_no_name_of_a_board(tree, capsys, monkeypatch, board):
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    assert main(["check", str(tree.parents[1] / "manifest.yaml"), "--board", board]) == 1
    found = f"error: invalid --board {board!r}\n  expected: a board with its qualifiers, such as mps2/an385\n"
    assert found in capsys.readouterr().err


def test_form_of_board_names_is_that_of_the_schema():
    schema = json.loads((resource("schemas") / "device-manifest.schema.json").read_text(encoding="utf-8"))
    assert schema["$defs"]["board"]["pattern"] == f"^{BOARD_NAME.pattern}$"


def test_version_and_tree(tree, capsys, monkeypatch):
    file = str(tree.parents[1] / "manifest.yaml")
    assert main(["check", file, "--zephyr-version", "four"]) == 1
    assert (
        "error: invalid --zephyr-version 'four'\n  expected: a version, such as 4.2 or 3.7.1" in capsys.readouterr().err
    )
    assert main(["check", file, "--zephyr-base", str(tree.parent)]) == 1
    assert "is not a Zephyr tree: missing file 'VERSION'" in capsys.readouterr().err
    assert main(["check", file, "--zephyr-version", "3.3"]) == 0
    assert "warning: Zephyr 3.3 is older than 3.4, the oldest tested version" in capsys.readouterr().err
    monkeypatch.delenv("ZEPHYR_BASE", raising=False)
    monkeypatch.chdir(tree.parent)
    found = find_workspace()
    assert found is not None and found.base == tree and found.version == Version(4, 2)
    (tree.parent / ".west" / "config").write_text("[manifest]\npath = x\n[zephyr]\nbase = other\n")
    assert find_workspace() is None


def test_zephyr_base_without_a_tree(tree, capsys, monkeypatch):
    """It is reported, and no other workspace is used in its place."""
    monkeypatch.chdir(tree.parent)
    monkeypatch.setenv("ZEPHYR_BASE", str(tree.parent))
    manifest, app = str(tree.parents[1] / "manifest.yaml"), str(tree.parents[1] / "app")
    warning = (
        f"opwest: warning: ZEPHYR_BASE is '{tree.parent}', which is not a Zephyr tree: missing file 'VERSION'\n"
        "  hint: boards, modules and Kconfig symbols are not checked\n"
    )
    for words in (["check", manifest], ["generate", manifest, "-o", app], ["update", app]):
        assert main(words) == 0
        assert capsys.readouterr().err == warning
    assert find_workspace() is None
    assert main(["run", app, "--board", "native_sim"]) == 1
    assert capsys.readouterr().err == (
        f"opwest: error: ZEPHYR_BASE is '{tree.parent}', which is not a Zephyr tree: missing file 'VERSION'\n"
        "  hint: correct or unset ZEPHYR_BASE, or give --zephyr-base\n"
    )
    monkeypatch.setenv("ZEPHYR_BASE", "")
    assert find_workspace() is not None


def test_generate_emits_configuration_for_a_given_board(tree, tmp_path):
    file = str(tmp_path / "manifest.yaml")
    assert (
        main(["generate", file, "-o", str(tmp_path / "app"), "--board", "mps3//an547", "--zephyr-base", str(tree)]) == 0
    )
    assert "mps3//an547" in (tmp_path / "app/sample.yaml").read_text()


@pytest.mark.parametrize(
    ("version", "module"),
    [("3.4", "cmsis"), ("3.7", "cmsis"), ("4.1", "cmsis"), ("4.2", "cmsis_6"), ("4.5", "cmsis_6")],
)
def test_the_module_of_cortex_m_depends_on_the_version(tree, capsys, version, module):
    """Zephyr's migration guide of 4.2; 4.1 was built with cmsis only."""
    parsed = parse_version(version)
    assert parsed is not None and cortex_m(parsed) == module
    if parsed.pair >= (3, 7):
        (tree / "VERSION").write_text(
            f"VERSION_MAJOR = {parsed.major}\nVERSION_MINOR = {parsed.minor}\nPATCHLEVEL = 0\n"
        )
        assert f"hint: run `west update {module}`" in checked(tree, capsys, "--board", "mps3/corstone300/an547")[1]


@pytest.mark.parametrize("version", ["3.7", "3.7.1", "4.1", "4.3", "4.4", "4.5"])
@pytest.mark.parametrize("board", ["native_sim", "native_sim/native/64", "mps2/an385", "nrf5340dk/nrf5340/cpuapp/ns"])
def test_prepared_versions_accept_names_with_qualifiers(version, board):
    parsed = parse_version(version)
    assert parsed is not None and board_fault(board, parsed) is None
    assert board_fault(board, Version(3, 4)) is not None


def test_modules_of_tf_m(tree, capsys):
    (tree / "soc/nordic/Kconfig.defconfig").write_text(
        "config BUILD_WITH_TFM\n\tdefault y if BOARD_NRF5340DK_NRF5340_CPUAPP_NS\n"
    )
    code, text = checked(tree, capsys, "--board", "nrf5340dk/nrf5340/cpuapp/ns")
    assert code == 0
    for name in ("trusted-firmware-m", "mbedtls"):
        assert (
            f"warning: missing module '{name}' in workspace {tree.parent}, required for TF-M on board "
            f"nrf5340dk/nrf5340/cpuapp/ns\n  hint: run `west update {name}`" in text
        )
    _, text = checked(tree, capsys, "--board", "nrf5340dk/nrf5340/cpuapp")
    assert "TF-M" not in text
