# SPDX-License-Identifier: Apache-2.0
#
# What `-S opwest-service` needs: parts that an application does not contain, and a transport.

# opwest_python(<command> <files>)
#
# Sets <command> to the command that runs Python with opwest: in the repository the generator is next to this file,
# otherwise it is installed. The Python is OPWEST_PYTHON, else that of the build. Sets <files> to the files of the
# generator, empty for an installed one.
function(opwest_python command files)
  set(python "${PYTHON_EXECUTABLE}")
  if(OPWEST_PYTHON)
    set(python "${OPWEST_PYTHON}")
  endif()
  set(path "$ENV{PYTHONPATH}")
  get_filename_component(root "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../.." ABSOLUTE)
  set(own "")
  if(EXISTS "${root}/generator/opwest")
    cmake_path(CONVERT "${root}/generator;${path}" TO_NATIVE_PATH_LIST path)
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env "PYTHONPATH=${path}" "PYTHONDONTWRITEBYTECODE=1"
      "${python}" -m opwest.base.resources OUTPUT_VARIABLE own OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(REPLACE "\n" ";" own "${own}")
  endif()
  set(${command} "${CMAKE_COMMAND}" -E env "PYTHONPATH=${path}" "PYTHONDONTWRITEBYTECODE=1" "${python}"
    PARENT_SCOPE)
  set(${files} "${own}" PARENT_SCOPE)
endfunction()

# opwest_complete(<runtime> <project> <errors>)
#
# For what a generated project does not contain: sets <runtime> to the complete runtime of opwest_python(), and writes the
# sources of the service of the project's models into the directory that is the global property
# opwest_services_<MD5 of the project>, once. Sets <errors> to what opwest prints if it fails; <runtime> is empty then.
function(opwest_complete variable project errors)
  set(${errors} "" PARENT_SCOPE)
  string(MD5 hash "${project}")
  set(written "${CMAKE_BINARY_DIR}/opwest_services/${hash}")
  get_property(known GLOBAL PROPERTY opwest_runtime_${hash})
  if(NOT known)
    opwest_python(python files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${project}/.opwest/lock.json")
    execute_process(COMMAND ${python} -m opwest.runs.services "${project}" "${written}" OUTPUT_VARIABLE known
      ERROR_VARIABLE failure RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
      set(known "")
      set(${errors} "${failure}" PARENT_SCOPE)
    else()
      set_property(GLOBAL PROPERTY opwest_runtime_${hash} "${known}")
      set_property(GLOBAL PROPERTY opwest_services_${hash} "${written}")
    endif()
  endif()
  set(${variable} "${known}" PARENT_SCOPE)
endfunction()

# opwest_model_service(<variable> <model> <directory>)
#
# Sets <variable> to the source of the model's service for hosts: the model's own, one in OPWEST_SERVICES, which
# `opwest run --board` writes, or one of opwest_complete().
function(opwest_model_service variable model folder)
  set(name "${model}_service.c")
  opwest_model_file(service ${model} "${folder}" "src/${name}")
  if(${model}_VARIANT)
    set(name "${${model}_VARIANT}/${name}")
  endif()
  set(errors "")
  if(NOT EXISTS "${service}" AND OPWEST_SERVICES)
    set(service "${OPWEST_SERVICES}/${name}")
  elseif(NOT EXISTS "${service}")
    get_filename_component(project "${CMAKE_CURRENT_SOURCE_DIR}/../.." ABSOLUTE)
    opwest_complete(runtime "${project}" errors)
    string(MD5 hash "${project}")
    get_property(written GLOBAL PROPERTY opwest_services_${hash})
    set(service "${written}/${name}")
  endif()
  if(NOT EXISTS "${service}")
    message(FATAL_ERROR "opwest: CONFIG_OPWEST_SERVICE is set, but model ${model} was generated without it.\n${errors}"
      "Install opwest for the Python of this build, give the Python that has it (-DOPWEST_PYTHON=), add "
      "CONFIG_OPWEST_SERVICE: y under application: kconfig: in its manifest and run `opwest update`, or build with `opwest run --board`.")
  endif()
  set(${variable} "${service}" PARENT_SCOPE)
endfunction()

# opwest_check_transport(<option> <snippet>)
#
# Fails if a host cannot reach the service of <option> over the image's transports.
function(opwest_check_transport option snippet)
  if(NOT ${option}_SHELL AND NOT ${option}_SMP)
    message(WARNING "opwest: ${option} has no transport: no host can use it. Build with `-S ${snippet}`; "
      "${option}_SMP needs CONFIG_MCUMGR=y, CONFIG_MCUMGR_GRP_OS_MCUMGR_PARAMS=y and the module zcbor "
      "(west update zcbor), ${option}_SHELL needs CONFIG_SHELL=y.")
  endif()
  if(CONFIG_MCUMGR AND NOT CONFIG_ZEPHYR_ZCBOR_MODULE)
    message(FATAL_ERROR "opwest: MCUmgr, which ${option} uses, needs the module zcbor: west update zcbor")
  endif()
  # The commands of opwest correct the next two themselves.
  if(NOT ${option}_SMP OR NOT CONFIG_MCUMGR_TRANSPORT_UART OR OPWEST_SERVICES)
    return()
  endif()
  dt_chosen(uart PROPERTY "zephyr,uart-mcumgr")
  dt_chosen(shell PROPERTY "zephyr,shell-uart")
  if(NOT uart)
    message(FATAL_ERROR "opwest: the devicetree of the board chooses no UART for SMP. Add an overlay with the UART, such "
      "as / { chosen { zephyr,uart-mcumgr = &uart0; }; };")
  endif()
  dt_prop(compatible PATH "${uart}" PROPERTY compatible)
  if((CONFIG_SHELL_BACKEND_SERIAL AND shell STREQUAL uart) OR "arm,cmsdk-uart" IN_LIST compatible)
    message(FATAL_ERROR "opwest: the UART for SMP, ${uart}, has a shell, or a driver whose interrupt handler never "
      "returns with SMP: build with `-S ${snippet}-shell` instead.")
  endif()
endfunction()
