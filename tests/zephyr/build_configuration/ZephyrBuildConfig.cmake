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

# Most of the time of Zephyr's files is that of the headers that each of them includes. The files of one library are compiled
# with -Og, as one file: digits for mps2/an385 builds in 12 instead of 22 seconds of processor time, before -Og. Files with
# options of their own, and those that cannot be compiled together with others, are compiled alone. What several files define
# gets a number for each of them. `lock` is a member of structures too: the files with such a variable are the last ones.
string(CONCAT OPWEST_TESTS_JOINED "^${ZEPHYR_BASE}/"
  "(arch/(arm|arm64|posix|riscv|x86)|kernel|lib/(crc|heap|libc|net_buf|os|posix|utils)"
  "|subsys/(mgmt/mcumgr|shell|testsuite/ztest))/.*[.]c$")
set(OPWEST_TESTS_NUMBERED
  __log_level __log_current_const_data __log_current_dynamic_data char_out handle_poll_events out_func)
set(OPWEST_TESTS_ALONE "/(devmem_service|offsets|stacktrace)[.]c$")

function(opwest_tests_join library files)
  set(first)
  set(last)
  foreach(file IN LISTS files)
    set(own)
    foreach(property COMPILE_FLAGS COMPILE_OPTIONS COMPILE_DEFINITIONS INCLUDE_DIRECTORIES)
      get_property(options SOURCE ${file} TARGET_DIRECTORY ${library} PROPERTY ${property})
      list(APPEND own ${options})
    endforeach()
    if(NOT own AND file MATCHES "${OPWEST_TESTS_JOINED}" AND NOT file MATCHES "${OPWEST_TESTS_ALONE}")
      file(STRINGS ${file} lock REGEX "^static struct k_spinlock lock;" LIMIT_COUNT 1)
      if(lock AND CONFIG_TRACING)
        continue() # the macros of tracing contain `lock`, too
      elseif(lock)
        list(APPEND last ${file})
      else()
        list(APPEND first ${file})
      endif()
    endif()
  endforeach()
  set(text)
  set(number 0)
  foreach(file IN LISTS first last)
    math(EXPR number "${number} + 1")
    set(names ${OPWEST_TESTS_NUMBERED})
    if(file IN_LIST last)
      list(APPEND names lock)
    endif()
    foreach(name IN LISTS names)
      string(APPEND text "#undef ${name}\n#define ${name} ${name}_${number}\n")
    endforeach()
    string(APPEND text "#include \"${file}\"\n")
    set_property(SOURCE ${file} TARGET_DIRECTORY ${library} PROPERTY HEADER_FILE_ONLY TRUE)
  endforeach()
  if(text)
    set(joined "${CMAKE_BINARY_DIR}/joined/${library}.c")
    file(WRITE "${joined}" "${text}")
    target_sources(${library} PRIVATE "${joined}")
    set_property(SOURCE "${joined}" TARGET_DIRECTORY ${library} APPEND PROPERTY COMPILE_OPTIONS -g0 -Og -w)
  endif()
endfunction()

# Without debug information the kernel compiles faster. The options of a file follow Zephyr's -g. Images with user threads are
# compiled as usual: Zephyr reads the debug information of its own files, and each file includes functions of system calls.
# Tests give options of other files than Zephyr's in OPWEST_TESTS_CFLAGS.
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
      get_target_property(names ${library} SOURCES)
      set(files)
      foreach(file IN LISTS names)
        cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${source})
        list(APPEND files ${file})
      endforeach()
      opwest_tests_join(${library} "${files}")
      foreach(file IN LISTS files)
        set_property(SOURCE ${file} TARGET_DIRECTORY ${library} APPEND PROPERTY COMPILE_OPTIONS -g0)
      endforeach()
    endif()
  endforeach()
endfunction()

cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_add_options)
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL opwest_tests_keep_board_directories)
