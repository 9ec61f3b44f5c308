# SPDX-License-Identifier: Apache-2.0
"""The conformance suite on a host: the repository's drivers pass it, with sanitizers, and broken drivers do not."""

import difflib
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from conformance_support import (
    EXAMPLE,
    INCLUDES,
    ROOT,
    RUNTIME,
    SANITIZERS,
    SUITE,
    Outcome,
    cases,
    compiled,
    driver_includes,
    driver_sources,
    linked,
    new_driver,
    run,
    suite_sources,
    vector_adder,
)
from requirements_support import need, need_compiler

sys.path.insert(0, str(ROOT / "tests" / "docs"))  # the pages as programs

from pages import block

PAGE = ROOT / "docs" / "writing-drivers.md"
NO_INTERRUPTS = {"interrupt": "a host has no interrupts", "wake_from_interrupt": "a host has no interrupts"}
NO_POWER = dict.fromkeys(
    ("power_counts", "power_open", "power_run", "power_loses_program"), "there is no run-time power management"
)
ON_A_HOST = {"inheritance": "threads of a host have no priorities"} | NO_INTERRUPTS | NO_POWER
CANNOT = "a job of the device cannot be made to have the fault"


def check_passed(outcome: Outcome, skipped: dict[str, str]) -> None:
    """Each case passes on some device, except for those that are skipped on all, with these reasons."""
    assert outcome.code == 0 and not outcome.cases("FAIL"), outcome.text[-6000:]
    assert {case for case, _ in outcome.results} == set(cases())
    assert set(cases()) - outcome.cases("PASS") == set(skipped)
    for (case, _), (_, why) in outcome.results.items():
        if case in skipped:
            assert why == skipped[case]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Path]]:
    """Compile the suite and the runtime, once with each sanitizer; return the objects."""

    @cache
    def objects(sanitizer: str) -> list[Path]:
        need_compiler("gcc", SANITIZERS[sanitizer], link=True)
        return compiled(suite_sources(), [*SANITIZERS[sanitizer], *INCLUDES], tmp_path_factory.mktemp("suite"))

    return objects


def outcome_of(driver: Path, suite: Callable[[str], list[Path]], sanitizer: str, folder: Path) -> Outcome:
    flags = [*SANITIZERS[sanitizer], *driver_includes(driver)]
    objects = [*suite(sanitizer), *compiled(driver_sources(driver), flags, folder / "objects")]
    return run(linked(objects, flags, folder / "conformance"))


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_emulated_accelerator(tmp_path: Path, suite: Callable[[str], list[Path]], sanitizer: str) -> None:
    driver = [path for path in (RUNTIME / "drivers" / "npu_emul").glob("*.c") if path.name != "npu_emul_zephyr.c"]
    flags = [*SANITIZERS[sanitizer], *INCLUDES]
    sources = [*driver, Path(__file__).parent / "npu_emul" / "adapter.c"]
    objects = [*suite(sanitizer), *compiled(sources, flags, tmp_path / "objects")]
    in_a_thread = {"interrupt": "jobs of the device end in a thread"}
    cannot = {"early": f"{CANNOT} EARLY", "twice": f"{CANNOT} TWICE"}
    check_passed(run(linked(objects, flags, tmp_path / "conformance")), ON_A_HOST | in_a_thread | cannot)


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_new_driver(tmp_path: Path, suite: Callable[[str], list[Path]], sanitizer: str) -> None:
    driver = new_driver(tmp_path / "driver", "my_npu")
    check_passed(outcome_of(driver, suite, sanitizer, tmp_path), ON_A_HOST)


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_vector_adder(tmp_path: Path, suite: Callable[[str], list[Path]], sanitizer: str) -> None:
    check_passed(outcome_of(vector_adder(tmp_path / "driver"), suite, sanitizer, tmp_path), ON_A_HOST)


