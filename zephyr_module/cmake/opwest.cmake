# SPDX-License-Identifier: Apache-2.0
#
# What generated models need of CMake, and opwest_add_model() for applications that generate a model in the build.

get_filename_component(OPWEST_TVM_HEADERS "${CMAKE_CURRENT_LIST_DIR}/../include_tvm" ABSOLUTE)
set(OPWEST_TVM_HEADERS "${OPWEST_TVM_HEADERS}" CACHE INTERNAL "Stand-ins for TVM's headers")

# opwest_runtime_files(<variable> <option> <file>...)
#
# Sets <variable> to the places of files of the runtime that <option> needs. An application's copy of the runtime has
# the files of those options that its manifests set; the others come from OPWEST_RUNTIME, the zephyr_module/ of the
# repository or of the installed package, which `opwest run --board` gives.
function(opwest_runtime_files variable option)
  get_filename_component(own "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.." ABSOLUTE)
  set(places)
  foreach(file IN LISTS ARGN)
    if(EXISTS "${own}/${file}")
      list(APPEND places "${own}/${file}")
    elseif(OPWEST_RUNTIME AND EXISTS "${OPWEST_RUNTIME}/${file}")
      list(APPEND places "${OPWEST_RUNTIME}/${file}")
    else()
      message(FATAL_ERROR "opwest: ${option} is set, but this copy of the runtime has no ${file}: ${own}\n"
        "Add ${option}: y under application: kconfig: in the manifest and run `opwest update`, or build with "
        "-DOPWEST_RUNTIME=<the zephyr_module folder of opwest>.")
    endif()
  endforeach()
  set(${variable} "${places}" PARENT_SCOPE)
endfunction()

# opwest_sources_ifdef(<option> <file>...)
#
# Where <option> is set, compiles sources of the runtime into the current library, and includes its linker scripts.
function(opwest_sources_ifdef option)
  if(NOT ${option})
    return()
  endif()
  opwest_runtime_files(places ${option} ${ARGN})
  foreach(place IN LISTS places)
    if(place MATCHES "\\.ld$")
      zephyr_linker_sources(SECTIONS "${place}")
    else()
      zephyr_library_sources("${place}")
    endif()
  endforeach()
  if(OPWEST_RUNTIME)
    zephyr_include_directories("${OPWEST_RUNTIME}/include")
  endif()
endfunction()

# opwest_select_target(<variable> <model> <target>...)
#
# Sets <variable> to the one target that this build is for. Each <target> is the name of a variable
# prefix: <prefix>_NAME, <prefix>_KCONFIG (SYMBOL=value ...), <prefix>_HOST (processor names, may be empty).
# Stops with every condition and its value when no target matches, or more than one.
function(opwest_select_target variable model)
  set(matches)
  set(report "")
  foreach(target IN LISTS ARGN)
    set(matched TRUE)
    set(line "  ${${target}_NAME}:")
    foreach(condition IN LISTS ${target}_KCONFIG)
      string(REGEX MATCH "^([^=]+)=(.*)$" _ "${condition}")
      set(symbol "${CMAKE_MATCH_1}")
      set(wanted "${CMAKE_MATCH_2}")
      set(value "${${symbol}}")
      if("${value}" STREQUAL "")
        set(value "n")
      endif()
      if("${value}" STREQUAL "${wanted}")
        string(APPEND line " ${symbol}=${value} (ok)")
      else()
        set(matched FALSE)
        string(APPEND line " ${symbol}=${value} (needs ${wanted})")
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
    string(APPEND report "${line}\n")
    if(matched)
      list(APPEND matches ${${target}_NAME})
    endif()
  endforeach()

  list(LENGTH matches count)
  if(NOT count EQUAL 1)
    if(count EQUAL 0)
      set(fault "has objects for no target that this build (${BOARD}${BOARD_QUALIFIERS}) matches")
    else()
      list(JOIN matches " and " names)
      set(fault "has objects for ${count} targets that this build (${BOARD}${BOARD_QUALIFIERS}) matches: ${names}")
    endif()
    message(FATAL_ERROR "opwest: model ${model} ${fault}.\n"
      "Exactly one target must match. The conditions and their values:\n${report}"
      "Compile the operators for this board and add them under `objects:` in the manifest, then generate again.")
  endif()
  set(${variable} ${matches} PARENT_SCOPE)
  message(STATUS "opwest: model ${model}: objects for ${matches}")
endfunction()

