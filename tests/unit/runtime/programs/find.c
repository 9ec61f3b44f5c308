/* SPDX-License-Identifier: Apache-2.0 */
/* Reads names, one a line, and prints the index of the operator that the registry finds, or -1. */
#include <stdio.h>
#include <string.h>

#include <MODEL_HEADER>

int main(void)
{
	char line[4096];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		line[strcspn(line, "\n")] = '\0';

		const struct opwest_entry *const entry = opwest_find(&REGISTRY, line);

		printf("%ld\n", entry == NULL ? -1L : (long)(entry->info - MODEL.operators));
	}
	return 0;
}