def test_makefile_of_a_new_driver(tmp_path: Path) -> None:
    """The Makefile has the same sources; without the runtime it reports what to set."""
    need("make")
    need_compiler("gcc", [], link=True)
    driver = new_driver(tmp_path / "driver", "my_npu")
    command = ["make", "-C", str(driver / "tests" / "host"), "CASES=order load_again"]
    done = subprocess.run([*command, f"OPWEST={RUNTIME}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "4 passed, 0 failed, 0 skipped" in done.stdout, done.stdout + done.stderr
    done = subprocess.run([*command, "OPWEST=/absent"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "'/absent' has no conformance suite: set OPWEST to the directory zephyr_module of opwest" in done.stderr


# A fault in the driver, its file, the text and its replacement; the cases that must find it.
BROKEN = {
    "ends_at_every_interrupt": (
        "_device.c",
        "return false;\n\t}\n\tmy_npu_write(dev, REG_ACK",
        "return true;\n\t}\n\tmy_npu_write(dev, REG_ACK",
        {"twice"},
    ),
    "close_aborts_nothing": (
        ".c",
        "\tmy_npu_abort(dev);\n\treturn opwest_accelerator_context_close",
        "\treturn opwest_accelerator_context_close",
        {"hang", "abort_queue"},
    ),
    "close_by_any_thread": (
        ".c",
        "if (!opwest_accelerator_context_is_mine(context_of(dev))) {\n\t\treturn -EPERM;\n\t}\n\tmy_npu_abort(dev);",
        "my_npu_abort(dev);",
        {"other_thread"},
    ),
    "abort_keeps_the_device_running": (
        *("_queue.c", "\t\tmy_npu_device_abort(dev);\n", "\t\t(void)dev;\n"),
        {"abort_queue", "hang"},
    ),
    "queue_is_a_stack": (
        *("_queue.c", "data->head = (uint16_t)((data->head + 1U) % config->queue_depth);", "(void)config;"),
        {"order"},
    ),
    "next_job_is_not_started": (
        *("_queue.c", "\t\tif (data->count > 0U) {\n", "\t\tif (data->count > 1U) {\n"),
        {"order", "leave"},
    ),
    "full_queue_is_an_error": ("_queue.c", *("rc = -EAGAIN;", "rc = -EBUSY;"), {"full_queue"}),
    "full_queue_overwrites": ("_queue.c", *(">= config->queue_depth", "> config->queue_depth"), {"full_queue"}),
    "errors_are_lost": ("_queue.c", *("end(&data->context, dev, error)", "end(&data->context, dev, 0)"), {"error"}),
    "damaged_programs_pass": (
        *("_device.c", "program->size == PROGRAM_SIZE &&", "program->size > 0U &&"),
        {"damaged_program"},
    ),
    "loads_every_time": (
        ".c",
        "return opwest_accelerator_context_load(context_of(dev), dev, program, JOB_SWITCHING,",
        "return load_program(dev, program);\n"
        "\treturn opwest_accelerator_context_load(context_of(dev), dev, program, JOB_SWITCHING,",
        {"load_again", "load_busy"},
    ),
    "free_by_mistake": ("_job.h", *("OPWEST_SWITCH_LOAD", "OPWEST_SWITCH_FREE"), {"load_busy"}),
    "wake_is_missing": (".c", *("opwest_accelerator_context_wake(context_of(dev));", "(void)dev;"), {"wake"}),
    "leave_is_ignored": (
        *(".c", "_sync(context_of(dev), leave, timeout_ms)", "_sync(context_of(dev), leave * 0U, timeout_ms)"),
        {"leave"},
    ),
    "enqueues_without_an_owner": (
        "_queue.c",
        "rc = opwest_accelerator_context_begin(&data->context);",
        "(void)opwest_accelerator_context_begin(&data->context);",
        {"launch_without_owner"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole_driver(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The objects of the driver without a fault."""
    driver = new_driver(tmp_path_factory.mktemp("whole") / "driver", "my_npu")
    return compiled(driver_sources(driver), driver_includes(driver), driver / "objects")


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_driver_fails(
    tmp_path: Path, suite: Callable[[str], list[Path]], whole_driver: list[Path], fault: str
) -> None:
    """The suite finds each fault with the named cases, and goes on with the others."""
    suffix, old, new, found = BROKEN[fault]
    driver = new_driver(tmp_path / "driver", "my_npu")
    place = driver / "drivers" / f"my_npu{suffix}"
    text = place.read_text()
    assert text.count(old) == 1
    place.write_text(text.replace(old, new))
    sources = [place] if suffix.endswith(".c") else driver_sources(driver)
    kept = [path for path in whole_driver if path.stem not in {source.stem for source in sources}]
    changed = compiled(sources, [*driver_includes(driver), "-Wno-unused"], tmp_path / "objects")
    outcome = run(linked([*suite("hasty"), *kept, *changed], [], tmp_path / "conformance"), *found, "description")
    assert outcome.code == 1
    assert outcome.cases("FAIL") == found, outcome.text
    assert "description" in outcome.cases("PASS")


def test_every_case_is_in_the_list() -> None:
    text = "".join(path.read_text() for path in sorted((SUITE / "src").glob("*.c")))
    assert len(cases()) == len(set(cases())) == text.count("\nCASE(")
    assert all(f"\nCASE({case})\n" in text for case in cases())


def test_lines_of_the_example(tmp_path: Path) -> None:
    """The page names the files of the example, and the numbers of lines that differ from the skeleton."""
    page = PAGE.read_text()
    skeleton = new_driver(tmp_path / "skeleton", "vector_adder")
    driver = vector_adder(tmp_path / "driver")
    own = {path.relative_to(EXAMPLE) for path in EXAMPLE.rglob("*.[ch]")}
    for path in own:
        assert f"\n| `{path}` | " in page, path
    assert block(PAGE, "c") in (EXAMPLE / "drivers" / "vector_adder_device.c").read_text()
    files = {path.relative_to(driver) for path in driver.rglob("*.[ch]")}
    assert files == {path.relative_to(skeleton) for path in skeleton.rglob("*.[ch]")} and own <= files
    lines = {path: (driver / path).read_text().splitlines() for path in files}
    changed = {path: added((skeleton / path).read_text().splitlines(), lines[path]) for path in files}
    assert {path for path in files if changed[path]} == own
    of_tests = sum(changed[path] for path in own if path.parts[0] == "tests" or "_emul" in path.name)
    text = " ".join(page.split())
    assert f"{sum(map(len, lines.values()))} lines of C in {len(files)} files." in text
    assert f"{sum(changed.values())} of them differ from the skeleton, {of_tests} of these in the tests" in text
    assert f"{len(BROKEN)} faults that are put into the skeleton make it fail" in text


def added(old: list[str], new: list[str]) -> int:
    """Return the number of lines that a difference adds."""
    lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    return sum(line.startswith("+") for line in lines)
