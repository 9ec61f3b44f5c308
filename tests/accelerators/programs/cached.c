/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cached ROUNDS LEFT_OUT: runs every model ROUNDS times and prints the number of wrong results.
 *
 * The arrays of the CPU are its view through the cache; devices that do not see the cache work on
 * a second copy. `base` is the content of a line when both were last equal: a line is dirty if the
 * CPU's differs, or if the CPU has written it. At every call, lines are written back, dropped and
 * fetched at random, and devices do some of their work. LEFT_OUT is a set of bits, the omitted
 * maintenance: 1 flush, 2 flush and invalidate, 4 invalidate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/accelerator.h>
#include <opwest/port.h>

#include "cached.h"

#define PAGE 4096U
#define MAX_REGIONS 16

struct region {
	/* The CPU's view; the pages before and after it belong to neighbours. */
	uint8_t *cpu;
	uint8_t *memory;
	uint8_t *base;
	bool *dirty;
	uint32_t size, room, line;
};

static struct region regions[MAX_REGIONS];
static uint32_t region_count;
static uint64_t random_state = 1;
static unsigned int left_out, violations;
static unsigned long maintained[3];

static void violation(const char *what)
{
	printf("VIOLATION %s\n", what);
	violations++;
}

static uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005U + 1442695040888963407U;
	return (uint32_t)(random_state >> 33) % limit;
}

static uint8_t *page(uint32_t size)
{
	uint8_t *const found = aligned_alloc(PAGE, size);

	if (found == NULL) {
		abort();
	}
	memset(found, 0xC3, size);
	return found;
}

uint8_t *cached_region(uint32_t size, uint32_t line)
{
	struct region *const region = &regions[region_count++];
	const uint32_t room = (size + PAGE - 1U) / PAGE * PAGE + 2U * PAGE;

	if (region_count > MAX_REGIONS) {
		abort();
	}
	*region = (struct region){page(room), page(room), page(room), calloc(room, sizeof(bool)),
				  size, room, line};
	/* The neighbours' lines are dirty: dropping one loses their data. */
	memset(region->cpu, 0xEE, PAGE);
	memset(region->cpu + room - PAGE, 0xEE, PAGE);
	return region->cpu + PAGE;
}

static void forget_regions(void)
{
	for (uint32_t i = 0; i < region_count; i++) {
		const struct region *const region = &regions[i];

		for (uint32_t at = 0; at < PAGE; at++) {
			if (region->cpu[at] != 0xEE || region->cpu[region->room - PAGE + at] != 0xEE) {
				violation("a neighbour was damaged");
				break;
			}
		}
		free(region->cpu);
		free(region->memory);
		free(region->base);
		free(region->dirty);
	}
	region_count = 0;
}

/* The region of an address, and the offset there; NULL for flash. */
static struct region *region_of(const uint8_t *at, uint32_t *offset)
{
	for (uint32_t i = 0; i < region_count; i++) {
		struct region *const region = &regions[i];

		if ((uintptr_t)at >= (uintptr_t)region->cpu &&
		    (uintptr_t)at < (uintptr_t)region->cpu + region->room) {
			*offset = (uint32_t)(at - region->cpu);
			return region;
		}
	}
	return NULL;
}

static bool is_dirty(const struct region *region, uint32_t at)
{
	return region->dirty[at / region->line] ||
	       memcmp(region->cpu + at, region->base + at, region->line) != 0;
}

static void write_back(struct region *region, uint32_t at)
{
	if (is_dirty(region, at)) {
		memcpy(region->memory + at, region->cpu + at, region->line);
		memcpy(region->base + at, region->cpu + at, region->line);
		region->dirty[at / region->line] = false;
	}
}

static void fetch(struct region *region, uint32_t at)
{
	memcpy(region->cpu + at, region->memory + at, region->line);
	memcpy(region->base + at, region->memory + at, region->line);
	region->dirty[at / region->line] = false;
}

static void devices_work(void);

