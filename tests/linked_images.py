# SPDX-License-Identifier: Apache-2.0
"""Small images of the golden project `variants`, with the archives and the map file of a build of Zephyr."""

import re
from pathlib import Path

from golden_support import copy_project
from image_sizes import run
from opwest.cli.main import main

RUNTIME = Path(__file__).resolve().parents[1] / "zephyr_module"
BOARDS = {None: "native_sim/native/64", "mla": "mps2/an385", "dsp": "mps2/an386"}
FLAGS = ["-Os", "-ffunction-sections", "-fdata-sections", "-ffreestanding", "-fno-pic", "-fno-stack-protector", "-g0"]
LINK = [
    "-nostdlib",
    "-static",
    "-no-pie",
    "-Wl,--gc-sections",
    "-Wl,-e,main",
    "-Wl,--build-id=none",
    "-Wl,-z,noexecstack",
]

KERNEL = """
static volatile int32_t doubled[2] = {2, 4};
int32_t calls;
static const int32_t table[3] = {1, 2, 3};
__attribute__((noinline)) static int32_t scaled(double factor, int32_t index)
{
	calls++;
	return (int32_t)(factor * table[index & 1]) + doubled[index & 1];
}
"""
"""Static functions, tables and variables of an operator; the product of doubles is a function of libgcc on Arm."""
PORT = """
#include <opwest/port.h>

bool opwest_port_take(opwest_port_flag_t *flag)
{
	return *flag == 0;
}

void opwest_port_give(opwest_port_flag_t *flag)
{
	*flag = 0;
}

void opwest_port_log_failure(const char *model, uint16_t step, int32_t code)
{
}
"""
MAIN = """
#include <adder.h>

ADDER_WORKSPACE_DEFINE(memory);
static const struct adder_devices devices = {0};
static int32_t x[4], y[4];
volatile float own;
uint8_t z_main_stack[512];

uint32_t crc32_ieee(const uint8_t *data, size_t size)
{
	return data[0] + size;
}

void *memset(void *to, int value, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		((volatile char *)to)[i] = (char)value;
	}
	return to;
}

int main(void)
{
	const struct adder_inputs inputs = {.x = x};
	const struct adder_outputs outputs = {.y = y};

	own = own + 1.0f;
	z_main_stack[0] = 1;
	return adder_open(&memory, &devices) || adder_run(&inputs, &outputs, &memory, &devices);
}
"""


def source_of(folder: Path) -> Path:
    """Copy the project; the operators get static functions. Return the manifest."""
    (manifest,) = copy_project("variants", folder)
    for path in (manifest.parent / "operators").glob("*.c"):
        text = path.read_text()
        found = re.search(r"^int32_t add\w*\(.*\n\{\n", text, re.MULTILINE)
        assert found, path
        own = f"{found[0]}\ty[0] = scaled(0.5 * x[0], x[1]);\n"
        text = text.replace(found[0], KERNEL + own)
        path.write_text(text)
    text = manifest.read_text()
    manifest.write_text(re.sub(r"^( *)- files: .*", r"\g<0>\n\1  stateful: true", text, flags=re.MULTILINE))
    return manifest


def application(folder: Path) -> Path:
    """Return the generated application in `folder`; its manifest is `source/manifest.yaml` there."""
    assert main(["generate", str(source_of(folder / "source")), "-o", str(folder / "app"), "--quiet"]) == 0
    return folder / "app"


def link(app: Path, variant: str | None, build: Path, prefix: str = "", options: tuple[str, ...] = ()) -> Path:
    """Link the application with one variant to `build/zephyr/zephyr.elf`, with zephyr.map; return the image."""
    base = app / "models" / "adder"
    model = base / "variants" / variant if variant else base
    shared = re.search(r"set\(adder_SHARED\n(.*?)\)", (model / "model.cmake").read_text(), re.DOTALL)
    of_base = [base / name for name in re.findall(r'"(.*)"', shared[1])] if variant and shared else []

    def parts(pattern: str) -> list[Path]:
        """Return files of the variant, with those that are the base's."""
        return [*model.glob(pattern), *(path for path in of_base if path.relative_to(base).match(pattern))]

    machine = ["-mcpu=cortex-m3", "-mthumb"] if prefix else []
    image = build / "zephyr" / "zephyr.elf"
    image.parent.mkdir(parents=True)
    (image.parent / ".config").write_text(f'CONFIG_BOARD_TARGET="{BOARDS[variant]}"\n')
    (build / "main.c").write_text(MAIN)
    (build / "port.c").write_text(PORT)
    include = [f"-I{folder}" for folder in (RUNTIME / "include", model / "include", base / "include")]
    rename = ["-include", *parts("objects/any/rename.h")]
    archives = {
        "app/libapp.a": [(build / "main.c", [])],
        "modules/opwest/libopwest.a": [
            (build / "port.c", []),
            *((RUNTIME / "src" / f"{name}.c", []) for name in ("status", "metadata", "registry")),
        ],
        "modules/opwest_adder/libopwest_adder.a": [
            *((path, rename) for path in parts("objects/any/operators/*.c")),
            *((path, []) for path in parts("src/adder_*.c")),
            *((path, [f"-Wa,-I{model / 'constants'}"]) for path in parts("constants.S")),
            *((path, []) for path in parts("note.S")),
        ],
    }
    for archive, sources in archives.items():
        objects = []
        (build / archive).parent.mkdir(parents=True)
        for source, extra in sources:
            objects.append((build / archive).parent / f"{source.name}.obj")
            run(f"{prefix}gcc", *machine, *FLAGS, *include, *extra, "-c", source, "-o", objects[-1], cwd=build)
        run(f"{prefix}ar", "rc", archive, *objects, cwd=build)
    libraries = ["-lgcc"] if prefix else []
    whole = ["-Wl,--whole-archive", *archives, "-Wl,--no-whole-archive", "-Wl,-Map,zephyr/zephyr.map"]
    run(f"{prefix}gcc", *machine, *LINK, *options, *whole, *libraries, "-o", image, cwd=build)
    return image
