# SPDX-License-Identifier: Apache-2.0
"""The scripts of several versions of Python, hosts, benchmarks, and the toolchain for RISC-V."""

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

# --- The table of the matrix: from records of images, and in the page

ROOT = Path(__file__).resolve().parents[3]
Capture = pytest.CaptureFixture[str]


def record(back_end, version="4.2", board="b", options="", **more):
    return {"version": version, "board": board, "options": options, "back_end": back_end, **more}


RECORDS = [
    record("llvm", "4.10", cells={"packed": "ok", "ffi": "2 of 3 cases equal"}),
    record("c", "4.10", cells={"packed": "ok", "ffi": "ok"}),
    record("c", "4.2", skipped="no tree"),
    record("llvm", "4.2", skipped="no tree"),
    record("c", "4.2", options="-DCONFIG_FPU=y", cells={"packed": "ok", "ffi": "ok"}),
    record("llvm", "4.2", options="-DCONFIG_FPU=y", failed="AssertionError"),
]


@pytest.fixture
def matrix(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import host_matrix

    return host_matrix


def test_rows(matrix):
    assert matrix.table(RECORDS) == [
        ["Zephyr", "board", "packed", "ffi"],
        ["4.2", "b", "not run: no tree", "not run: no tree"],
        ["4.2", "b, FPU", "c, llvm: FAILED: AssertionError", "c, llvm: FAILED: AssertionError"],
        ["4.10", "b", "c, llvm", "c, llvm: 2 of 3 cases equal"],
    ]


def test_markdown_has_a_common_reason_once(matrix):
    lines = matrix.markdown(matrix.table(RECORDS)).splitlines()
    assert lines[:3] == ["| Zephyr | board | packed | ffi |", "|---|---|---|---|", "| 4.2 | b | not run: no tree |  |"]


def test_main_fails_for_a_failed_image(matrix, monkeypatch, tmp_path, capsys):
    folder = tmp_path / "matrix"
    monkeypatch.setattr(matrix, "RECORDS", folder)
    monkeypatch.setattr(matrix, "TABLE", tmp_path / "matrix.txt")
    assert matrix.main([]) == 1
    assert capsys.readouterr().err == f"{folder}: error: no records\n  expected: those of `make matrix`\n"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(RECORDS[1]))
    assert matrix.main([]) == 0
    assert capsys.readouterr().out == "Zephyr  board  packed  ffi\n4.10    b      c       c\n"
    assert (tmp_path / "matrix.txt").read_text() == "Zephyr  board  packed  ffi\n4.10    b      c       c\n"
    (folder / "b.json").write_text(json.dumps(RECORDS[0]))
    assert matrix.main([]) == 1


def test_the_page_has_the_stored_records(matrix):
    text = matrix.PAGE.read_text(encoding="utf-8")
    stored = json.loads(matrix.STORED.read_text(encoding="utf-8"))
    assert matrix.page(text, stored) == text, "run: python scripts/host_matrix.py --write"
    assert not [one for one in stored if "failed" in one]
    with pytest.raises(matrix.RecordError, match=r"^host-matrix.md: error: no table\n  expected: the lines '<!-- matr"):
        matrix.page("no markers", stored)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "error: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "error: no record of an image\n  expected: version, board, options, back_end"),
        ('{"version": "main", "board": "b", "options": "", "back_end": "c"}', "error: no record of an image"),
    ],
)
def test_invalid_records(matrix, monkeypatch, tmp_path, capsys, content, message):
    monkeypatch.setattr(matrix, "RECORDS", tmp_path)
    monkeypatch.setattr(matrix, "TABLE", tmp_path / "matrix.txt")
    (tmp_path / "a.json").write_text(content)
    assert matrix.main([]) == 1
    assert capsys.readouterr().err.startswith(f"{tmp_path / 'a.json'}: {message}")
    for name, path in {"ROOT": tmp_path, "STORED": tmp_path / "none.json", "PAGE": tmp_path / "page.md"}.items():
        monkeypatch.setattr(matrix, name, path)
    assert matrix.main(["--write"]) == 1
    assert "none.json: error: [Errno 2] No such file" in capsys.readouterr().err