# opwest_require(<model> <symbol> <provider> <kconfig>)
#
# Stops when the option that brings an external symbol is off.
function(opwest_require model symbol provider kconfig)
  if(NOT ${kconfig})
    message(FATAL_ERROR "opwest: model ${model} needs ${symbol} from ${provider}: set ${kconfig}=y in prj.conf.")
  endif()
endfunction()

# opwest_model_service(<variable> <model> <folder>)
#
# Sets <variable> to the source that lets a host run the model: the model's own, or one in OPWEST_SERVICES, where
# `opwest run --board` puts it.
function(opwest_model_service variable model folder)
  foreach(place "${folder}/src/${model}_service.c" "${OPWEST_SERVICES}/${model}_service.c")
    if(EXISTS "${place}")
      set(${variable} "${place}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "opwest: CONFIG_OPWEST_SERVICE is set, but model ${model} was generated without it. Add "
    "CONFIG_OPWEST_SERVICE: y under application: kconfig: in its manifest and run `opwest update`, or build with "
    "`opwest run --board`.")
endfunction()

# opwest_model_files(<model> <folder> <sources> <operators> <rename>)
#
# Sets <sources> to what is compiled or linked for this build, <operators> to the C sources of operators, and
# <rename> to the header that gives the latter the model's prefix; all of them below <folder>. The variables of
# the model's model.cmake must be set.
function(opwest_model_files model folder sources operators rename)
  set(externals ${${model}_EXTERNALS})
  while(externals)
    list(POP_FRONT externals symbol provider kconfig)
    opwest_require(${model} ${symbol} ${provider} ${kconfig})
  endwhile()
  if(${model}_FULL_LIBC AND CONFIG_MINIMAL_LIBC)
    message(FATAL_ERROR "opwest: the operators of model ${model} need a full C library: set "
      "CONFIG_REQUIRES_FULL_LIBC=y in prj.conf.")
  endif()

  get_filename_component(runtime "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.." ABSOLUTE)
  foreach(file IN LISTS ${model}_RUNTIME)
    if(NOT EXISTS "${runtime}/${file}")
      message(FATAL_ERROR "opwest: model ${model} needs ${file}, which this copy of the runtime does not have: "
        "${runtime}\nIt was generated for other models. Use the runtime of an application that has this model, or the "
        "opwest repository, which has all of it.")
    endif()
  endforeach()
  if(${model}_TVM AND NOT CONFIG_OPWEST_TVM)
    message(FATAL_ERROR "opwest: model ${model} has operators that call functions of TVM's runtime: set "
      "CONFIG_OPWEST_TVM=y in prj.conf.")
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
  list(TRANSFORM files PREPEND "${folder}/")
  if(CONFIG_OPWEST_SERVICE)
    opwest_model_service(service ${model} "${folder}")
    list(APPEND files "${service}")
  endif()
  if(CONFIG_OPWEST_SHELL)
    set(listed "${CMAKE_CURRENT_BINARY_DIR}/${model}_listed.c")
    file(CONFIGURE OUTPUT "${listed}" @ONLY
      CONTENT "#include <opwest/zephyr.h>\n\n#include <@model@.h>\n\nOPWEST_LIST_MODEL(@model@);\n")
    list(APPEND files "${listed}")
  endif()
  set(compiled ${${model}_OPERATORS})
  list(TRANSFORM compiled PREPEND "${folder}/")
  set(${sources} "${files}" PARENT_SCOPE)
  set(${operators} "${compiled}" PARENT_SCOPE)
  set(${rename} "${folder}/objects/${target}/rename.h" PARENT_SCOPE)

  foreach(script IN LISTS ${model}_LINKER)
    zephyr_linker_sources(SECTIONS "${folder}/${script}")
  endforeach()
endfunction()

# opwest_model_properties(<model> <folder> <operators> <rename> [<scope>...])
#
# Sets what single files are compiled with, for targets of the current folder or of <scope>.
function(opwest_model_properties model folder operators rename)
  if(${model}_CONSTANTS)
    set(included ${${model}_CONSTANTS})
    list(TRANSFORM included PREPEND "${folder}/constants/")
    set_source_files_properties("${folder}/constants.S" ${ARGN} PROPERTIES
      OBJECT_DEPENDS "${included}"
      INCLUDE_DIRECTORIES "${folder}/constants")
  endif()
  if(operators)
    # Sources that TVM wrote include its headers: TVM's own where they are on the path, else those of the runtime.
    set_source_files_properties(${operators} ${ARGN} PROPERTIES
      COMPILE_OPTIONS "-include;${rename};-idirafter;${OPWEST_TVM_HEADERS}")
  endif()
