# SPDX-License-Identifier: Apache-2.0
#
# Zephyr includes this file in every build of the tests (ZephyrBuildConfiguration_ROOT). A comment in the header of the
# devicetree contains the path of the build directory: ccache would compile or preprocess each file again for each build.

function(opwest_tests_remove_build_path)
  set(header ${CMAKE_BINARY_DIR}/zephyr/include/generated/zephyr/devicetree_generated.h)
  set(kept ${CMAKE_BINARY_DIR}/devicetree_without_path.h)
  if(NOT EXISTS ${header})
    return() # sysbuild itself, or another version of Zephyr
  endif()
  file(READ ${header} text)
  string(REPLACE "\n *   ${CMAKE_BINARY_DIR}/zephyr/zephyr.dts.pre\n" "\n *   zephyr.dts.pre\n" text "${text}")
  file(WRITE ${header} "${text}")
  # An equal header has its earlier time: nothing is compiled again.
  file(COPY_FILE ${header} ${kept} ONLY_IF_DIFFERENT)
  execute_process(COMMAND touch -r ${kept} ${header})
endfunction()

cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_remove_build_path)
