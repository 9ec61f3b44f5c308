/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The functions of the Ethos-U driver for operators of bundles: those of opwest/ethos_u.h.
 */
#ifndef OPWEST_ETHOS_U_FUNCTIONS_H_
#define OPWEST_ETHOS_U_FUNCTIONS_H_

#include <opwest/accelerator_functions.h>
#include <opwest/ethos_u.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The identifier of struct opwest_ethos_u_functions. */
#define OPWEST_ETHOS_U_FUNCTIONS_ID OPWEST_ACCELERATOR_FUNCTIONS_ID('E', 'T', 'H', 'U')

/** The functions of the driver. */
struct opwest_ethos_u_functions {
	struct opwest_accelerator_functions base;
	int (*enqueue)(const struct opwest_launch *launch,
		       const struct opwest_ethos_u_inference *inference);
	int (*run)(const struct opwest_launch *launch,
		   const struct opwest_ethos_u_inference *inference);
};

/** The functions of this firmware's driver. */
extern const struct opwest_ethos_u_functions opwest_ethos_u_functions;

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_ETHOS_U_FUNCTIONS_H_ */