# --- scripts/pythons.py: the choice of interpreters, and environments that cannot be made


@pytest.fixture
def pythons(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import pythons

    return pythons


def test_the_newest_interpreter_of_pyenv_is_chosen(pythons, monkeypatch, tmp_path):
    for patch in ("3.12.9", "3.12.10"):
        program = tmp_path / ".pyenv" / "versions" / patch / "bin" / "python3.12"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert pythons.find_python("3.12") == str(program)
    assert pythons.find_python("9.9") is None


def test_path_of_the_first_version_with_an_interpreter(pythons, monkeypatch, capsys):
    monkeypatch.setattr(pythons, "find_python", {"3.11": "/b/python3.11", "3.12": "/a/python3.12"}.get)
    monkeypatch.setattr("sys.argv", ["pythons.py", "--path", "--versions", "3.13", "3.12", "3.11"])
    assert (pythons.main(), capsys.readouterr().out) == (0, "/a/python3.12\n")
    monkeypatch.setattr("sys.argv", ["pythons.py", "--path", "--versions", "3.14", "3.13"])
    assert pythons.main() == 1
    assert capsys.readouterr() == ("", "error: no Python 3.14, 3.13 in PATH or ~/.pyenv/versions\n")


def test_environment_that_fails_is_reported(pythons, monkeypatch, capsys):
    def fails(version, interpreter):
        raise subprocess.CalledProcessError(7, ["uv", version, interpreter], stderr="uv: no network")

    monkeypatch.setattr(pythons, "environment", fails)
    monkeypatch.setattr(pythons, "find_python", lambda version: None if version == "9.9" else "python3")
    monkeypatch.setattr("sys.argv", ["pythons.py", "--versions", "3.12", "9.9"])
    assert pythons.main() == 1
    assert capsys.readouterr().out == (
        "== Python 9.9: SKIPPED, no interpreter in PATH or ~/.pyenv/versions\n"
        "== Python 3.12: no environment, exit code 7 of uv\nuv: no network\n"
    )


# --- The collection of the benchmarks' figures, with made-up scripts, and the check of coverage


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    spec = importlib.util.spec_from_file_location("bench_main", ROOT / "benchmarks" / "__main__.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = """\
import sys
sys.path.insert(0, {benchmarks!r})
sys.argv[0] = "made_up.py"
from pathlib import Path
from common import Report
ROW = ["10", 1.5, 2.0, 340, 88]
if __name__ == "__main__":
    report = Report("Made up")
    report.table("Steps.", ["steps", "CPU s", "a / b", "bytes of run", "run"], [ROW], "instructions")
    report.limit("run", 88, {most})
    report.skip("the rest", "there is no tool")
    sys.exit(report.finish(Path(sys.argv[2])))
"""


@pytest.mark.parametrize(("most", "verdict"), [(90, "met"), (80, "NOT MET")])
def test_figures_of_a_script(bench, tmp_path, most, verdict):
    script = tmp_path / "made_up.py"
    script.write_text(SCRIPT.format(benchmarks=str(ROOT / "benchmarks"), most=most))
    rows, well = bench.measure("made_up", script, tmp_path)
    assert well == (verdict == "met")
    assert [(row["name"], row["value"], row["unit"], row["note"]) for row in rows] == [
        ("10 steps: CPU s", 1.5, "s", "Steps."),
        ("10 steps: a / b", 2.0, "", "Steps."),
        ("10 steps: bytes of run", 340, "bytes", "Steps."),
        ("10 steps: run", 88, "instructions", "Steps."),
        ("run", 88, "", f"{verdict}: at most {most}"),
        ("skipped", None, "", "the rest: there is no tool"),
    ]
    assert {row["command"] for row in rows} == {f"python {tmp_path.name}/made_up.py"}
    table = bench.markdown(rows, "this machine")
    assert "| made_up | 10 steps: CPU s | 1.500 | s | Steps. |\n" in table
    assert "| made_up | skipped | - |  | the rest: there is no tool |\n" in table


def test_directory_of_kept_files(bench, monkeypatch, tmp_path, capsys):
    """Builds run in other directories: the path is absolute. Files of an earlier run would be mixed with new ones."""
    import common

    monkeypatch.chdir(tmp_path)
    assert common.parser("").parse_args(["--keep", "kept"]).keep == tmp_path / "kept"
    (tmp_path / "full" / "old").mkdir(parents=True)
    with pytest.raises(SystemExit):
        common.parser("").parse_args(["--keep", "full"])
    assert "'full' is not empty: expected a new or empty directory\n" in capsys.readouterr().err


@pytest.fixture
def figures(monkeypatch, tmp_path):
    """Functions that run the script on a page and a store of their own, and that write the results of a benchmark."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import benchmark_figures

    page, store = tmp_path / "page.md", tmp_path / "benchmarks" / "figures.json"
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "planner.py").touch()
    page.write_text("A\n<!-- figures: planner -->\n<!-- end of figures -->\nB\n")
    store.write_text("{}\n")
    for name, value in {"PAGES": (page,), "STORE": store, "ROOT": tmp_path}.items():
        monkeypatch.setattr(benchmark_figures, name, value)

    def run(*words):
        monkeypatch.setattr("sys.argv", ["benchmark_figures.py", "--results", str(tmp_path), *words])
        return benchmark_figures.main(), page.read_text()

    def result(command, tables, value):
        source = {"command": command, "date": "2026-01-02", "commit": "abc", "machine": "m", "tools": {"cc": "12"}}
        made = [
            {"title": title, "columns": ["x", "y"], "rows": [[title, value]], "unit": "", "is_detail": title == "steps"}
            for title in tables
        ]
        limit = {"what": "y of a", "value": value, "most": 7, "unit": "", "met": value <= 7}
        (tmp_path / "planner.json").write_text(
            json.dumps({"benchmark": "P", "skipped": [], "tables": made, "limits": [limit], **source})
        )

    return run, result


def test_figures_of_the_pages(figures, capsys):
    run, result = figures
    result("python p.py", ["a", "b", "steps"], 5)
    assert run("--check")[0] == 1
    out = "error: page.md differs from figures.json: run `python scripts/benchmark_figures.py`\n"
    assert capsys.readouterr().out == out
    code, text = run("--store", "planner")
    assert code == 0
    head = "`python p.py`, 2026-01-02, commit abc, cc 12:"
    tables = [f"{name}\n\n| x | y |\n|---|--:|\n| {name} | 5 |" for name in "ab"]
    parts = [head, *tables, "Limits met: 1 of 1."]
    assert text == "\n\n".join(["A\n<!-- figures: planner -->", *parts, "<!-- end of figures -->\nB\n"])
    result("python p.py --board b", ["b"], 8)
    assert run("--check") == (0, text)
    code, text = run("--store")
    assert code == 0 and "| a | 5 |" in text and "| b | 8 |" in text and "| b | 5 |" not in text
    assert "Limits met: 0 of 1. Not met:\n\n| limit  | value | at most |\n" in text
    result("python p.py", ["c"], 3)
    assert "| a | 5 |" not in run("--store")[1]


def test_missing_figures(figures, capsys, tmp_path):
    run, result = figures
    assert "Not stored: `python benchmarks --only planner` measures these figures.\n" in run()[1]
    assert run("--store", "planner")[0] == 1
    assert capsys.readouterr().err.endswith("expected files of `python benchmarks`\n")
    result("python p.py", ["steps"], 3)
    assert run("--store")[0] == 1
    assert capsys.readouterr().err.endswith("planner.json has no tables: nothing was measured\n")
    result("python p.py --only=a", ["a"], 3)
    assert run("--store")[0] == 1
    assert capsys.readouterr().err.endswith(
        "has only some models: 'python p.py --only=a'; run the benchmark without --only\n"
    )
    (tmp_path / "page.md").write_text("<!-- figures: planer -->\n<!-- end of figures -->\n")
    assert run("--check")[0] == 1
    assert "unknown benchmark 'planer': expected the name of a script" in capsys.readouterr().err


def test_pages_have_the_stored_figures(monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import benchmark_figures

    monkeypatch.setattr("sys.argv", ["benchmark_figures.py", "--check"])
    assert benchmark_figures.main() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "well", "reason"),
    [
        (None, True, "no such script"),
        ("raise SystemExit(3)", False, "the script failed with exit code 3: see its output"),
        ("import time; time.sleep(60)", False, "timeout after 0.5 s"),
    ],
)
def test_scripts_without_measurements(bench, tmp_path, text, well, reason):
    script = tmp_path / "planner.py"
    if text is not None:
        script.write_text(text)
    [row], ended = bench.measure("planner", script, tmp_path, seconds=0.5 if text and "sleep" in text else 60)
    assert (ended, row["name"], row["value"], row["note"]) == (well, "not measured", None, reason)


