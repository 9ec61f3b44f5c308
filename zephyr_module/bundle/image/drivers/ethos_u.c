/* SPDX-License-Identifier: Apache-2.0 */
/* Part of the image of a bundle: the functions of operators, which call the firmware's driver. */
#include <errno.h>
#include <stddef.h>

#include <opwest/ethos_u_functions.h>

static const struct opwest_ethos_u_functions *functions(const struct opwest_launch *launch)
{
	return (const struct opwest_ethos_u_functions *)opwest_accelerator_functions(
		launch->dev, OPWEST_ETHOS_U_FUNCTIONS_ID, sizeof(struct opwest_ethos_u_functions));
}

int opwest_ethos_u_enqueue(const struct opwest_launch *launch,
			   const struct opwest_ethos_u_inference *inference)
{
	const struct opwest_ethos_u_functions *const driver = functions(launch);

	return driver == NULL ? -ENOTSUP : driver->enqueue(launch, inference);
}

int opwest_ethos_u_run(const struct opwest_launch *launch,
		       const struct opwest_ethos_u_inference *inference)
{
	const struct opwest_ethos_u_functions *const driver = functions(launch);

	return driver == NULL ? -ENOTSUP : driver->run(launch, inference);
}
