/* SPDX-License-Identifier: Apache-2.0 */
/* The start of run_image.c on this machine: the file is mapped at the address of its slot. */
#include <stdio.h>
#include <sys/mman.h>

#include "image.h"

#define SLOT_SIZE 0x100000U

void print(const char *text)
{
	fputs(text, stdout);
}

int main(int argc, char **argv)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	void *const slot = mmap((void *)(uintptr_t)SLOT, SLOT_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);
	FILE *const file = argc == 2 ? fopen(argv[1], "rb") : NULL;

	if (slot != (void *)(uintptr_t)SLOT || file == NULL || fread(slot, 1, SLOT_SIZE, file) == 0 ||
	    fclose(file) != 0 || mprotect(slot, SLOT_SIZE, PROT_READ | PROT_EXEC) != 0) {
		return 1;
	}
	measure();
	return 0;
}
