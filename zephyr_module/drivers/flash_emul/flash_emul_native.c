/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of emulated flash in a program of the host: a file, at the addresses of devicetree.
 * Compiled with the host's C library, outside of Zephyr.
 */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int opwest_native_flash(uintptr_t memory, size_t size, uintptr_t state, size_t state_size);
void opwest_native_power_off(void);

static const char path[] = "flash_emul.bin";

/* Map a part of the file: at the wanted address, unless another mapping is there. */
static int map_part(int file, uintptr_t address, size_t size, off_t place)
{
	void *const wanted = (void *)address;
	void *const found =
		mmap(wanted, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, file, place);

	if (found != wanted) {
		(void)fprintf(stderr, "%s: cannot map %zu bytes at %p\n", path, size, wanted);
		return -1;
	}
	return 0;
}

int opwest_native_flash(uintptr_t memory, size_t size, uintptr_t state, size_t state_size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t whole = (size + page - 1U) / page * page;
	const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	int rc = -1;

	if (file < 0) {
		perror(path);
		return -1;
	}
	if (ftruncate(file, (off_t)(whole + page)) == 0 && map_part(file, memory, whole, 0) == 0 &&
	    map_part(file, state, state_size, (off_t)whole) == 0) {
		rc = 0;
	}
	(void)close(file);
	return rc;
}

void opwest_native_power_off(void)
{
	_exit(3);
}
