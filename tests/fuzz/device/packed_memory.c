/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspaces and the errors of operators that TVM compiled: the contract of tvm_backend.h and tvm_workspace.h
 * against a model. Memory has exactly the planned size, so that a sanitizer detects every access beyond it.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include <zephyr/kernel.h>

#include <opwest/tvm_backend.h>

#include "packed.h"

#define BLOCKS 48
#define DEPTH 3
#define THREADS 3
#define LINE 2048

struct block {
	uint8_t *at;
	size_t size;
	uint8_t mark;
};

/* The expected content of one record. */
struct model {
	struct opwest_tvm_workspace note;
	uint8_t *memory;
	struct block blocks[BLOCKS];
	size_t count;
	bool failed;
};

static bool on_zephyr;
static size_t thread;
static const char names[THREADS] = "abc";
static char line[LINE];
static char *host_text;
static size_t host_size;

void choose_port(bool zephyr)
{
	on_zephyr = zephyr;
	thread = 0;
	if (host_output == NULL) {
		host_output = open_memstream(&host_text, &host_size);
	}
}

const void *k_current_get(void)
{
	return &names[thread];
}

k_spinlock_key_t k_spin_lock(struct k_spinlock *lock)
{
	CHECK(lock->held++ == 0);
	return 1;
}

void k_spin_unlock(struct k_spinlock *lock, k_spinlock_key_t key)
{
	CHECK(key == 1 && --lock->held == 0);
}

void stub_log(const char *format, ...);
void stub_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
}

void opwest_port_tvm_push(struct opwest_tvm_workspace *workspace)
{
	(on_zephyr ? zephyr_push : host_push)(workspace);
}

void opwest_port_tvm_pop(struct opwest_tvm_workspace *workspace)
{
	(on_zephyr ? zephyr_pop : host_pop)(workspace);
}

struct opwest_tvm_workspace *opwest_port_tvm_current(void)
{
	return (on_zephyr ? zephyr_current : host_current)();
}

void opwest_port_tvm_log(const char *kind, const char *const *parts, int32_t count)
{
	if (on_zephyr) {
		zephyr_log(kind, parts, count);
		return;
	}
	rewind(host_output);
	host_log(kind, parts, count);
	fflush(host_output);

	const size_t size = host_size < sizeof(line) ? host_size : sizeof(line) - 1U;

	memcpy(line, host_text, size);
	line[size] = '\0';
}

static size_t units_of(const struct opwest_tvm_workspace *note, size_t size)
{
	const size_t unit = (size_t)1 << note->shift;

	return size == 0U ? 1U : (size + unit - 1U) / unit;
}

static void check_block(const struct block *block)
{
	for (size_t i = 0; i < block->size; i++) {
		CHECK(block->at[i] == block->mark);
	}
}

static void take_memory(struct source *from, struct opwest_tvm_workspace *note, struct model *known)
{
	const uint8_t how = (uint8_t)take(from, 1);
	const uint64_t size = take(from, (how & 3U) == 3U ? 8U : (how & 3U) == 2U ? 2U : 1U);
	const int device = (how & 0x30U) == 0x30U ? (int)take(from, 4) : 1;
	uint8_t *at = (how & 4U) != 0U ? __TVMBackendAllocWorkspace(device, how, size, how, 32)
				       : TVMBackendAllocWorkspace(device, 0, size, 0, 8);
	uint64_t used = 0;

	for (size_t i = 0; i < known->count; i++) {
		const struct block *block = &known->blocks[i];
		const uint64_t end = ((size_t)(block->at - known->memory) >> note->shift) + units_of(note, block->size);

		used = end > used ? end : used;
	}
	if (note == NULL) {
		CHECK(at == NULL);
		return;
	}

	const uint64_t left = (uint64_t)(note->units - used) << note->shift;

	/* The memory after the last live allocation is free. */
	CHECK((at == NULL) == (device != 1 || size > left || left == 0U));
	if (at == NULL) {
		known->failed = true;
		return;
	}
	CHECK(((uintptr_t)at & (((uintptr_t)1 << note->shift) - 1U)) == 0U);
	CHECK(at >= known->memory && size <= ((uint64_t)note->units << note->shift) - (uint64_t)(at - known->memory));
	for (size_t i = 0; i < known->count; i++) {
		const struct block *other = &known->blocks[i];

		CHECK(at >= other->at + units_of(note, other->size) * ((size_t)1 << note->shift) ||
		      at + units_of(note, size) * ((size_t)1 << note->shift) <= other->at);
	}
	CHECK(known->count < BLOCKS);
	known->blocks[known->count] = (struct block){at, size, how};
	memset(at, how, size);
	known->count++;
}

