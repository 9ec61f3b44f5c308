# SPDX-License-Identifier: Apache-2.0
#
# Zephyr includes this file in every build of the tests (ZephyrBuildConfiguration_ROOT). It shortens them.

# Python imports sitecustomize.py of this directory in each script that configures the build.
set(ENV{PYTHONPATH} "${CMAKE_CURRENT_LIST_DIR}/python")

# Images differ in options that the kernel's headers read: a search in the cache costs more than it saves.
set(USE_CCACHE 0)

# The archiver writes the table of symbols: ranlib would write it again.
set(CMAKE_RANLIB /bin/true CACHE FILEPATH "")

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

# Without debug information the kernel compiles faster. Zephyr reads that of its own files for user threads. The options of a
# file follow Zephyr's -g. Tests give options of other files in OPWEST_TESTS_CFLAGS.

function(opwest_tests_add_options)
  get_property(libraries GLOBAL PROPERTY ZEPHYR_LIBS)
  foreach(library IN LISTS libraries ITEMS kernel)
    if(NOT TARGET ${library})
      continue()
    endif()
    get_target_property(source ${library} SOURCE_DIR)
    if(NOT "${source}/" MATCHES "^${ZEPHYR_BASE}/")
      target_compile_options(${library} PRIVATE ${OPWEST_TESTS_CFLAGS})
    elseif(NOT CONFIG_USERSPACE)
      get_target_property(files ${library} SOURCES)
      foreach(file IN LISTS files)
        cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${source})
        set_property(SOURCE ${file} TARGET_DIRECTORY ${library} APPEND PROPERTY COMPILE_OPTIONS -g0)
      endforeach()
    endif()
  endforeach()
endfunction()

cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_add_options)
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_keep_board_directories)
