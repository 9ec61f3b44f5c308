/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPWEST_PROFILE_DEVICES_SHELL_H_
#define OPWEST_PROFILE_DEVICES_SHELL_H_

#include <zephyr/shell/shell.h>

/* Print the counters of all devices. */
void opwest_profile_devices_print(const struct shell *sh);

/* Reset the counters of all devices. */
void opwest_profile_devices_reset(void);

#endif /* OPWEST_PROFILE_DEVICES_SHELL_H_ */
