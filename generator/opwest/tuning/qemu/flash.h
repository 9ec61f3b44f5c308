/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of a flash memory with wait states, for count.c: what it adds to the cycles of a processor.
 *
 * The flash is read in lines, one at a time. A read takes 1 + wait_states cycles; a memory without wait states takes
 * one. A cache for code and one for data hold whole lines and are fully associative; a new line replaces the oldest.
 * The line of the last instruction is kept even without a cache. With prefetch, the read of a line of code is followed
 * by a read of the next line, unless it is in the cache. A read starts when the previous one ends, so that a prefetch
 * can delay a read of data. The caches are empty when counting starts.
 */
#ifndef FLASH_H_
#define FLASH_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define MAX_RANGES 4

/** The lines of a range of addresses. A line is one byte, with the bits of the caches that hold it. */
struct range {
	uint64_t start, end;
	uint8_t *lines;
};

struct cache {
	uint8_t **lines;
	uint64_t count, next;
	uint8_t bit;
};

static struct range ranges[MAX_RANGES];
static size_t range_count;
static uint64_t wait_states, line_size, prefetch, code_bytes, data_bytes;
static struct cache code_cache = {.bit = 1}, data_cache = {.bit = 2};
/** The line of the last instruction, the line of the last prefetch. */
static uint8_t *current, *prefetched;
/** When the flash is free, when the prefetched line is there: cycles since the begin of counting. */
static uint64_t is_free, is_prefetched;
static uint64_t code_stalls, data_stalls;

static bool in_cache(const struct cache *cache, const uint8_t *line)
{
	return (*line & cache->bit) != 0;
}

static void put_in_cache(struct cache *cache, uint8_t *line)
{
	uint8_t *oldest;

	if (cache->count == 0) {
		return;
	}
	oldest = cache->lines[cache->next];
	if (oldest != NULL) {
		*oldest &= (uint8_t)~cache->bit;
	}
	*line |= cache->bit;
	cache->lines[cache->next] = line;
	cache->next = (cache->next + 1) % cache->count;
}

static void clear_cache(struct cache *cache)
{
	for (uint64_t i = 0; i < cache->count; i++) {
		if (cache->lines[i] != NULL) {
			*cache->lines[i] = 0;
			cache->lines[i] = NULL;
		}
	}
	cache->next = 0;
}

/** Begin with empty caches and without stalls. */
static void clear_flash(void)
{
	clear_cache(&code_cache);
	clear_cache(&data_cache);
	current = prefetched = NULL;
	is_free = is_prefetched = code_stalls = data_stalls = 0;
}

/** Return the line of an address; NULL if it is not in flash. */
static uint8_t *line_of(uint64_t address)
{
	for (size_t i = 0; i < range_count; i++) {
		if (address >= ranges[i].start && address < ranges[i].end) {
			return ranges[i].lines + (address / line_size - ranges[i].start / line_size);
		}
	}
	return NULL;
}

/** Return when a read ends that begins at `now` or when the flash is free. */
static uint64_t end_of_read(uint64_t now)
{
	is_free = (now > is_free ? now : is_free) + 1 + wait_states;
	return is_free;
}

/** Return the cycles after `now` that the processor waits for a read. Its first cycle is that of the instruction. */
static uint64_t stall_of_read(uint64_t now)
{
	const uint64_t cycles = end_of_read(now) - now;

	return cycles > 1 ? cycles - 1 : 0;
}

/** Return the stall of an instruction in a line, which begins at `now`. */
static uint64_t stall_of_code(uint8_t *line, uint64_t now)
{
	uint64_t stall = 0;

	if (line == current) {
		return 0;
	}
	current = line;
	if (in_cache(&code_cache, line)) {
		return 0;
	}
	if (line != prefetched) {
		stall = stall_of_read(now);
	} else if (is_prefetched > now) {
		stall = is_prefetched - now;
	}
	put_in_cache(&code_cache, line);
	/* Each range has a line after its last one. */
	if (prefetch && !in_cache(&code_cache, line + 1)) {
		prefetched = line + 1;
		is_prefetched = end_of_read(now + stall);
	}
	return stall;
}

/** Return the stall of an access to data in a line. */
static uint64_t stall_of_data(uint8_t *line, uint64_t now)
{
	uint64_t stall;

	if (in_cache(&data_cache, line)) {
		return 0;
	}
	stall = stall_of_read(now);
	put_in_cache(&data_cache, line);
	return stall;
}

static bool make_cache(struct cache *cache, uint64_t bytes)
{
	cache->count = bytes / line_size;
	cache->lines = calloc(cache->count + 1, sizeof(*cache->lines));
	return cache->lines != NULL;
}

/** Allocate the lines of the ranges and of the caches; return false without memory or with a line of no bytes. */
static bool make_flash(void)
{
	if (range_count == 0) {
		return true;
	}
	for (size_t i = 0; line_size != 0 && i < range_count; i++) {
		/* The pages of lines that are not used take no memory. */
		ranges[i].lines = calloc(ranges[i].end / line_size - ranges[i].start / line_size + 2, 1);
		if (ranges[i].lines == NULL) {
			return false;
		}
	}
	return line_size != 0 && make_cache(&code_cache, code_bytes) && make_cache(&data_cache, data_bytes);
}

#endif /* FLASH_H_ */
