# SPDX-License-Identifier: Apache-2.0
#
# CMake functions of the runtime and of generated models.

include("${CMAKE_CURRENT_LIST_DIR}/opwest_service.cmake")
# opwest_add_model(), opwest_add_bundle(): not in all copies of the runtime.
include("${CMAKE_CURRENT_LIST_DIR}/opwest_add_model.cmake" OPTIONAL)
include("${CMAKE_CURRENT_LIST_DIR}/opwest_bundle.cmake" OPTIONAL)

# opwest_runtime_files(<variable> <option> <file>...)
#
# Sets <variable> to the paths of the runtime's files for <option>. The copy of the runtime in an application contains
# the files of those options that its manifests set. The others are in OPWEST_RUNTIME, which `opwest run --board` sets,
# else in the complete runtime of opwest_complete().
function(opwest_runtime_files variable option)
  get_filename_component(own "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.." ABSOLUTE)
  get_filename_component(project "${own}/../.." ABSOLUTE)
  set(places)
  set(runtime "${OPWEST_RUNTIME}")
  set(errors "")
  foreach(file IN LISTS ARGN)
    if(NOT EXISTS "${own}/${file}" AND NOT runtime)
      opwest_complete(runtime "${project}" errors)
    endif()
    if(EXISTS "${own}/${file}")
      list(APPEND places "${own}/${file}")
    elseif(runtime AND EXISTS "${runtime}/${file}")
      list(APPEND places "${runtime}/${file}")
    else()
      message(FATAL_ERROR "opwest: ${option} is set, but this copy of the runtime has no ${file}: ${own}\n${errors}"
        "Install opwest for the Python of this build, give the Python that has it (-DOPWEST_PYTHON=), add ${option}: y under application: kconfig: in the manifest and "
        "run `opwest update`, or build with -DOPWEST_RUNTIME=<the zephyr_module directory of opwest>.")
    endif()
  endforeach()
  if(runtime)
    zephyr_include_directories("${runtime}/include")
  endif()
  set(${variable} "${places}" PARENT_SCOPE)
endfunction()

# opwest_ignore_build()
#
# Writes a .gitignore into a build directory inside the application, so that `git add` of the application adds sources
# only. With sysbuild, the directory is that of all images.
function(opwest_ignore_build)
  set(build "${CMAKE_BINARY_DIR}")
  if(SYSBUILD)
    get_filename_component(build "${build}" DIRECTORY)
  endif()
  cmake_path(IS_PREFIX APPLICATION_SOURCE_DIR "${build}" NORMALIZE is_inside)
  if(is_inside AND NOT EXISTS "${build}/.gitignore" AND NOT build STREQUAL APPLICATION_SOURCE_DIR)
    file(WRITE "${build}/.gitignore" "# Written by opwest: this directory contains builds.\n*\n")
  endif()
endfunction()

# opwest_linker_script(<file>)
#
# Includes a linker script in the section part of the image, through a file with a name in ASCII in a directory of the
# preprocessor's path: zephyr_linker_sources() damages other names when it adds the next script (file(STRINGS) of
# CMake reads ASCII), and writes paths with "..", before which the preprocessor follows symbolic links.
function(opwest_linker_script file)
  set(folder "${CMAKE_BINARY_DIR}/opwest_linker")
  get_filename_component(name "${file}" NAME)
  string(MD5 hash "${file}")
  string(SUBSTRING "${hash}" 0 8 hash)
  file(CONFIGURE OUTPUT "${folder}/${hash}_${name}" CONTENT "#include \"${file}\"\n" @ONLY)
  zephyr_include_directories("${folder}")
  zephyr_linker_sources(SECTIONS "${ZEPHYR_BASE}/include/${hash}_${name}")
endfunction()

# opwest_sources_ifdef(<option> <file>...)
#
# If <option> is set, compiles sources of the runtime into the current library, and includes its linker scripts.
function(opwest_sources_ifdef option)
  if(NOT ${option})
    return()
  endif()
  opwest_runtime_files(places ${option} ${ARGN})
  foreach(place IN LISTS places)
    if(place MATCHES "\\.ld$")
      opwest_linker_script("${place}")
    else()
      zephyr_library_sources("${place}")
    endif()
  endforeach()
endfunction()

# opwest_board(<variable>)
#
# Sets <variable> to the name of the board with its qualifiers. BOARD_QUALIFIERS starts with a slash before Zephyr 4.4
# only, and is empty before 3.7.
function(opwest_board variable)
  string(REGEX REPLACE "^/" "" qualifiers "${BOARD_QUALIFIERS}")
  set(board "${BOARD}")
  if(NOT qualifiers STREQUAL "")
    string(APPEND board "/${qualifiers}")
  endif()
  set(${variable} "${board}" PARENT_SCOPE)
