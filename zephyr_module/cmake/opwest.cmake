# SPDX-License-Identifier: Apache-2.0
#
# What the CMakeLists.txt of a generated model needs.

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
