/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Let a host send, install, confirm and roll back bundles (CONFIG_OPWEST_BUNDLE_SERVICE).
 *
 * The shell and an MCUmgr command group are the transports. See docs/contributing/protocols.md.
 */
#ifndef OPWEST_BUNDLE_SERVICE_H_
#define OPWEST_BUNDLE_SERVICE_H_

#include <opwest/bundles.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the commands; a host compares it with its own. */
#define OPWEST_BUNDLE_SERVICE_VERSION 1

/**
 * @brief Accept the commands of hosts.
 *
 * Before the first call all commands return an access error. The signature of a bundle is the only
 * authentication: a host that reaches a transport of the image can fill and erase inactive slots,
 * confirm, roll back to a model that is in flash, and read the names and versions of models.
 *
 * While the application itself installs a model or rolls back, commands and this function wait.
 *
 * @param bundles The manager; NULL, or a manager whose start failed, to accept no more commands. A
 *                command that has begun is completed.
 */
void opwest_bundles_serve(struct opwest_bundles *bundles);

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_BUNDLE_SERVICE_H_ */