static void give_back(struct source *from, struct opwest_tvm_workspace *note, struct model *known)
{
	const uint8_t how = (uint8_t)take(from, 1);
	uint8_t *at = NULL;
	size_t which = known->count;

	if (known->count > 0U && (how & 3U) != 3U) {
		at = known->blocks[(how >> 2) % known->count].at;
	} else if ((how & 4U) != 0U) {
		at = (uint8_t *)(uintptr_t)take(from, 8);
	} else if (note != NULL) { /* somewhere in it, or around it */
		at = (uint8_t *)((uintptr_t)known->memory + (uintptr_t)(intptr_t)(int16_t)take(from, 2));
	}
	if ((how & 0xc0U) == 0xc0U) {
		at = (uint8_t *)((uintptr_t)at + (uintptr_t)take(from, 1));
	}
	for (size_t i = 0; i < known->count; i++) {
		which = known->blocks[i].at == at ? i : which;
	}

	const bool lives = which < known->count;

	if (lives) {
		check_block(&known->blocks[which]);
	}
	CHECK((how & 0x20U ? __TVMBackendFreeWorkspace : TVMBackendFreeWorkspace)(how, how, at) == (lives ? 0 : -1));
	if (lives) {
		known->count--;
		memmove(&known->blocks[which], &known->blocks[which + 1U], (known->count - which) * sizeof(struct block));
	}
}

static void allocate_one(struct source *from, struct opwest_tvm_workspace *note, struct model *known, bool take_it)
{
	if (take_it && known->count < BLOCKS) {
		take_memory(from, note, known);
	} else {
		give_back(from, note, known);
	}
}

bool allocate(struct source *from)
{
	struct opwest_tvm_workspace *const note = opwest_port_tvm_current();
	struct model known = {.memory = note != NULL ? note->memory : NULL};

	for (size_t left = take(from, 1) % 12U; left > 0U; left--) {
		allocate_one(from, note, &known, (take(from, 1) & 1U) != 0U);
	}
	for (size_t i = 0; i < known.count; i++) {
		check_block(&known.blocks[i]);
	}
	return known.failed;
}

static char *text(struct source *from, char *joined)
{
	const uint8_t length = (uint8_t)take(from, 1);

	if (length == 0xffU) {
		return NULL;
	}

	char *made = malloc((size_t)length + 1U);

	for (size_t i = 0; i < length; i++) {
		made[i] = (char)(1U + take(from, 1) % 255U);
	}
	made[length] = '\0';
	strcat(joined, made);
	return made;
}