def test_every_script_is_a_benchmark_or_known_to_be_absent(bench):
    found = dict(bench.scripts(ROOT / "benchmarks", []))
    assert {"generation", "registry_lookup", "run_overhead", "metadata_size", "planner"} <= set(found)
    assert "common" not in found
    assert list(dict(bench.scripts(ROOT / "benchmarks", ["run_overhead"]))) == ["run_overhead"]


# --- The toolchain of a distribution for Zephyr's RISC-V boards, with a made-up compiler, and sizes of its images

SECTIONS = """
  [Nr] Name              Type            Addr     Off    Size   ES Flg Lk Inf Al
  [ 0]                   NULL            00000000 000000 000000 00      0   0  0
  [ 4] text              PROGBITS        80000150 0001f0 002000 00  AX  0   0  4
  [11] rodata            PROGBITS        80004678 004718 000400 00   A  0   0  8
  [12] rom_mpu_padding   NOBITS          80046ca4 046d44 00035c 00  WA  0   0  1
  [13] bss               NOBITS          80047000 046d44 000030 00  WA  0   0  8
  [15] datas             PROGBITS        80048bf0 046d44 000004 00  WA  0   0  4
  [18] .last_ram_section PROGBITS        80048c40 048614 000000 00   W  0   0  1
  [21] .debug_info       PROGBITS        00000000 048e90 010e9a 00      0   0  1
"""


