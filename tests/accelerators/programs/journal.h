/* SPDX-License-Identifier: Apache-2.0 */
/* A driver, a port and operators that record every call and fail as the script specifies. */
#ifndef JOURNAL_H_
#define JOURNAL_H_

#include <stdbool.h>
#include <stdint.h>

#include <opwest/accelerator.h>
#include <opwest/device_calls.h>
#include <opwest/status.h>

#define HANDLES 3
#define ELEMENTS 8

struct opwest_host_config {
	unsigned int index;
};

struct job {
	int32_t step;
	uint16_t slot;
	const int32_t *a;
	const int32_t *b;
	int32_t *y;
};

struct opwest_host_data {
	unsigned int activations;
	unsigned int powered;
	bool owned;
	/* The last sync() timed out. */
	bool timed_out;
	/* wake() was called, and no sync() has returned -EINTR for it. */
	bool woken;
	/* The loaded program; NULL after a failed load. */
	const struct opwest_program *program;
	bool loaded;
	uint32_t enqueued;
	struct job jobs[8];
	unsigned int job_count;
	/* The calls of sync() without a time-out. */
	unsigned int asked;
};

extern const struct device handles[HANDLES];

/* The state of a case. */
struct journal {
	/* The run in progress is cancelled. */
	bool cancelled;
	/* Milliseconds. */
	int64_t now;
	/* Of a stream: every `pace`-th sync() without a time-out ends a job; else 0. */
	unsigned int pace;
	/* Of the devices: the properties of info(), and the jobs after which launches return -EAGAIN. */
	struct {
		unsigned int depth;
		unsigned int switching;
		unsigned int hidden;
	} properties[HANDLES];
};

extern struct journal journal;

/* For operators. */
int32_t journal_step(int32_t step, const struct device *dev);
void journal_compute(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		     const struct device *dev);
/* Enqueues: -EAGAIN if the queue is full. */
int32_t journal_launch(int32_t step, const int32_t *a, const int32_t *b, int32_t *y,
		       const struct opwest_launch *launch);

void journal_note(const char *format, ...);
void journal_expect(bool holds, const char *what);
int journal_fault(void);
int journal_done(const struct device *dev, int rc);
void journal_print(void);
void journal_reset(unsigned int index, unsigned int mask);
void journal_leaks(void);

/* A model of the program, for the glue code that the test generates. */
struct subject {
	const char *name;
	struct opwest_status *status;
	bool *opened;
	/* Fills the context in; a member that is `null` is NULL, -1 is none. */
	void (*context)(int null);
	int (*open)(void);
	/* Writes the inputs, makes the outputs wrong, and runs. */
	int (*run)(void);
	bool (*right)(void);
	int (*close)(void);
	int (*cancel)(void);
	/* A device of the workspace, for calls by name. */
	struct opwest_call_device (*device)(uint32_t index);
	const struct opwest_registry *registry;
	/* The content of the states and a space; NULL without states. */
	const char *(*state)(void);
	/* Plays a stream instead; NULL for runs. */
	void (*play)(void);
};

extern const struct subject *const subjects[];

#endif