endfunction()

# opwest_match_target(<matched> <line> <target>)
#
# Sets <matched> to whether this build matches a target, and <line> to its conditions with their values. <target> is the
# name of a variable prefix: <prefix>_NAME, <prefix>_KCONFIG (SYMBOL=value ...), <prefix>_HOST (processor names, may be
# empty).
function(opwest_match_target matched_variable line_variable target)
  set(matched TRUE)
  set(line "  ${${target}_NAME}:")
  foreach(condition IN LISTS ${target}_KCONFIG)
    string(REGEX MATCH "^([^=]+)=(.*)$" _ "${condition}")
    set(symbol "${CMAKE_MATCH_1}")
    set(required "${CMAKE_MATCH_2}")
    set(value "${${symbol}}")
    if("${value}" STREQUAL "")
      set(value "n")
    endif()
    if("${value}" STREQUAL "${required}")
      string(APPEND line " ${symbol}=${value} (ok)")
    else()
      set(matched FALSE)
      string(APPEND line " ${symbol}=${value} (needs ${required})")
    endif()
  endforeach()
  if(NOT "${${target}_HOST}" STREQUAL "")
    if("${CMAKE_HOST_SYSTEM_PROCESSOR}" IN_LIST ${target}_HOST)
      string(APPEND line " host=${CMAKE_HOST_SYSTEM_PROCESSOR} (ok)")
    else()
      set(matched FALSE)
      list(JOIN ${target}_HOST " or " hosts)
      string(APPEND line " host=${CMAKE_HOST_SYSTEM_PROCESSOR} (needs ${hosts})")
    endif()
  endif()
  set(${matched_variable} ${matched} PARENT_SCOPE)
  set(${line_variable} "${line}" PARENT_SCOPE)
endfunction()

# opwest_select_variant(<variable> <model>)
#
# Sets <variable> to the variant of the model with a target that matches this build, empty for the base. The variables
# <model>_VARIANTS and <model>_VARIANT_<variant>, with prefixes of targets, must be set. Fails if several variants match.
function(opwest_select_variant variable model)
  set(matches)
  set(report "")
  foreach(variant IN LISTS ${model}_VARIANTS)
    foreach(target IN LISTS ${model}_VARIANT_${variant})
      opwest_match_target(matched line ${target})
      if(matched)
        list(APPEND matches ${variant})
        string(APPEND report "${line}, variant ${variant}\n")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES matches)
  list(LENGTH matches count)
  if(count GREATER 1)
    list(JOIN matches " and " names)
    opwest_board(board)
    message(FATAL_ERROR "opwest: model ${model} has ${count} variants with targets that this build "
      "(${board}) matches: ${names}.\nThe conditions and their values:\n${report}"
      "Change the targets under `variants:` or `targets:` in the manifest, so that at most one variant matches.")
  endif()
  set(${variable} "${matches}" PARENT_SCOPE)
  set_property(GLOBAL PROPERTY opwest_${model}_VARIANT "${matches}")
  if(matches)
    message(STATUS "opwest: model ${model}: variant ${matches}")
  else()
    message(STATUS "opwest: model ${model}: the base, without a variant")
  endif()
endfunction()

# opwest_select_target(<variable> <model> <target>...)
#
# Sets <variable> to the one target that matches this build. Each <target> is the name of a variable
# prefix: <prefix>_NAME, <prefix>_KCONFIG (SYMBOL=value ...), <prefix>_HOST (processor names, may be empty).
# Fails with every condition and its value if no target matches, or more than one.
function(opwest_select_target variable model)
  set(matches)
  set(report "")
  foreach(target IN LISTS ARGN)
    opwest_match_target(matched line ${target})
    string(APPEND report "${line}\n")
    if(matched)
      list(APPEND matches ${${target}_NAME})
    endif()
  endforeach()

  list(LENGTH matches count)
  if(NOT count EQUAL 1)
    opwest_board(board)
    if(count EQUAL 0)
      set(fault "has objects for no target that this build (${board}) matches")
    else()
      list(JOIN matches " and " names)
      set(fault "has objects for ${count} targets that this build (${board}) matches: ${names}")
    endif()
    message(FATAL_ERROR "opwest: model ${model} ${fault}.\n"
      "Exactly one target must match. The conditions and their values:\n${report}"
      "Compile the operators for this board and add them under `objects:` in the manifest, then generate again. Of a "
      "model with C sources only, the metadata has the targets of `boards:` in the manifest and of --target.")
  endif()
  set(${variable} ${matches} PARENT_SCOPE)
  message(STATUS "opwest: model ${model}: objects for ${matches}")
