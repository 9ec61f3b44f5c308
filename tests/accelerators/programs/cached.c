/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cached SEED ROUNDS LEFT_OUT: runs every model ROUNDS times and prints the number of wrong results.
 *
 * The arrays of the CPU are its view through the cache; devices that do not see the cache work on
 * a second copy. `base` is the content of a line when both were last equal: a line is dirty if the CPU's differs,
 * or if the CPU has written it. At every call, lines are written back, dropped and fetched at
 * random, and devices do some of their work. LEFT_OUT is a set of bits, the omitted maintenance: 1 flush,
 * 2 flush and invalidate, 4 invalidate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opwest/accelerator.h>
#include <opwest/port.h>

#include "cached.h"

#define PAGE 4096U
#define MOST_REGIONS 16

struct region {
	/* The CPU's view; the pages before and after it belong to neighbours. */
	uint8_t *cpu;
	uint8_t *memory;
	uint8_t *base;
	bool *dirty;
	uint32_t size, room, line;
};

static struct region regions[MOST_REGIONS];
static uint32_t region_count;
static uint64_t random_state;
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
	const uint32_t inner = (size + PAGE - 1U) / PAGE * PAGE;

	if (region_count > MOST_REGIONS) {
		abort();
	}
	*region = (struct region){page(inner + 2U * PAGE), page(inner + 2U * PAGE),
				  page(inner + 2U * PAGE), calloc(inner + 2U * PAGE, sizeof(bool)),
				  size, inner + 2U * PAGE, line};
	/* The neighbours' lines are dirty: dropping one loses their data. */
	memset(region->cpu, 0xEE, PAGE);
	memset(region->cpu + PAGE + inner, 0xEE, PAGE);
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
			switch (random_below(8)) {
			case 0:
				write_back(region, at);
				break;
			case 1:
			case 2:
				if (!is_dirty(region, at)) {
					fetch(region, at);
				}
				break;
			default:
				break;
			}
		}
	}
	devices_work();
}

/* ---- the port ---- */

static struct region *lines_of(const uint8_t *data, uint32_t size, uint32_t *at)
{
	struct region *const region = region_of(data, at);

	if (region == NULL || region->line == 0) {
		violation("maintenance of what is not cached");
		return NULL;
	}
	if (*at % region->line != 0 || size % region->line != 0 || size == 0) {
		violation("maintenance of parts of lines");
		return NULL;
	}
	if (*at < PAGE || *at - PAGE + size > region->size) {
		violation("maintenance of a neighbour's memory");
		return NULL;
	}
	return region;
}

/* Not used: no operator is called by name. */
uint32_t opwest_port_cache_line(void)
{
	return 0U;
}

int opwest_port_cache_flush(const uint8_t *data, uint32_t size)
{
	uint32_t at = 0;
	struct region *const region = lines_of(data, size, &at);

	chaos();
	maintained[0]++;
	for (uint32_t end = at + size; region != NULL && (left_out & 1U) == 0 && at < end;
	     at += region->line) {
		write_back(region, at);
	}
	chaos();
	return 0;
}

int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size)
{
	uint32_t at = 0;
	struct region *const region = lines_of(data, size, &at);

	chaos();
	maintained[1]++;
	for (uint32_t end = at + size; region != NULL && (left_out & 2U) == 0 && at < end;
	     at += region->line) {
		write_back(region, at);
		fetch(region, at); /* the worst case: the line is fetched again before the device writes */
	}
	chaos();
	return 0;
}

int opwest_port_cache_invalidate(uint8_t *data, uint32_t size)
{
	uint32_t at = 0;
	struct region *const region = lines_of(data, size, &at);

	chaos();
	maintained[2]++;
	for (uint32_t end = at + size; region != NULL && (left_out & 4U) == 0 && at < end;
	     at += region->line) {
		fetch(region, at);
	}
	chaos();
	return 0;
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
	struct span spans[MOST_SPANS];
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
		if (job->spans[i].use == USE_OUT || job->spans[i].use == USE_SCRATCH) {
			store(job->spans[i].at, garbage, job->spans[i].size, sees_cache);
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
		if (job->spans[i].use == USE_IN || job->spans[i].use == USE_INOUT) {
			load(bytes, job->spans[i].at, job->spans[i].size, sees_cache);
			for (uint32_t at = 0; at < job->spans[i].size; at++) {
				hash = (hash ^ bytes[at]) * 16777619U;
			}
		}
	}
	for (uint32_t i = 0; i < job->count; i++) {
		if (job->spans[i].use == USE_OUT || job->spans[i].use == USE_INOUT) {
			for (uint32_t at = 0; at < job->spans[i].size; at++) {
				bytes[at] = (uint8_t)(((hash ^ (i * 40503U)) * (2U * at + 1U) *
						       2654435761U) >>
						      24);
			}
			store(job->spans[i].at, bytes, job->spans[i].size, sees_cache);
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
const struct device cached_devices[3] = {
	{"behind0", &behind, &cached_api, &data_of[0]},
	{"behind1", &behind, &cached_api, &data_of[1]},
	{"behind2", &behind, &cached_api, &data_of[2]},
};
const struct device coherent_devices[3] = {
	{"before0", &before, &cached_api, &data_of[3]},
	{"before1", &before, &cached_api, &data_of[4]},
	{"before2", &before, &cached_api, &data_of[5]},
};

/* Each device may start and end some of its work now. */
static void devices_work(void)
{
	for (uint32_t i = 0; i < 6; i++) {
		struct opwest_host_data *const data = &data_of[i];

		if (data->head != data->tail && random_below(6) == 0) {
			struct job *const job = &data->jobs[data->head % 32U];

			if (random_below(2) == 0) {
				start(job, i >= 3);
			} else {
				data->head++;
				finish(job, i >= 3);
			}
		}
	}
}

int32_t cached_step(uint32_t step, bool launched, const struct span *spans, uint32_t count,
		    const struct device *dev)
{
	struct job job = {.step = step, .count = count};

	if (count > MOST_SPANS) {
		abort();
	}
	memcpy(job.spans, spans, count * sizeof(spans[0]));
	chaos();
	if (launched) {
		dev->data->jobs[dev->data->tail++ % 32U] = job;
	} else {
		if (dev != NULL) {
			drain(dev);
		}
		finish(&job, dev == NULL || dev->config->sees_cache);
	}
	chaos();
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long wrong = 0, runs = 0;

	if (argc != 4) {
		return 2;
	}
	random_state = (uint64_t)atoi(argv[1]);
	left_out = (unsigned int)atoi(argv[3]);
	for (uint32_t i = 0; cached_models[i] != NULL; i++) {
		const struct cached_model *const model = cached_models[i];
		unsigned long before_it = wrong;

		for (int round = 0; round < atoi(argv[2]); round++) {
			model->prepare();
			if (model->open() != 0) {
				return 3;
			}
			for (uint32_t turn = 0; turn < model->turns; turn++) {
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
