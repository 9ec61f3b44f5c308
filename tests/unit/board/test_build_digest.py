# SPDX-License-Identifier: Apache-2.0
"""The causes of failed builds, from output that Zephyr 4.2, CMake 3.25 and GCC 12 printed; long parts are left out."""

import pytest
from opwest.runs.digest import causes, end_of, is_overflow

KCONFIG = """
Parsing /z/Kconfig
Merged configuration '/app/prj.conf'

warning: FPU (defined at soc/st/stm32/stm32wbax/Kconfig.defconfig:45,
soc/nxp/imx/imx6sx/Kconfig.defconfig.mcimx6x_m4:8, arch/Kconfig:1005) was assigned the value 'y' but
got the value 'n'. Check these unsatisfied dependencies: (SOC_MCIMX6X_M4 ||
CPU_HAS_FPU) (=n). See
http://docs.zephyrproject.org/latest/kconfig.html#CONFIG_FPU and/or look up FPU in the
menuconfig/guiconfig interface.


/app/prj.conf:13: warning: attempt to assign the value 'y' to the undefined symbol NO_SUCH_OPTION

warning: The choice symbol BT_LL (defined at b/Kconfig:9) was selected (set =y), but no symbol ended
up as the choice selection. See http://docs.zephyrproject.org

error: Aborting due to Kconfig warnings

CMake Error at /z/cmake/modules/kconfig.cmake:385 (message):
  command failed with return code: 1
Call Stack (most recent call first):
  /z/cmake/modules/zephyr_default.cmake:131 (include)
"""
TREE = """
-- Found devicetree overlay: /app/bad.overlay
devicetree error: {}
CMake Error at /z/cmake/modules/dts.cmake:306 (execute_process):
  execute_process failed command indexes:

    1: "Child return code: 1"

"""
TARGETS = """
CMake Error at modules/opwest/cmake/opwest.cmake:176 (message):
  opwest: model digits has objects for no target that this build (mps2/an386)
  matches.

  Exactly one target must match.  The conditions and their values:

    cortex-m3: CONFIG_CPU_CORTEX_M3=n (needs y)
    cortex-m4: CONFIG_CPU_CORTEX_M4=y (ok) CONFIG_FPU=y (needs n)

Call Stack (most recent call first):
  models/digits/CMakeLists.txt:16 (opwest_model_library)
"""
SHIELD = """
No shield named 'nothing' found
Please choose from among the following shields:
adafruit_2_8_tft_touch_v2
CMake Error at /z/cmake/modules/shields.cmake:148 (message):
  Invalid SHIELD; see above.
Call Stack (most recent call first):
"""
SDK = """
CMake Error at /z/cmake/modules/FindZephyr-sdk.cmake:159 (find_package):
  Could not find a package configuration file provided by "Zephyr-sdk"
  (requested version 0.16) with any of the following names:

    Zephyr-sdkConfig.cmake
"""
COMPILER = """
[5/9] Building C object app/src/main.c.obj
FAILED: app/src/main.c.obj
ccache gcc -Werror -c error.c
\x1b[01m\x1b[K/app/src/main.c:7:3:\x1b[m\x1b[K error: 'x' undeclared
/app/src/main.c:9:10: fatal error: gone.h: No such file or directory
ninja: build stopped: subcommand failed.
FATAL ERROR: command exited with status 1: /usr/bin/cmake --build /b
"""
ASSERTION = """
/z/include/zephyr/toolchain/gcc.h:87:36: error: static assertion failed: "must be >= sizeof(struct sockaddr)"
   87 | #define BUILD_ASSERT(EXPR, MSG...) _Static_assert((EXPR), "" MSG)
      |                                    ^~~~~~~~~~~~~~
/z/transport/src/smp_udp.c:41:1: note: in expansion of macro 'BUILD_ASSERT'
"""
LINKER = """
/usr/lib/bin/ld.bfd: app/libapp.a(main.c.obj): in function `main':
/app/src/main.c:12: undefined reference to `gone'
/usr/lib/bin/ld.bfd: /app/src/main.c:13: undefined reference to `lost'
/usr/lib/bin/ld.bfd: zephyr/zephyr_pre0.elf section `bss' will not fit in region `RAM'
/usr/lib/bin/ld.bfd: region `RAM' overflowed by 81234 bytes
/usr/lib/bin/ld.bfd: region `FLASH' overflowed by 1 byte
collect2: error: ld returned 1 exit status
"""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        pytest.param(
            KCONFIG,
            [
                "APP/prj.conf:2:1: error: CONFIG_FPU is assigned y, but has the value n\n"
                "  hint: its dependencies are not met: (SOC_MCIMX6X_M4 || CPU_HAS_FPU) (=n)",
                "/app/prj.conf:13:1: error: CONFIG_NO_SUCH_OPTION is assigned y, but no Kconfig file defines it\n"
                "  hint: correct the name; an option of a module requires the module (west update)",
                "opwest: error: Kconfig: The choice symbol BT_LL (defined at b/Kconfig:9) was selected (set =y), "
                "but no symbol ended up as the choice selection. See http://docs.zephyrproject.org",
            ],
            id="Kconfig",
        ),
        pytest.param(
            TREE.format("/app/bad.overlay:3 (column 20): parse error: malformed value"),
            ["/app/bad.overlay:3:20: error: devicetree: parse error: malformed value"],
            id="overlay",
        ),
        pytest.param(
            TREE.format("/chosen: undefined node label 'uart99'"),
            ["opwest: error: devicetree: /chosen: undefined node label 'uart99'"],
            id="label",
        ),
        pytest.param(
            TARGETS,
            [
                "opwest: error: model digits has objects for no target that this build (mps2/an386)\n  matches.\n"
                "  Exactly one target must match.  The conditions and their values:\n"
                "  cortex-m3: CONFIG_CPU_CORTEX_M3=n (needs y)\n"
                "  cortex-m4: CONFIG_CPU_CORTEX_M4=y (ok) CONFIG_FPU=y (needs n)"
            ],
            id="targets",
        ),
        pytest.param(
            SHIELD, ["/z/cmake/modules/shields.cmake:148:1: error: No shield named 'nothing' found"], id="shield"
        ),
        pytest.param(
            SDK,
            [
                "/z/cmake/modules/FindZephyr-sdk.cmake:159:1: error: Could not find a package configuration file "
                'provided by "Zephyr-sdk"\n  (requested version 0.16) with any of the following names:\n'
                "  Zephyr-sdkConfig.cmake\n"
                "  hint: install the Zephyr SDK, or select another compiler with ZEPHYR_TOOLCHAIN_VARIANT"
            ],
            id="SDK",
        ),
        pytest.param(
            COMPILER,
            [
                "/app/src/main.c:7:3: error: 'x' undeclared",
                "/app/src/main.c:9:10: error: gone.h: No such file or directory",
            ],
            id="compiler",
        ),
        pytest.param(
            ASSERTION,
            ['/z/transport/src/smp_udp.c:41:1: error: static assertion failed: "must be >= sizeof(struct sockaddr)"'],
            id="assertion",
        ),
        pytest.param(
            LINKER,
            [
                "/app/src/main.c:12:1: error: linker: undefined reference to `gone'",
                "/app/src/main.c:13:1: error: linker: undefined reference to `lost'",
                "opwest: error: the image does not fit: region RAM lacks 81234 bytes\n"
                "  hint: the service requires additional memory: one more workspace per model",
                "opwest: error: the image does not fit: region FLASH lacks 1 byte",
            ],
            id="linker",
        ),
        pytest.param("FATAL ERROR: source directory /x does not contain a CMakeLists.txt", None, id="west"),
        pytest.param("warning: FPU was here\nninja: done\n", [], id="no error"),
    ],
)
def test_causes(tmp_path, output, expected):
    (tmp_path / "prj.conf").write_text("CONFIG_A=y\n CONFIG_FPU=y\nCONFIG_FPU_SHARING=n\n")
    if expected is None:
        expected = [f"opwest: error: {output.partition(': ')[2]}"]
    assert [str(cause).replace(str(tmp_path), "APP") for cause in causes(output, tmp_path)] == expected
    assert is_overflow(output) == (output == LINKER)


def test_output_without_a_cause():
    assert end_of("one\ntwo\n\n") == "  one\n  two"
    assert end_of("\n".join(map(str, range(20)))).splitlines() == [f"  {n}" for n in range(12, 20)]
    assert end_of("-- west: flash\nError: no ST-LINK found\nFATAL ERROR: command exited with status 1: x") == (
        "  Error: no ST-LINK found"
    )


def test_only_the_first_causes_are_shown(tmp_path):
    assert len(causes("\n".join(f"a.c:{n}:1: error: e{n}" for n in range(1, 99)), tmp_path)) == 8
