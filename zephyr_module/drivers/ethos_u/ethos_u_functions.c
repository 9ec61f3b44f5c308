/* SPDX-License-Identifier: Apache-2.0 */
/* The functions for operators of bundles. */
#include <opwest/ethos_u_functions.h>

const struct opwest_ethos_u_functions opwest_ethos_u_functions = {
	.base = {OPWEST_ETHOS_U_FUNCTIONS_ID, sizeof(struct opwest_ethos_u_functions)},
	.enqueue = opwest_ethos_u_enqueue,
	.run = opwest_ethos_u_run,
};
