# SPDX-License-Identifier: Apache-2.0
#
# opwest_add_model(), for applications that generate a model in the build.

# opwest_add_model(<model> MANIFEST <file> [METADATA c|llvm] [TARGET <name>...] [TEMPLATE <directory>])
#
# Generates the model that a manifest declares into the build directory, and adds it as a library to link with:
#
#     opwest_add_model(digits MANIFEST ${CMAKE_CURRENT_SOURCE_DIR}/digits/manifest.yaml)
#     target_link_libraries(app PRIVATE digits)
#
# The build generates the model again if the manifest, a file that it names, or a header that its sources include changes.
# CMake runs again only if model.cmake changes: the list of files and what they require. The sources of operators are
# compiled where they are. Call it after find_package(Zephyr), which processes Kconfig and devicetree. <model> must be the
# name in the manifest. Relative paths start at the directory of the CMakeLists.txt.
function(opwest_add_model model)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "MANIFEST;METADATA;TEMPLATE" "TARGET")
  if(NOT given_MANIFEST OR given_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "opwest_add_model(${model}): expected MANIFEST <file> [METADATA c|llvm] [TARGET <name>...] "
      "[TEMPLATE <directory>], found: ${ARGN}")
  endif()
  if(NOT CONFIG_OPWEST)
    message(FATAL_ERROR "opwest_add_model(${model}): CONFIG_OPWEST is off: set CONFIG_OPWEST=y in prj.conf.")
  endif()
  if(TARGET ${model})
    message(FATAL_ERROR "opwest_add_model(${model}): duplicate target ${model}. Add a model once; rename a "
      "model that has the name of another target.")
  endif()
  get_filename_component(manifest "${given_MANIFEST}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/opwest/${model}")
  set(folder "${output}/models/${model}")
  set(inputs "${output}.inputs")
  set(options --layout model --runtime module --output "${output}")
  if(given_METADATA)
    list(APPEND options --metadata ${given_METADATA})
  endif()
  foreach(target IN LISTS given_TARGET)
    list(APPEND options --target ${target})
  endforeach()
  if(given_TEMPLATE)
    get_filename_component(template "${given_TEMPLATE}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND options --template "${template}")
  endif()

  opwest_python(python own)
  set(generate ${python} -m opwest generate "${manifest}" ${options})
  execute_process(COMMAND ${generate} --inputs "${inputs}" OUTPUT_QUIET RESULT_VARIABLE failed)
  if(failed)
    # Configure again if an input of the generator or the generator changes.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}" ${own})
    if(EXISTS "${inputs}")
      file(STRINGS "${inputs}" read ENCODING UTF-8)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${read})
    endif()
    message(FATAL_ERROR "opwest: model ${model} was not generated: see the messages above for ${manifest}.\n"
      "If Python did not find a package, install the requirements of opwest: west packages pip --install")
  endif()
  if(NOT EXISTS "${folder}/model.cmake")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest}")
    file(GLOB names RELATIVE "${output}/models" "${output}/models/*")
    message(FATAL_ERROR "opwest_add_model(${model}): ${manifest} declares a model of another name: "
      "use opwest_add_model(${names} ...).")
  endif()

  include("${folder}/model.cmake")
  set(declarations model.cmake)
  if(${model}_VARIANT)
    list(APPEND declarations variants/${${model}_VARIANT}/model.cmake)
  endif()

  # Ninja brings model.cmake up to date before it compares build.ninja with it; make does not.
  set(compare)
  if(NOT CMAKE_GENERATOR MATCHES "Ninja")
    foreach(file IN LISTS declarations)
      configure_file("${folder}/${file}" "${output}.configured/${file}" COPYONLY)
      list(APPEND compare COMMAND "${CMAKE_COMMAND}" "-DMODEL=${model}" "-DCONFIGURED=${output}.configured/${file}"
        "-DGENERATED=${folder}/${file}" -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/opwest_compare.cmake")
    endforeach()
  endif()
  # The files of the model are those of the lock, without those of a module.
  set(made)
  file(READ "${output}/.opwest/lock.json" lock)
  string(JSON last LENGTH "${lock}" files)
  math(EXPR last "${last} - 1")
  foreach(index RANGE ${last})
    string(JSON file MEMBER "${lock}" files ${index})
    list(APPEND made "${output}/${file}")
  endforeach()
  list(FILTER made INCLUDE REGEX "/models/")
  list(FILTER made EXCLUDE REGEX "/(CMakeLists\\.txt|Kconfig|module\\.yml)$")
  set(stamp "${output}.stamp")
  add_custom_command(OUTPUT "${stamp}"
    COMMAND ${generate} --depfile "${stamp}.d"
    ${compare}
    COMMAND "${CMAKE_COMMAND}" -E touch "${stamp}"
    DEPENDS "${manifest}" ${own}
    BYPRODUCTS ${made}
    DEPFILE "${stamp}.d"
    COMMENT "Generating model ${model}"
    VERBATIM)
  add_custom_target(opwest_${model}.generated DEPENDS "${stamp}")

  if(${model}_VARIANT)
    string(APPEND folder "/variants/${${model}_VARIANT}")
  endif()
  opwest_model_files(${model} "${folder}" sources)
  get_filename_component(place "${manifest}" DIRECTORY)
  opwest_model_operators(operators ${model} "${folder}" "${place}" "${manifest}")
  # The target that links an interface compiles its sources, so that no file is dropped from an archive.
  add_library(${model} INTERFACE)
  target_include_directories(${model} INTERFACE "${folder}/include")
  target_sources(${model} INTERFACE ${sources})
  add_dependencies(${model} opwest_${model}.generated)
  foreach(library IN LISTS operators)
    target_include_directories(${library} PRIVATE $<TARGET_PROPERTY:app,INCLUDE_DIRECTORIES>)
    target_compile_definitions(${library} PRIVATE $<TARGET_PROPERTY:app,COMPILE_DEFINITIONS>)
    target_compile_options(${library} PRIVATE $<TARGET_PROPERTY:app,COMPILE_OPTIONS>)
    target_sources(${model} INTERFACE $<TARGET_OBJECTS:${library}>)
    add_dependencies(${library} opwest_${model}.generated)
  endforeach()
  if(operators)
    add_dependencies(${model} opwest_${model}.operators.check)
  endif()
  opwest_model_properties(${model} "${folder}" DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" TARGET_DIRECTORY app)
endfunction()
