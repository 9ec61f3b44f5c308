/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's devices are threads that see its caches: nothing to do. A test may link a cache of its
 * own.
 */
#include <opwest/port.h>

int opwest_port_cache_flush(const uint8_t *data, uint32_t size)
{
	(void)data;
	(void)size;
	return 0;
}

int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size)
{
	(void)data;
	(void)size;
	return 0;
}

int opwest_port_cache_invalidate(uint8_t *data, uint32_t size)
{
	(void)data;
	(void)size;
	return 0;
}
