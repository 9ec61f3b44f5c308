/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of a host are coherent threads and need no maintenance. A test may link its own cache. */
#include <opwest/port.h>

uint32_t opwest_port_cache_line(void)
{
	return 0U;
}

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
