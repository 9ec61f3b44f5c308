/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What model minimal asks of the board, checked when the firmware is built. Zephyr only. Generated
 * by opwest from manifest.yaml.
 */
#include <minimal_devicetree.h>

/*
 * <minimal_devicetree.h> holds the checks: they speak wherever it is included, here at the latest.
 */

#ifdef CONFIG_OPWEST_SHELL
#include <opwest/zephyr.h>

OPWEST_LIST_MODEL(minimal);
#endif
