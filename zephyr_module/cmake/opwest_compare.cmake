# SPDX-License-Identifier: Apache-2.0
#
# A step of opwest_add_model() for generators other than Ninja: fails if GENERATED, the model.cmake of MODEL, differs from
# CONFIGURED, its copy from the last run of CMake. The next build runs CMake.

file(READ "${GENERATED}" generated)
file(READ "${CONFIGURED}" configured)
if(NOT generated STREQUAL configured)
  message(FATAL_ERROR "opwest: the list of the files of model ${MODEL}, or what they require, has changed: CMake must run "
    "again. Start the build again.")
endif()