static void chaos(void)
{
	for (uint32_t i = 0; i < region_count; i++) {
		struct region *const region = &regions[i];
		const uint32_t inner = region->room - PAGE;

		for (uint32_t at = PAGE; region->line != 0 && at < inner && at < PAGE + region->size;
		     at += region->line) {
			const uint32_t luck = random_below(8);

			if (luck == 0) {
				write_back(region, at);
			} else if (luck <= 2 && !is_dirty(region, at)) {
				fetch(region, at);
			}
		}
	}
	devices_work();
}

/* ---- the port ---- */

static struct region *lines_of(const uint8_t *data, uint32_t size, uint32_t *at)
{
	struct region *const region = region_of(data, at);
	const char *wrong = NULL;

	if (region == NULL || region->line == 0) {
		wrong = "maintenance of what is not cached";
	} else if (*at % region->line != 0 || size % region->line != 0 || size == 0) {
		wrong = "maintenance of parts of lines";
	} else if (*at < PAGE || *at - PAGE + size > region->size) {
		wrong = "maintenance of a neighbour's memory";
	}
	if (wrong != NULL) {
		violation(wrong);
	}
	return wrong == NULL ? region : NULL;
}

/* Not used: no operator is called by name. */
uint32_t opwest_port_cache_line(void)
{
	return 0U;
}

/* After writing back, the worst case: a line is fetched again before the device writes. */
static int maintain(unsigned int operation, const uint8_t *data, uint32_t size, bool writes_back,
		    bool fetches)
{
	uint32_t at = 0;
	struct region *const region = lines_of(data, size, &at);

	chaos();
	maintained[operation]++;
	for (uint32_t end = at + size;
	     region != NULL && (left_out & 1U << operation) == 0 && at < end; at += region->line) {
		if (writes_back) {
			write_back(region, at);
		}
		if (fetches) {
			fetch(region, at);
		}
	}
	chaos();
	return 0;
}

int opwest_port_cache_flush(const uint8_t *data, uint32_t size)
{
	return maintain(0, data, size, true, false);
}

int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size)
{
	return maintain(1, data, size, true, true);
}

int opwest_port_cache_invalidate(uint8_t *data, uint32_t size)
{
	return maintain(2, data, size, false, true);
}

/* ---- accesses through the cache and direct accesses ---- */

static void load(uint8_t *to, uint8_t *from, uint32_t size, bool sees_cache)
{
	uint32_t at = 0;
	const struct region *const region = region_of(from, &at);

	memcpy(to, region == NULL || region->line == 0 || sees_cache ? from : region->memory + at,
	       size);
}

static void store(uint8_t *to, const uint8_t *from, uint32_t size, bool sees_cache)
{
	uint32_t at = 0;
	struct region *const region = region_of(to, &at);

	if (region == NULL) {
		violation("something is written to flash");
	} else if (region->line == 0 || sees_cache) {
		memcpy(to, from, size);
		for (uint32_t i = at; region->line != 0 && i < at + size; i++) {
			region->dirty[i / region->line] = true;
		}
	} else {
		memcpy(region->memory + at, from, size);
	}
}

void cached_write(uint8_t *to, const uint8_t *from, uint32_t size)
{
	chaos();
	store(to, from, size, true);
}

bool cached_equal(uint8_t *at, const uint8_t *good, uint32_t size)
{
	chaos();
	return memcmp(at, good, size) == 0;
}

/* ---- devices ---- */

struct job {
	struct span spans[MAX_SPANS];
	uint32_t step, count;
	bool started;
};

struct opwest_host_config {
	bool sees_cache;
};

struct opwest_host_data {
	struct job jobs[32];
	uint32_t head, tail;
};

static void start(struct job *job, bool sees_cache)
{
	uint8_t garbage[256];

	memset(garbage, 0x99, sizeof(garbage));
	for (uint32_t i = 0; i < job->count && !job->started; i++) {
		const struct span *const span = &job->spans[i];

		if (span->use == USE_OUT || span->use == USE_SCRATCH) {
			store(span->at, garbage, span->size, sees_cache);
		}
	}
	job->started = true;
}