endfunction()

# opwest_model_library(<model>)
#
# Makes the model in the current folder, a Zephyr module, a library of this build.
function(opwest_model_library model)
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}")
  opwest_model_files(${model} "${folder}" sources operators rename)
  zephyr_include_directories("${folder}/include")
  zephyr_library_named(opwest_${model})
  zephyr_library_sources(${sources} ${operators})
  opwest_model_properties(${model} "${folder}" "${operators}" "${rename}")
endfunction()

# opwest_add_model(<model> MANIFEST <file> [METADATA c|llvm] [TEMPLATE <folder>])
#
# Generates the model that a manifest declares into the build folder, and makes it a library to link with:
#
#     opwest_add_model(digits MANIFEST ${CMAKE_CURRENT_SOURCE_DIR}/digits/manifest.yaml)
#     target_link_libraries(app PRIVATE digits)
#
# Runs when CMake does, and makes CMake run again when any file changes that the manifest names or that its sources
# include. Called after find_package(Zephyr): Kconfig and devicetree are settled by then. <model> must be the manifest's
# own name. Relative paths are those of the CMakeLists.txt.
function(opwest_add_model model)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "MANIFEST;METADATA;TEMPLATE" "")
  if(NOT given_MANIFEST OR given_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "opwest_add_model(${model}): expected MANIFEST <file> [METADATA c|llvm] [TEMPLATE <folder>], "
      "got: ${ARGN}")
  endif()
  if(NOT CONFIG_OPWEST)
    message(FATAL_ERROR "opwest_add_model(${model}): CONFIG_OPWEST is off: set CONFIG_OPWEST=y in prj.conf.")
  endif()
  if(TARGET ${model})
    message(FATAL_ERROR "opwest_add_model(${model}): this build has a target ${model} already. Add a model once; one that "
      "has the name of another target needs a new name in its manifest.")
  endif()
  get_filename_component(manifest "${given_MANIFEST}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/opwest/${model}")
  set(folder "${output}/models/${model}")
  set(inputs "${output}.inputs")
  set(options --layout model --runtime module --inputs "${inputs}" --output "${output}")
  if(given_METADATA)
    list(APPEND options --metadata ${given_METADATA})
  endif()
  if(given_TEMPLATE)
    get_filename_component(template "${given_TEMPLATE}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND options --template "${template}")
  endif()

  # The generator stands beside this file in the repository, else it is installed.
  set(path "$ENV{PYTHONPATH}")
  get_filename_component(generator "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../../generator" ABSOLUTE)
  set(own "")
  if(EXISTS "${generator}/opwest")
    cmake_path(CONVERT "${generator};${path}" TO_NATIVE_PATH_LIST path)
    file(GLOB_RECURSE own "${generator}/opwest/*.py" "${generator}/../project_template/*" "${generator}/../schemas/*")
  endif()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${path}" "PYTHONDONTWRITEBYTECODE=1"
      "${PYTHON_EXECUTABLE}" -m opwest generate "${manifest}" ${options}
    OUTPUT_QUIET
    RESULT_VARIABLE failed)
  # What was read, also where the run failed: mending it is a reason to run again.
  # A newer generator is one too.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}" ${own})
  if(EXISTS "${inputs}")
    file(STRINGS "${inputs}" read ENCODING UTF-8)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${read})
  endif()
  if(failed)
    message(FATAL_ERROR "opwest: model ${model} was not generated: see what stands above, about ${manifest}.\n"
      "If Python did not find a package, install what opwest needs: west packages pip --install")
  endif()
  if(NOT EXISTS "${folder}/model.cmake")
    file(GLOB names RELATIVE "${output}/models" "${output}/models/*")
    message(FATAL_ERROR "opwest_add_model(${model}): ${manifest} declares a model of another name: "
      "write opwest_add_model(${names} ...).")
  endif()

  include("${folder}/model.cmake")
  opwest_model_files(${model} "${folder}" sources operators rename)
  # Sources of an interface are compiled by whoever links: nothing is lost in an archive.
  add_library(${model} INTERFACE)
  target_include_directories(${model} INTERFACE "${folder}/include")
  target_sources(${model} INTERFACE ${sources} ${operators})
  opwest_model_properties(${model} "${folder}" "${operators}" "${rename}" DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" TARGET_DIRECTORY app)
endfunction()
