# SPDX-License-Identifier: Apache-2.0
#
# The sources of CONFIG_OPWEST_BUNDLE_SERVICE, for the current library.

if(CONFIG_OPWEST_BUNDLE_SERVICE)
  opwest_check_transport(CONFIG_OPWEST_BUNDLE opwest-bundle-service)
  opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_SERVICE bundle/zephyr/jobs.c)
  opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_SERVICE bundle/zephyr/service.c)
  opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_SHELL bundle/zephyr/shell.c)
  opwest_sources_ifdef(CONFIG_OPWEST_BUNDLE_SMP bundle/zephyr/smp.c)
endif()
