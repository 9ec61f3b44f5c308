# SPDX-License-Identifier: Apache-2.0
#
# opwest_add_bundle(): a bundle made in the build of the firmware that runs it, with its compiler and options.

# opwest_add_bundle(<name> MANIFEST <file> SLOT <partition>|<address>[:<size>] | LLEXT
#                   KEY <file>... | UNSIGNED
#                   [VERSION <major>.<minor>.<patch>] [VARIANT <name>] [VECTORS <n>] [STEPS] [OBSERVABLE] [OUTPUT <file>])
#
# Makes <name>.bundle in the build directory, or OUTPUT, as `opwest bundle` does. The slot is a partition of the build's
# devicetree (its node label or its label), or an address. The build makes the bundle again if the manifest, a file that
# it names, a header that its sources include, a key or the configuration changes. Call it after find_package(Zephyr).
# Relative paths start at the directory of the CMakeLists.txt.
#
# The target <name> has the typed interface of the model for the firmware, <model>_bundle.h:
#
#     opwest_add_bundle(digits MANIFEST digits/manifest.yaml SLOT model_slot0 KEY keys/models.pem VERSION 1.2.0)
#     target_link_libraries(app PRIVATE digits)
function(opwest_add_bundle name)
  cmake_parse_arguments(PARSE_ARGV 1 given "LLEXT;UNSIGNED;STEPS;OBSERVABLE"
    "MANIFEST;SLOT;VERSION;VARIANT;VECTORS;OUTPUT" "KEY")
  # DEFINED: SLOT 0 is an address.
  if(NOT DEFINED given_MANIFEST OR DEFINED given_UNPARSED_ARGUMENTS OR NOT (DEFINED given_SLOT OR given_LLEXT)
      OR NOT (DEFINED given_KEY OR given_UNSIGNED))
    message(FATAL_ERROR "opwest_add_bundle(${name}): expected MANIFEST <file> SLOT <slot> or LLEXT, KEY <file>... or "
      "UNSIGNED, [VERSION <version>] [VARIANT <name>] [VECTORS <n>] [STEPS] [OBSERVABLE] [OUTPUT <file>], found: ${ARGN}")
  endif()
  if(TARGET ${name})
    message(FATAL_ERROR "opwest_add_bundle(${name}): duplicate target ${name}. Name each bundle once, unlike all models.")
  endif()
  get_filename_component(manifest "${given_MANIFEST}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(output "${CMAKE_BINARY_DIR}/${name}.bundle")
  if(DEFINED given_OUTPUT)
    get_filename_component(output "${given_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_BINARY_DIR}")
  endif()
  set(headers "${CMAKE_CURRENT_BINARY_DIR}/opwest_bundle/${name}/include")

  set(options --build "${CMAKE_BINARY_DIR}" --output "${output}" --header "${headers}" --depfile "${output}.d")
  if(DEFINED given_SLOT)
    list(APPEND options --slot ${given_SLOT})
  endif()
  foreach(flag IN ITEMS LLEXT UNSIGNED STEPS OBSERVABLE)
    if(given_${flag})
      string(TOLOWER ${flag} option)
      list(APPEND options --${option})
    endif()
  endforeach()
  set(keys)
  foreach(key IN LISTS given_KEY)
    get_filename_component(key "${key}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND keys "${key}")
    list(APPEND options --key "${key}")
  endforeach()
  if(DEFINED given_VERSION)
    list(APPEND options --model-version ${given_VERSION})
  endif()
  if(DEFINED given_VARIANT)
    list(APPEND options --variant ${given_VARIANT})
  endif()
  if(DEFINED given_VECTORS)
    list(APPEND options --vectors ${given_VECTORS})
  endif()

  opwest_python(python own)

  # The headers have the name of the model, which an edit of the manifest can change.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}")
  execute_process(COMMAND ${python} -m opwest.manifest.model_name "${manifest}" OUTPUT_VARIABLE model
    RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "opwest_add_bundle(${name}): cannot read the name of the model: see the messages above for "
      "${manifest}.\nIf Python did not find a package, install the requirements of opwest: west packages pip --install")
  endif()

  add_custom_command(OUTPUT "${output}"
    COMMAND ${python} -m opwest bundle "${manifest}" ${options}
    DEPENDS "${manifest}" ${keys} ${own} "${CMAKE_BINARY_DIR}/zephyr/.config" "${CMAKE_BINARY_DIR}/zephyr/zephyr.dts"
      zephyr_generated_headers
    BYPRODUCTS "${headers}/${model}_bundle.h" "${headers}/${model}.h"
    DEPFILE "${output}.d"
    COMMENT "Making bundle ${name}"
    VERBATIM)
  add_custom_target(opwest_bundle.${name} ALL DEPENDS "${output}")
  add_library(${name} INTERFACE)
  target_include_directories(${name} INTERFACE "${headers}")
  add_dependencies(${name} opwest_bundle.${name})
endfunction()
