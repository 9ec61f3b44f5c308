# SPDX-License-Identifier: Apache-2.0
#
# Zephyr includes this file in every build of the tests (ZephyrBuildConfiguration_ROOT). It shortens them.

# Python imports sitecustomize.py of this directory in each script that configures the build.
set(ENV{PYTHONPATH} "${CMAKE_CURRENT_LIST_DIR}/python")

# To find a board, Zephyr reads the files of all boards. The directories of each board are found once in a session.
set(opwest_tests_boards)
if(DEFINED ENV{OPWEST_TESTS_SESSION} AND BOARD)
  string(MD5 opwest_tests_boards "${ZEPHYR_BASE} ${BOARD}")
  set(opwest_tests_boards "$ENV{OPWEST_TESTS_SESSION}/boards/${opwest_tests_boards}")
  if(EXISTS "${opwest_tests_boards}" AND NOT DEFINED BOARD_DIRECTORIES)
    file(READ "${opwest_tests_boards}" directories)
    set(BOARD_DIRECTORIES "${directories}" CACHE INTERNAL "")
  endif()
endif()

function(opwest_tests_keep_board_directories)
  if(opwest_tests_boards AND BOARD_DIRECTORIES AND NOT EXISTS "${opwest_tests_boards}")
    string(RANDOM LENGTH 12 own)
    file(WRITE "${opwest_tests_boards}.${own}" "${BOARD_DIRECTORIES}")
    file(RENAME "${opwest_tests_boards}.${own}" "${opwest_tests_boards}") # other processes read it
  endif()
endfunction()

# A comment in the header of the devicetree contains the path of the build directory: ccache would compile or preprocess
# each file again for each build.

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
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_keep_board_directories)
