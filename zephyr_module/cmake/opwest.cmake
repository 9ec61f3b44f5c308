# SPDX-License-Identifier: Apache-2.0
#
# What generated models need of CMake, and opwest_add_model() for applications that generate a model in the build.

get_filename_component(OPWEST_TVM_HEADERS "${CMAKE_CURRENT_LIST_DIR}/../include_tvm" ABSOLUTE)
set(OPWEST_TVM_HEADERS "${OPWEST_TVM_HEADERS}" CACHE INTERNAL "Stand-ins for TVM's headers")

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
  if(CONFIG_OPWEST_SERVICE)
    list(APPEND files ${${model}_SERVICE})
  endif()
  list(TRANSFORM files PREPEND "${folder}/")
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
# Runs when CMake does, and makes CMake run again when any file changes that the manifest names. Called after
# find_package(Zephyr): Kconfig and devicetree are settled by then. <model> must be the manifest's own name.
function(opwest_add_model model)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "MANIFEST;METADATA;TEMPLATE" "")
  if(NOT given_MANIFEST OR given_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "opwest_add_model(${model}): expected MANIFEST <file> [METADATA c|llvm] [TEMPLATE <folder>], "
      "got: ${ARGN}")
  endif()
  if(NOT CONFIG_OPWEST)
    message(FATAL_ERROR "opwest_add_model(${model}): CONFIG_OPWEST is off: set CONFIG_OPWEST=y in prj.conf.")
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
  if(EXISTS "${generator}/opwest")
    cmake_path(CONVERT "${generator};${path}" TO_NATIVE_PATH_LIST path)
  endif()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${path}" "PYTHONDONTWRITEBYTECODE=1"
      "${PYTHON_EXECUTABLE}" -m opwest generate "${manifest}" ${options}
    OUTPUT_QUIET
    RESULT_VARIABLE failed)
  # What was read, also where the run failed: mending it is a reason to run again.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}")
  if(EXISTS "${inputs}")
    file(STRINGS "${inputs}" read ENCODING UTF-8)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${read})
  endif()
  if(failed)
    message(FATAL_ERROR "opwest: model ${model} was not generated: see what stands above, about ${manifest}.\n"
      "If Python did not find a package, install what opwest needs: west packages pip --install")
  endif()
  if(NOT EXISTS "${folder}/model.cmake")
    message(FATAL_ERROR "opwest_add_model(${model}): ${manifest} declares a model of another name.")
  endif()

  include("${folder}/model.cmake")
  opwest_model_files(${model} "${folder}" sources operators rename)
  # Sources of an interface are compiled by whoever links: nothing is lost in an archive.
  add_library(${model} INTERFACE)
  target_include_directories(${model} INTERFACE "${folder}/include")
  target_sources(${model} INTERFACE ${sources} ${operators})
  opwest_model_properties(${model} "${folder}" "${operators}" "${rename}" TARGET_DIRECTORY app)
endfunction()
