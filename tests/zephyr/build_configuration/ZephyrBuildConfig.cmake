# SPDX-License-Identifier: Apache-2.0
#
# Zephyr includes this file in every build of the tests (ZephyrBuildConfiguration_ROOT). It shortens them.

# Python imports sitecustomize.py of this directory in each script that configures the build.
set(ENV{PYTHONPATH} "${CMAKE_CURRENT_LIST_DIR}/python")

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

# ccache compiles a file again if its preprocessed text differs. A comment in the header of the devicetree contains the path
# of the build directory. <zephyr/device.h> declares an object for each node, and the kernel's headers declare the main
# stack with the size that the application chooses. Files with OPWEST_TESTS_NO_DEVICES declare no such objects, and do not
# compile if they use one; files with OPWEST_TESTS_ANY_STACK do not use the stack that they declare with another size.

function(opwest_tests_keep_time header text)
  string(MD5 kept ${header})
  set(kept ${CMAKE_BINARY_DIR}/${kept}.h)
  file(WRITE ${header} "${text}")
  # An equal header has its earlier time: nothing is compiled again.
  file(COPY_FILE ${header} ${kept} ONLY_IF_DIFFERENT)
  execute_process(COMMAND touch -r ${kept} ${header})
endfunction()

function(opwest_tests_equal_devicetree)
  file(GLOB headers ${CMAKE_BINARY_DIR}/zephyr/include/generated/devicetree_generated.h
    ${CMAKE_BINARY_DIR}/zephyr/include/generated/zephyr/devicetree_generated.h) # none of sysbuild itself
  foreach(header IN LISTS headers)
    file(READ ${header} text)
    string(REPLACE "\n *   ${CMAKE_BINARY_DIR}/zephyr/zephyr.dts.pre\n" "\n *   zephyr.dts.pre\n" text "${text}")
    string(APPEND text "
#ifdef OPWEST_TESTS_NO_DEVICES
#undef DT_FOREACH_OKAY_HELPER
#define DT_FOREACH_OKAY_HELPER(fn)
#endif
")
    opwest_tests_keep_time(${header} "${text}")
  endforeach()
endfunction()

# No file in C reads the options of modules with models.

function(opwest_tests_equal_options)
  file(GLOB headers ${CMAKE_BINARY_DIR}/zephyr/include/generated/autoconf.h
    ${CMAKE_BINARY_DIR}/zephyr/include/generated/zephyr/autoconf.h)
  foreach(header IN LISTS headers)
    file(READ ${header} text)
    string(REGEX MATCHALL "#define CONFIG_ZEPHYR_OPWEST_[A-Z0-9_]+_MODULE 1\n" modules "${text}")
    foreach(module IN LISTS modules)
      string(REGEX REPLACE "#define CONFIG_ZEPHYR_OPWEST_([A-Z0-9_]+)_MODULE 1\n" "\\1" name "${module}")
      string(REPLACE "${module}" "" text "${text}")
      string(REPLACE "#define CONFIG_OPWEST_MODEL_${name} 1\n" "" text "${text}")
    endforeach()
    string(APPEND text "
#ifdef OPWEST_TESTS_ANY_STACK
#undef CONFIG_MAIN_STACK_SIZE
#define CONFIG_MAIN_STACK_SIZE 1024
#endif
")
    opwest_tests_keep_time(${header} "${text}")
  endforeach()
endfunction()

# Without debug information the kernel compiles faster. Zephyr reads that of its own files for user threads. Tests give
# options of other files in OPWEST_TESTS_CFLAGS, not in EXTRA_CFLAGS: the kernel's files remain those of other builds.

function(opwest_tests_add_options_of_files library folder)
  get_target_property(files ${library} SOURCES)
  foreach(file IN LISTS files)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${folder})
    if(NOT "${file}" MATCHES "^${ZEPHYR_BASE}/.*\\.c$")
      continue()
    endif()
    file(READ ${file} text)
    set(options)
    if(NOT text MATCHES "DEVICE_")
      list(APPEND options -DOPWEST_TESTS_NO_DEVICES)
    endif()
    if(NOT text MATCHES "MAIN_STACK_SIZE|z_main_stack")
      list(APPEND options -DOPWEST_TESTS_ANY_STACK)
    endif()
    set_property(SOURCE ${file} TARGET_DIRECTORY ${library} APPEND PROPERTY COMPILE_OPTIONS ${options})
  endforeach()
endfunction()

function(opwest_tests_add_options)
  get_property(libraries GLOBAL PROPERTY ZEPHYR_LIBS)
  foreach(library IN LISTS libraries ITEMS kernel)
    if(TARGET ${library})
      get_target_property(source ${library} SOURCE_DIR)
      if(NOT "${source}/" MATCHES "^${ZEPHYR_BASE}/")
        target_compile_options(${library} PRIVATE ${OPWEST_TESTS_CFLAGS})
        continue()
      endif()
      if(NOT CONFIG_USERSPACE)
        target_compile_options(${library} PRIVATE -g0)
      endif()
      opwest_tests_add_options_of_files(${library} ${source})
    endif()
  endforeach()
endfunction()

cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_add_options)
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_equal_options)
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_equal_devicetree)
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_keep_board_directories)