endfunction()

# opwest_model_file(<variable> <model> <directory> <file>)
#
# Sets <variable> to the path of a file of the model in <directory>. A variant has no copies of the files that are equal
# to those of the base, which its model.cmake lists as <model>_SHARED.
function(opwest_model_file variable model folder file)
  if(file IN_LIST ${model}_SHARED)
    get_filename_component(folder "${folder}/../.." ABSOLUTE)
  endif()
  set(${variable} "${folder}/${file}" PARENT_SCOPE)
endfunction()

# opwest_model_includes(<variable> <model> <directory>)
#
# Sets <variable> to the directories with the headers of the model in <directory>: of a variant those of the base, too.
function(opwest_model_includes variable model folder)
  set(folders "${folder}/include")
  if(${model}_SHARED)
    get_filename_component(base "${folder}/../.." ABSOLUTE)
    list(APPEND folders "${base}/include")
  endif()
  set(${variable} "${folders}" PARENT_SCOPE)
endfunction()

# opwest_require(<model> <symbol> <provider> <kconfig>)
#
# Fails if the option that enables the provider of an external symbol is off.
function(opwest_require model symbol provider kconfig)
  if(NOT ${kconfig})
    message(FATAL_ERROR "opwest: model ${model} needs ${symbol} from ${provider}: set ${kconfig}=y in prj.conf.")
  endif()
endfunction()

# opwest_model_files(<model> <directory> <sources>)
#
# Sets <model>_TARGET to the target of the objects that this build uses, and <sources> to the files below <directory> to
# compile or link, without the sources of operators. The variables of the model's model.cmake must be set.
function(opwest_model_files model folder sources)
  set(externals ${${model}_EXTERNALS})
  while(externals)
    list(POP_FRONT externals symbol provider kconfig)
    opwest_require(${model} ${symbol} ${provider} ${kconfig})
  endwhile()
  if(${model}_FULL_LIBC AND CONFIG_MINIMAL_LIBC)
    message(FATAL_ERROR "opwest: the operators of model ${model} need a full C library: set "
      "CONFIG_REQUIRES_FULL_LIBC=y in prj.conf.")
  endif()
  if(${model}_CPP AND NOT CONFIG_CPP)
    message(FATAL_ERROR "opwest: model ${model} has operators in C++: set CONFIG_CPP=y in prj.conf.")
  endif()
  if(${model}_FULL_LIBCPP AND CONFIG_MINIMAL_LIBCPP)
    message(FATAL_ERROR "opwest: the operators of model ${model} need a full C++ library: set "
      "CONFIG_REQUIRES_FULL_LIBCPP=y in prj.conf.")
  endif()

  get_filename_component(runtime "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.." ABSOLUTE)
  foreach(file IN LISTS ${model}_RUNTIME)
    if(NOT EXISTS "${runtime}/${file}")
      message(FATAL_ERROR "opwest: model ${model} needs ${file}, missing in this copy of the runtime: "
        "${runtime}\nThe copy was generated for other models. Use the runtime of an application with this model, or the "
        "opwest repository.")
    endif()
  endforeach()
  if(${model}_TVM AND NOT CONFIG_OPWEST_TVM)
    message(FATAL_ERROR "opwest: model ${model} has operators that call functions of TVM's runtime: set "
      "CONFIG_OPWEST_TVM=y in prj.conf.")
  endif()
  if(${model}_HALIDE AND NOT CONFIG_OPWEST_HALIDE)
    message(FATAL_ERROR "opwest: model ${model} has operators that call functions of Halide's runtime: set "
      "CONFIG_OPWEST_HALIDE=y in prj.conf.")
  endif()

  set(target any)
  set(files ${${model}_FILES})
  if(${model}_TARGETS)
    opwest_select_target(target ${model} ${${model}_TARGETS})
    foreach(prefix IN LISTS ${model}_TARGETS)
      if("${${prefix}_NAME}" STREQUAL "${target}")
        list(APPEND files ${${prefix}_OBJECTS})
      endif()
    endforeach()
  endif()
  if(${model}_CONSTANTS)
    list(APPEND files constants.S)
  endif()
  list(APPEND files note.S)
  list(TRANSFORM files PREPEND "${folder}/")
  if(CONFIG_OPWEST_SERVICE)
    opwest_model_service(service ${model} "${folder}")
    list(APPEND files "${service}")
  endif()
  if(CONFIG_OPWEST_MODEL_LIST)
    set(listed "${CMAKE_CURRENT_BINARY_DIR}/${model}_listed.c")
    file(CONFIGURE OUTPUT "${listed}" @ONLY
      CONTENT "#include <opwest/model_list.h>\n\n#include <@model@.h>\n\nOPWEST_LIST_MODEL(@model@);\n")
    list(APPEND files "${listed}")
  endif()
  if(${model}_TVMGEN)
    # An application of microTVM can include TVM's headers: its own if they are in the path, else the replacements.
    zephyr_compile_options("SHELL:-idirafter ${runtime}/include_tvm")
  endif()
  set(${model}_TARGET ${target} PARENT_SCOPE)
  set(${sources} "${files}" PARENT_SCOPE)

  foreach(script IN LISTS ${model}_LINKER)
    opwest_linker_script("${folder}/${script}")
  endforeach()