static void finish(struct job *job, bool sees_cache)
{
	uint8_t bytes[256];
	uint32_t hash = 2166136261U ^ job->step;

	start(job, sees_cache);
	for (uint32_t i = 0; i < job->count; i++) {
		const struct span *const span = &job->spans[i];

		if (span->use == USE_IN || span->use == USE_INOUT) {
			load(bytes, span->at, span->size, sees_cache);
			for (uint32_t at = 0; at < span->size; at++) {
				hash = (hash ^ bytes[at]) * 16777619U;
			}
		}
	}
	for (uint32_t i = 0; i < job->count; i++) {
		const struct span *const span = &job->spans[i];
		const uint32_t mixed = hash ^ (i * 40503U);

		if (span->use == USE_OUT || span->use == USE_INOUT) {
			for (uint32_t at = 0; at < span->size; at++) {
				bytes[at] = (uint8_t)((mixed * (2U * at + 1U) * 2654435761U) >> 24);
			}
			store(span->at, bytes, span->size, sees_cache);
		}
	}
}

static struct opwest_host_data data_of[6];

static void drain(const struct device *dev)
{
	while (dev->data->head != dev->data->tail) {
		finish(&dev->data->jobs[dev->data->head++ % 32U], dev->config->sees_cache);
	}
}

static int cached_sync(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	(void)leave;
	(void)timeout_ms;
	chaos();
	drain(dev);
	chaos();
	return 0;
}

static OPWEST_ACCELERATOR_API(cached_api) = {.sync = cached_sync};
static const struct opwest_host_config behind = {false}, before = {true};
#define DEVICE(name, config, number) {name, &config, &cached_api, &data_of[number]}
const struct device cached_devices[3] = {
	DEVICE("behind0", behind, 0), DEVICE("behind1", behind, 1), DEVICE("behind2", behind, 2)};
const struct device coherent_devices[3] = {
	DEVICE("before0", before, 3), DEVICE("before1", before, 4), DEVICE("before2", before, 5)};

/* Each device may start and end some of its work now. */
static void devices_work(void)
{
	for (uint32_t i = 0; i < 6; i++) {
		struct opwest_host_data *const data = &data_of[i];
		struct job *const job = &data->jobs[data->head % 32U];

		if (data->head == data->tail || random_below(6) != 0) {
			continue;
		}
		if (random_below(2) == 0) {
			start(job, i >= 3);
		} else {
			data->head++;
			finish(job, i >= 3);
		}
	}
}

int32_t cached_step(uint32_t step, bool launched, const struct span *spans, uint32_t count,
		    const struct device *dev)
{
	struct job job = {.step = step, .count = count};

	if (count > MAX_SPANS) {
		abort();
	}
	memcpy(job.spans, spans, count * sizeof(spans[0]));
	chaos();
	if (launched) {
		dev->data->jobs[dev->data->tail++ % 32U] = job;
	} else if (dev == NULL) {
		finish(&job, true);
	} else {
		drain(dev);
		finish(&job, dev->config->sees_cache);
	}
	chaos();
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long wrong = 0, runs = 0;

	if (argc != 3) {
		return 2;
	}
	left_out = (unsigned int)atoi(argv[2]);
	for (uint32_t i = 0; cached_models[i] != NULL; i++) {
		const struct cached_model *const model = cached_models[i];
		const unsigned long before_it = wrong;

		for (int round = 0; round < atoi(argv[1]); round++) {
			model->prepare();
			if (model->open() != 0) {
				return 3;
			}
			for (uint32_t turn = 0; turn < cached_turns; turn++) {
				if (model->run(turn) != 0) {
					return 4;
				}
				runs++;
				wrong += !model->right(turn);
			}
			if (model->close() != 0) {
				return 5;
			}
			forget_regions();
		}
		printf("%s: %s\n", model->name, wrong == before_it ? "right" : "wrong");
	}
	printf("%lu runs, %lu wrong, %lu %lu %lu maintained\n", runs, wrong, maintained[0],
	       maintained[1], maintained[2]);
	return violations == 0 ? 0 : 6;
}
