/* SPDX-License-Identifier: Apache-2.0 */
/* A list of models that the program of a host makes. */
#include <stdio.h>

#include <opwest/model_list.h>

#include <down.h>
#include <up.h>

int main(void)
{
	static const struct opwest_listed_model models[] = {OPWEST_LISTED_MODEL(up), OPWEST_LISTED_MODEL(down)};
	static const struct opwest_model_list list = {models, 2};
	static const struct opwest_model_list none = {NULL, 0};

	printf("%d %d %d %d\n", opwest_model_list_find(&list, "up") == &up_model,
	       opwest_model_list_find(&list, "down") == &down_model, opwest_model_list_find(&list, "u") == NULL,
	       opwest_model_list_find(&none, "up") == NULL);
	return 0;
}
