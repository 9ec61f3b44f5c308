/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <opwest/accelerator.h>

bool opwest_program_equal(const struct opwest_program *a, const struct opwest_program *b)
{
	if (a == b) {
		return true;
	}
	return a != NULL && b != NULL && a->size == b->size &&
	       (a->data == b->data || memcmp(a->data, b->data, a->size) == 0);
}