static void complain(struct source *from)
{
	const uint8_t how = (uint8_t)take(from, 1);
	char required[LINE] = "", kind_wanted[LINE] = "", joined[LINE] = "";
	char *kind = (how & 4U) != 0U ? text(from, kind_wanted) : NULL;
	const int32_t count = (int32_t)((how & 3U) == 3U ? (how >> 4) % 7U : 1U);
	const char **parts = malloc(sizeof(*parts) * (size_t)(count + (count == 0)));

	for (int32_t i = 0; i < count; i++) {
		parts[i] = text(from, joined);
	}
	switch (how & 3U) {
	case 0:
		(how & 8U ? __TVMAPISetLastError : TVMAPISetLastError)(parts[0]);
		break;
	case 1:
		(how & 8U ? __TVMFFIErrorSetRaisedFromCStr : TVMFFIErrorSetRaisedFromCStr)(kind, parts[0]);
		break;
	case 2:
		TVMFFIErrorSetRaisedFromCStrParts(kind, NULL, (how & 8U) != 0U ? 0 : -1);
		joined[0] = '\0';
		break;
	default:
		(how & 8U ? __TVMFFIErrorSetRaisedFromCStrParts : TVMFFIErrorSetRaisedFromCStrParts)(kind, parts, count);
	}
	if (on_zephyr && strlen(joined) > 191U) { /* one line of the log */
		joined[191] = '\0';
	}
	if ((how & 3U) != 0U && kind != NULL) {
		snprintf(required, sizeof(required), "%soperator: %s: %s", on_zephyr ? "" : "opwest: ", kind_wanted, joined);
	} else {
		snprintf(required, sizeof(required), "%soperator: %s", on_zephyr ? "" : "opwest: ", joined);
	}

	CHECK(strncmp(line, required, strlen(required)) == 0);
	CHECK(strcmp(line + strlen(required), on_zephyr ? "" : "\n") == 0);
	for (int32_t i = 0; i < count; i++) {
		free((void *)(uintptr_t)parts[i]);
	}
	free(parts);
	free(kind);
}

static void enter(struct source *from, struct model *known)
{
	const uint32_t shift = (uint32_t)take(from, 1) % 8U;
	const uint32_t units = (uint32_t)take(from, 1) % 80U;
	const size_t planned = ((size_t)units << shift) + 2U * ((units + 7U) / 8U);

	memset(known, 0, sizeof(*known));
	CHECK(posix_memalign((void **)&known->memory, shift < 3U ? 8U : (size_t)1 << shift, planned) == 0);
	memset(known->memory, 0xa5, planned);
	opwest_tvm_enter(&known->note, known->memory, units, shift);
}

static void leave(struct source *from, struct model *known)
{
	const uint8_t how = (uint8_t)take(from, 1);
	const int32_t code = how < 64U ? 0 : how < 128U ? -1 : how < 192U ? (int8_t)how : (int32_t)take(from, 4);
	const int32_t required = code != 0 && known->failed ? -ENOMEM : code == -1 ? -EIO : code;

	for (size_t i = 0; i < known->count; i++) {
		check_block(&known->blocks[i]);
	}
	CHECK(opwest_tvm_leave(&known->note, code) == required);
	free(known->memory);
}

void threads_at_random(struct source *from)
{
	static struct model models[THREADS][DEPTH];
	static struct model nothing;
	size_t depth[THREADS] = {0};

	while (from->size > 0U) {
		const uint8_t what = (uint8_t)take(from, 1);
		struct model *const known = depth[thread] > 0U ? &models[thread][depth[thread] - 1U] : &nothing;
		struct opwest_tvm_workspace *const note = depth[thread] > 0U ? &known->note : NULL;

		CHECK(opwest_port_tvm_current() == note);
		switch (what % 16U) {
		case 0:
			thread = on_zephyr ? (what >> 4) % THREADS : 0U; /* the host's lists need real threads */
			break;
		case 1:
			if (depth[thread] < DEPTH) {
				enter(from, &models[thread][depth[thread]++]);
			}
			break;
		case 2:
			if (note != NULL) {
				leave(from, known);
				depth[thread]--;
			}
			break;
		case 3:
			complain(from);
			break;
		default:
			allocate_one(from, note, known, what % 2U != 0U);
		}
	}
	for (thread = 0; thread < THREADS; thread++) {
		while (depth[thread] > 0U) {
			leave(from, &models[thread][--depth[thread]]);
		}
	}
	thread = 0;
}
