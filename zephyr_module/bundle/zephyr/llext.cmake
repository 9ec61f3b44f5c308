# SPDX-License-Identifier: Apache-2.0
#
# The sources of CONFIG_OPWEST_BUNDLE_LLEXT, for the current library.

if(CONFIG_OPWEST_BUNDLE_LLEXT)
  opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_LLEXT bundle/zephyr/llext.c bundle/zephyr/llext_check.c)
  if(NOT CONFIG_OPWEST_BUNDLE_FLASH)
    opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_LLEXT bundle/zephyr/instructions.c)
  endif()
endif()
