/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with a write-back cache, and operators that access it through the cache or directly. */
#ifndef CACHED_H_
#define CACHED_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/port.h>

enum use {
	USE_IN,
	USE_OUT,
	USE_INOUT,
	USE_SCRATCH,
};

struct span {
	/* The address for the CPU. */
	uint8_t *at;
	uint32_t size;
	enum use use;
};

#define MAX_SPANS 8

/* Called by every operator. */
int32_t cached_step(uint32_t step, bool launched, const struct span *spans, uint32_t count,
		    const struct device *dev);

/* Memory of a model: `size` bytes that it may use, in lines of `line` bytes (0: not cached). */
uint8_t *cached_region(uint32_t size, uint32_t line);

/* The CPU writes, reads. */
void cached_write(uint8_t *to, const uint8_t *from, uint32_t size);
bool cached_equal(uint8_t *at, const uint8_t *good, uint32_t size);

struct cached_model {
	const char *name;
	void (*prepare)(void);
	int (*open)(void);
	int (*run)(uint32_t turn);
	bool (*right)(uint32_t turn);
	int (*close)(void);
};

extern const struct cached_model *const cached_models[];
extern const uint32_t cached_turns;
extern const struct device cached_devices[3], coherent_devices[3];

#endif