endfunction()

# opwest_model_properties(<model> <directory> [<scope>...])
#
# Sets the compile options of single files, for targets of the current directory or of <scope>.
function(opwest_model_properties model folder)
  set_source_files_properties("${folder}/src/${model}_metadata.c" ${ARGN} PROPERTIES
    COMPILE_DEFINITIONS "OPWEST_TARGET=\"${${model}_TARGET}\"")
  if(${model}_CONSTANTS)
    set(included ${${model}_CONSTANTS})
    list(TRANSFORM included PREPEND "${folder}/constants/")
    set_source_files_properties("${folder}/constants.S" ${ARGN} PROPERTIES
      OBJECT_DEPENDS "${included}"
      INCLUDE_DIRECTORIES "${folder}/constants")
  endif()
endfunction()

# opwest_optimisation(<variable> speed|size|application)
#
# Sets <variable> to the compiler options to add after those of the application. It is empty for `application`, with
# CONFIG_NO_OPTIMIZATIONS or CONFIG_DEBUG_OPTIMIZATIONS, and for a compiler for which Zephyr defines no such option.
# Projects of older versions of opwest have no <optimize>: speed.
function(opwest_optimisation variable optimize)
  set(options "")
  if(NOT optimize)
    set(optimize speed)
  endif()
  if(NOT optimize STREQUAL "application" AND NOT CONFIG_NO_OPTIMIZATIONS AND NOT CONFIG_DEBUG_OPTIMIZATIONS)
    get_property(options TARGET compiler PROPERTY optimization_${optimize})
    if(options AND optimize STREQUAL "speed" AND CONFIG_RISCV AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
      # GCC 12 moves loads up before it allocates registers, and keeps values of inner loops on the stack.
      list(APPEND options -fno-schedule-insns)
    endif()
  endif()
  set(${variable} "${options}" PARENT_SCOPE)
endfunction()

# opwest_operator_library(<library> <model> <directory> <sources> <optimize> <flags> <file>...)
#
# Compiles files of operators as an object library, for speed, size or as the application, with flags after those of the
# application. The other parameters are those of opwest_model_operators().
function(opwest_operator_library library model folder sources optimize flags)
  set(files)
  foreach(source IN LISTS ARGN)
    if(source IN_LIST ${model}_WRAPPERS)
      list(APPEND files "${folder}/${source}")
    else()
      list(APPEND files "${sources}/${source}")
    endif()
  endforeach()
  get_filename_component(tvm "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include_tvm" ABSOLUTE)
  add_library(${library} OBJECT ${files})
  target_link_libraries(${library} PRIVATE zephyr_interface)
  opwest_model_includes(headers ${model} "${folder}")
  opwest_model_file(rename ${model} "${folder}" "objects/${${model}_TARGET}/rename.h")
  target_include_directories(${library} PRIVATE ${headers})
  # Sources written by TVM include its headers: TVM's own if they are in the path, else the replacements. A wrapper
  # includes its header by the path below the sources.
  target_compile_options(${library} PRIVATE
    "SHELL:-include \"${rename}\""
    "SHELL:-iquote \"${sources}\""
    "SHELL:-idirafter \"${tvm}\"")
  opwest_optimisation(last "${optimize}")
  list(APPEND last ${flags})
  if(last)
    # CMake places the options of a library before those of its linked interfaces, and removes repeated options: an -Os
    # after -O2 is lost. A separate interface with one SHELL: option follows Zephyr's options and is kept whole.
    list(JOIN last " " last)
    add_library(${library}.options INTERFACE)
    target_compile_options(${library}.options INTERFACE "SHELL:${last}")
    target_link_libraries(${library} PRIVATE ${library}.options)
  endif()
  add_dependencies(${library} zephyr_generated_headers)
endfunction()

# opwest_model_operators(<variable> <model> <directory> <sources> <manifest>)
#
# Compiles the sources of operators, in the directory <sources>, as object libraries, one for each set of options, and
# sets <variable> to their names; empty if the model has none. The target opwest_<model>.operators.check fails, with the
# position in <manifest>, if an object has an effect that the manifest does not permit. The variables of opwest_model_files() must be set.
function(opwest_model_operators variable model folder sources manifest)
  set(${variable} "" PARENT_SCOPE)
  if(NOT ${model}_OPERATORS)
    return()
  endif()
  # A period, which names of models do not contain, separates the names of all targets.
  set(name opwest_${model}.operators)
  set(libraries)
  set(plain ${${model}_OPERATORS})
  foreach(group IN LISTS ${model}_OPTIONS)
    list(LENGTH libraries index)
    set(library ${name}.${index})
    list(REMOVE_ITEM plain ${${group}_SOURCES})
    opwest_operator_library(${library} ${model} "${folder}" "${sources}" "${${group}_OPTIMIZE}" "${${group}_FLAGS}"
      ${${group}_SOURCES})
    foreach(include IN LISTS ${group}_INCLUDES)
      target_include_directories(${library} BEFORE PRIVATE "${sources}/${include}")
    endforeach()
    target_compile_definitions(${library} PRIVATE ${${group}_DEFINES})
    list(APPEND libraries ${library})
  endforeach()
  if(plain)
    opwest_operator_library(${name} ${model} "${folder}" "${sources}" speed "" ${plain})
    list(APPEND libraries ${name})
  endif()

  set(rows "")
  foreach(source place permits IN ZIP_LISTS ${model}_OPERATORS ${model}_PLACES ${model}_PERMITS)
    set(path "${sources}/${source}")
    if(source IN_LIST ${model}_WRAPPERS)
      set(path "${folder}/${source}")
    endif()
    string(APPEND rows "${path}\t${manifest}:${place}\t${permits}\n")
  endforeach()
  set(listed "${CMAKE_CURRENT_BINARY_DIR}/${name}.txt")
  set(checked "${CMAKE_CURRENT_BINARY_DIR}/${name}.checked")
  file(GENERATE OUTPUT "${listed}" CONTENT "${rows}")
  set(objects)
  foreach(library IN LISTS libraries)
    list(APPEND objects $<TARGET_OBJECTS:${library}>)
  endforeach()
  set(libc host)
  foreach(known PICOLIBC NEWLIB_LIBC MINIMAL_LIBC)
    if(CONFIG_${known})
      string(TOLOWER "${known}" libc)
      string(REPLACE "_libc" "" libc "${libc}")
    endif()
  endforeach()
  get_filename_component(check "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../scripts/check_operators.py" ABSOLUTE)
  get_filename_component(effects "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../scripts/effects.py" ABSOLUTE)
  add_custom_command(OUTPUT "${checked}"
    COMMAND "${PYTHON_EXECUTABLE}" "${check}" --model ${model} --library ${libraries} --sources "${listed}" --libc ${libc}
      --commands "${CMAKE_BINARY_DIR}/compile_commands.json" --record "${checked}.json"
    COMMAND "${CMAKE_COMMAND}" -E touch "${checked}"
    DEPENDS ${libraries} ${objects} "${check}" "${effects}" "${listed}"
    COMMENT "Checking the operators of model ${model} for state and hidden effects"
    VERBATIM)
  add_custom_target(${name}.check DEPENDS "${checked}")
  set(${variable} ${libraries} PARENT_SCOPE)
endfunction()

# opwest_model_library(<model>)
#
# Adds the model in the current directory, a Zephyr module, to this build as a library.
function(opwest_model_library model)
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}")
  if(${model}_VARIANT)
    string(APPEND folder "/variants/${${model}_VARIANT}")
  endif()
  opwest_model_files(${model} "${folder}" sources)
  opwest_model_includes(headers ${model} "${folder}")
  zephyr_include_directories(${headers})
  opwest_model_operators(operators ${model} "${folder}" "${folder}/objects/any" "${${model}_MANIFEST}")
  zephyr_library_named(opwest_${model})
  zephyr_library_sources(${sources})
  foreach(library IN LISTS operators)
    zephyr_library_sources($<TARGET_OBJECTS:${library}>)
  endforeach()
  if(operators)
    add_dependencies(opwest_${model} opwest_${model}.operators.check)
  endif()
  opwest_model_properties(${model} "${folder}")
endfunction()