@pytest.fixture
def riscv(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import riscv_toolchain

    return riscv_toolchain


@pytest.fixture
def tools(riscv, monkeypatch, tmp_path):
    """The only directory of PATH with tools for RISC-V; they print their words."""
    tools = tmp_path / "tools"
    tools.mkdir()
    script(tools / f"{riscv.PREFIX}gcc", 'for word in "$@"; do echo "[$word]"; done')
    script(tools / f"{riscv.PREFIX}nm", "echo nm")
    monkeypatch.setenv("PATH", f"{tools}:{tmp_path}/bin")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sh").symlink_to("/bin/sh")
    return tools


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def made(riscv, folder):
    """Write the toolchain; return the prefix of its tools."""
    riscv.toolchain(folder)
    return riscv.variables(folder)["CROSS_COMPILE"]


def test_tools_of_all_directories_of_path(riscv, tools, monkeypatch, tmp_path):
    """A directory before the others, with links to ccache, has the compilers only."""
    (tmp_path / "links").mkdir()
    script(tmp_path / "links" / f"{riscv.PREFIX}gcc", "echo ccache")
    monkeypatch.setenv("PATH", f"{tmp_path / 'links'}:{tools}:{tmp_path / 'bin'}")
    prefix = made(riscv, tmp_path / "toolchain")
    assert output(f"{prefix}nm") == ["nm"]
    assert output(f"{prefix}gcc", "-c") == ["ccache"]


def output(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def test_the_wrapper_shortens_march_except_in_compilations(riscv, tools, tmp_path):
    prefix = made(riscv, tmp_path / "toolchain")
    gcc, march = f"{prefix}gcc", "-march=rv32imac_zicsr_zifencei"
    assert output(gcc, march, "-o", "a b") == ["[-march=rv32imac]", "[-o]", "[a b]"]
    assert output(gcc, "-print-libgcc-file-name", march) == ["[-print-libgcc-file-name]", "[-march=rv32imac]"]
    for word in ("-c", "-S", "-E"):
        assert output(gcc, march, word, "a.c") == [f"[{march}]", f"[{word}]", "[a.c]"]
    assert output(f"{prefix}nm") == ["nm"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("rv64imafdc", "rv64imafdc"),
        ("rv32imac_zifencei", "rv32imac"),
        ("rv32imac_zba_zicsr_zbb_zifencei_zbs", "rv32imac_zba_zbb_zbs"),
        ("rv32imac_zifencei_zicsr", "rv32imac"),
    ],
)
def test_other_extensions_remain(riscv, tools, tmp_path, given, expected):
    prefix = made(riscv, tmp_path / "toolchain")
    assert output(f"{prefix}gcc", f"-march={given}") == [f"[-march={expected}]"]


def test_the_wrapper_in_path_does_not_run_itself(riscv, tools, tmp_path, monkeypatch):
    folder = tmp_path / "toolchain"
    gcc = made(riscv, folder) + "gcc"
    monkeypatch.setenv("PATH", f"{folder}:{tmp_path}/bin")
    done = subprocess.run([gcc], capture_output=True, text=True, check=False)
    assert done.returncode == 126
    assert done.stderr == f"{gcc}: found itself as {riscv.PREFIX}gcc; remove its directory from PATH\n"
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    done = subprocess.run([gcc], capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr == (
        f"{gcc}: {riscv.PREFIX}gcc not found in PATH (Debian: apt-get install gcc-riscv64-unknown-elf)\n"
    )


def test_main_prints_the_variables(riscv, tools, tmp_path, capsys):
    folder = tmp_path / "tool chain"
    assert riscv.main([str(folder)]) == 0
    assert riscv.main([str(folder)]) == 0, "the directory exists"
    lines = capsys.readouterr().out.splitlines()[:3]
    assert lines == [
        "export ZEPHYR_TOOLCHAIN_VARIANT=cross-compile",
        f"export CROSS_COMPILE='{folder}/{riscv.PREFIX}'",
        "export CCACHE_COMPILERCHECK='%compiler% --version'",
    ]
    assert riscv.main([]) == 2
    assert capsys.readouterr().err == "usage: riscv_toolchain.py DIRECTORY\n"


def test_no_compiler(riscv, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert riscv.main([str(tmp_path / "toolchain")]) == 1
    assert capsys.readouterr().err == (
        "error: riscv64-unknown-elf-gcc not found in PATH (Debian: apt-get install gcc-riscv64-unknown-elf)\n"
    )
    assert not (tmp_path / "toolchain").exists()


def test_sizes_of_an_image_in_one_memory(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import zephyr_images

    script(tmp_path / "made-readelf", f"cat <<'END'\n{SECTIONS}\nEND")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    flash, ram = zephyr_images.sizes_of(tmp_path / "image.elf", "made-")
    assert (flash, ram) == (0x2000 + 0x400 + 4, 0x30 + 4)


def test_constants_of_a_model_in_an_image(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import zephyr_images

    symbols = "00000010 00000100 R m_constant_a\n00000010 00000100 R m_constant_b\n00000200 00000008 R m_constant_c"
    others = "00000300 00000040 R n_constant_a\n00000400 00000050 T m_run\n00000500 T m_constant_sizeless"
    script(tmp_path / "made-nm", f"cat <<'END'\n{symbols}\n{others}\nEND")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert zephyr_images.constants_of(tmp_path / "image.elf", "m", "made-") == 0x108
