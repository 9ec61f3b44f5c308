/* SPDX-License-Identifier: Apache-2.0 */
/* All records of a model, for every target with the same text. */
#ifndef DETAILS_H_
#define DETAILS_H_

#include <string.h>

#include "show.h"

/*
 * The ABI differs between targets: it is compared with that of this code. Each part of the details has tables of its own:
 * a compiler may merge equal data of two parts, so only pointers shared within a part are compared.
 */
static inline void show_details(const struct opwest_details *details)
{
	static const struct opwest_model none;
	const struct opwest_build *const build = details->build;
	struct opwest_details rest = *details;
	struct opwest_build common = *build;

	text(build->machine == OPWEST_ABI_MACHINE && build->float_abi == OPWEST_ABI_FLOAT &&
			     build->pointer_size == sizeof(void *) && build->big_endian == OPWEST_ABI_BIG_ENDIAN &&
			     strcmp(build->target, TARGET) == 0
		     ? ""
		     : "an impossible ABI\n");
	common.machine = 0;
	common.float_abi = 0;
	common.pointer_size = 0;
	common.target = "";
	show_opwest_model(details->model);
	of_model.count = 0;
	rest.model = &none;
	rest.build = &common;
	rest.buffer_count = 0;
	show_opwest_details(&rest);
	of_model.count = 0;
	number(details->buffer_count);
	text("\n");
	for (uint16_t i = 0; i < details->buffer_count; i++) {
		show_opwest_buffer(&details->buffers[i]);
	}
	for (uint16_t i = 0; i < details->constant_count; i++) {
		name(details->constants[i].tensor.name);
		bytes(details->constants[i].data, details->constants[i].tensor.size);
		text("\n");
	}
}

#endif /* DETAILS_H_ */
