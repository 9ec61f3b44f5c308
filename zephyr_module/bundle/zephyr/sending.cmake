# SPDX-License-Identifier: Apache-2.0
#
# The sources of CONFIG_OPWEST_BUNDLE_SERVICE, for the current library.

if(CONFIG_OPWEST_BUNDLE_SERVICE)
  if(NOT CONFIG_OPWEST_BUNDLE_SHELL AND NOT CONFIG_OPWEST_BUNDLE_SMP)
    message(WARNING "opwest: CONFIG_OPWEST_BUNDLE_SERVICE has no transport: no host can send bundles. "
      "CONFIG_OPWEST_BUNDLE_SMP needs the module zcbor (west update zcbor); or set CONFIG_OPWEST_BUNDLE_SHELL=y.")
  endif()
  opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_SERVICE bundle/zephyr/jobs.c)
  opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_SERVICE bundle/zephyr/service.c)
  opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_SHELL bundle/zephyr/shell.c)
  opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_SMP bundle/zephyr/smp.c)
endif()
