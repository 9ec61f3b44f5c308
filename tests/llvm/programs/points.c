/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the points of five models. Compiled with CONFIG_OPWEST_PROFILE. */
#include <accelerated.h>
#include <asynchronous.h>
#include <conventions.h>
#include <many_kinds.h>
#include <streams.h>

#include "show.h"

#define POINTS(model)                                                                              \
	for (size_t i = 0; i < COUNT(model##_points); i++) {                                       \
		show_opwest_point(&model##_points[i]);                                             \
	}

void walk(void)
{
	text("begin\n");
	POINTS(accelerated)
	POINTS(asynchronous)
	POINTS(conventions)
	POINTS(many_kinds)
	POINTS(streams)
	text("end\n");
}
