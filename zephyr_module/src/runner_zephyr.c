/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is a state of the runner, which changes only under the lock. A caller can be aborted at
 * any time, so it holds no mutex and no semaphore: the events only wake those that compare the
 * state, and the thread of the runner takes the request of a dead caller back.
 */
#include <errno.h>
#include <string.h>

#include <opwest/runner.h>

/* The events: the runner is free, a request ended, its thread has work. */
#define FREE  BIT(0)
#define ENDED BIT(1)
#define WORK  BIT(2)

/* The time between two attempts: to cancel a run, to find out that a caller is dead. */
#define AGAIN K_MSEC(10)

/* Operators may use the registers of the FPU. Before Zephyr 4.0 not all boards have the option. */
#ifdef CONFIG_FPU_SHARING
#define OPTIONS K_FP_REGS
#else
#define OPTIONS 0
#endif

static const struct opwest_runner_config *config_of(const struct device *runner)
{
	return (const struct opwest_runner_config *)runner->config;
}

static struct opwest_runner_data *data_of(const struct device *runner)
{
	return (struct opwest_runner_data *)runner->data;
}

/* The memory of a tensor. The workspace contains pointers of several types. */
static void *memory_of(const struct opwest_runner_tensor *tensor)
{
	void *memory;

	memcpy(&memory, tensor->place, sizeof(memory));
	return memory;
}

static k_timeout_t until(int64_t deadline)
{
	const int64_t now = k_uptime_get();

	return deadline < 0 ? K_FOREVER : deadline > now ? K_MSEC(deadline - now) : K_NO_WAIT;
}

/* Returns whether the runner is free, or has a request of an earlier thread with this object. */
static bool claim(struct opwest_runner_data *data)
{
	const k_tid_t caller = k_current_get();
	bool claimed = false;

	K_SPINLOCK(&data->lock) {
		(void)k_event_clear(&data->changed, FREE | ENDED);
		if (data->state == OPWEST_RUNNER_RUNNING) {
			data->left = data->left || data->caller == caller;
		} else if (data->state == OPWEST_RUNNER_IDLE || data->caller == caller) {
			data->state = OPWEST_RUNNER_HELD;
			data->caller = caller;
			data->left = false;
			data->cancelled = false;
			claimed = true;
		}
	}
	return claimed;
}

/* Returns whether a run is in progress, and not an open. The lock is held. */
static bool runs(const struct device *runner)
{
	const struct opwest_runner_data *const data = data_of(runner);

	return data->state == OPWEST_RUNNER_RUNNING && data->work == config_of(runner)->run;
}

/* Cancels the run that is in progress, now and until it has ended. The lock is held. */
static void cancel_locked(const struct device *runner)
{
	struct opwest_runner_data *const data = data_of(runner);

	data->cancelled = true;
	if (runs(runner) && config_of(runner)->cancel != NULL) {
		config_of(runner)->cancel();
		k_timer_start(&data->cancel, AGAIN, AGAIN);
	}
}

static void cancel_again(struct k_timer *timer)
{
	const struct device *const runner = k_timer_user_data_get(timer);
	struct opwest_runner_data *const data = data_of(runner);

	K_SPINLOCK(&data->lock) {
		if (runs(runner)) {
			config_of(runner)->cancel();
		}
	}
}

/* Gives a request up; returns false if it has just ended. */
static bool leave(const struct device *runner)
{
	struct opwest_runner_data *const data = data_of(runner);
	uint32_t events = 0U;
	bool left = true;

	K_SPINLOCK(&data->lock) {
		if (data->state == OPWEST_RUNNER_READY) {
			data->state = OPWEST_RUNNER_IDLE;
			events = FREE;
		} else if (data->state == OPWEST_RUNNER_RUNNING) {
			data->left = true;
			cancel_locked(runner);
		} else {
			left = false;
		}
	}
	(void)k_event_post(&data->changed, events);
	return left;
}

/* Lets the thread of the runner do work. Returns false if the caller has left: it holds nothing. */
static bool perform(const struct device *runner, int (*work)(void), int64_t deadline)
{
	struct opwest_runner_data *const data = data_of(runner);
	bool ended = false;

	K_SPINLOCK(&data->lock) {
		data->work = work;
		data->state = OPWEST_RUNNER_READY;
	}
	(void)k_event_post(&data->changed, WORK);
	for (;;) {
		K_SPINLOCK(&data->lock) {
			(void)k_event_clear(&data->changed, ENDED);
			ended = data->state == OPWEST_RUNNER_HELD;
		}
		if (ended) {
			return true;
		}
		if (k_event_wait(&data->changed, ENDED, false, until(deadline)) == 0U &&
		    leave(runner)) {
			return false;
		}
	}
}

static void release(struct opwest_runner_data *data)
{
	K_SPINLOCK(&data->lock) {
		data->state = OPWEST_RUNNER_IDLE;
	}
	(void)k_event_post(&data->changed, FREE | WORK);
}

static bool is_complete(const void *const *pointers, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		if (pointers[i] == NULL) {
			return false;
		}
	}
	return true;
}

/* The caller copies, not the thread of the runner: it has access to its own memory. */
static int run(const struct device *runner, const void *const *inputs, void *const *outputs,
	       int32_t timeout_ms)
{
	const struct opwest_runner_config *const config = config_of(runner);
	const struct opwest_runner_tensor *const results = &config->tensors[config->input_count];
	struct opwest_runner_data *const data = data_of(runner);
	const int64_t deadline = timeout_ms < 0 ? -1 : k_uptime_get() + timeout_ms;
	int rc = 0;

	if (!is_complete(inputs, config->input_count) ||
	    !is_complete((const void *const *)outputs, config->output_count)) {
		return -EINVAL;
	}
	while (!claim(data)) {
		if (k_event_wait(&data->changed, FREE, false, until(deadline)) == 0U) {
			return -EAGAIN;
		}
	}
	(void)k_event_post(&data->changed, WORK);
	/* Open sets the pointers to the inputs in the workspace. */
	if (!*config->opened) {
		if (!perform(runner, config->open, deadline)) {
			return -ETIMEDOUT;
		}
		rc = data->result;
	}
	if (rc == 0) {
		for (uint16_t i = 0; i < config->input_count; i++) {
			memcpy(memory_of(&config->tensors[i]), inputs[i], config->tensors[i].size);
		}
		if (!perform(runner, config->run, deadline)) {
			return -ETIMEDOUT;
		}
		rc = data->result;
	}
	for (uint16_t i = 0; i < config->output_count && rc == 0; i++) {
		memcpy(outputs[i], memory_of(&results[i]), results[i].size);
	}
	release(data);
	return rc;
}

static int cancel(const struct device *runner)
{
	struct opwest_runner_data *const data = data_of(runner);
	int rc = 0;

	K_SPINLOCK(&data->lock) {
		if (runs(runner) && config_of(runner)->cancel == NULL) {
			rc = -ENOTSUP;
		} else {
			cancel_locked(runner);
		}
	}
	return rc;
}

static int status(const struct device *runner, struct opwest_status *copy)
{
	struct opwest_runner_data *const data = data_of(runner);

	K_SPINLOCK(&data->lock) {
		*copy = data->status;
	}
	return 0;
}

#ifdef DEVICE_API
DEVICE_API(opwest_runner, opwest_runner_api) = {
#else
const struct opwest_runner_driver_api opwest_runner_api = {
#endif
	.run = run,
	.cancel = cancel,
	.status = status,
};

/* Does the work of a request, unless it was cancelled before. */
static void execute(const struct device *runner, bool cancelled)
{
	const struct opwest_runner_config *const config = config_of(runner);
	struct opwest_runner_data *const data = data_of(runner);
	const int rc = cancelled ? -ECANCELED : data->work();
	uint32_t events = ENDED;

	K_SPINLOCK(&data->lock) {
		k_timer_stop(&data->cancel);
		data->result = rc;
		data->status = *config->status;
		data->state = OPWEST_RUNNER_HELD;
		if (data->left) {
			data->state = OPWEST_RUNNER_IDLE;
			events = FREE;
		}
	}
	(void)k_event_post(&data->changed, events);
}

/* Takes back the request of a caller that was aborted while it copied. */
static void bury(struct opwest_runner_data *data)
{
	uint32_t events = 0U;

	K_SPINLOCK(&data->lock) {
		if (data->state == OPWEST_RUNNER_HELD &&
		    k_thread_join(data->caller, K_NO_WAIT) == 0) {
			data->state = OPWEST_RUNNER_IDLE;
			events = FREE;
		}
	}
	(void)k_event_post(&data->changed, events);
}

/* The parameter types of Zephyr. */
static void serve(void *first, void *second, void *third)
{
	const struct device *const runner = first;
	struct opwest_runner_data *const data = data_of(runner);
	bool cancelled = false;
	uint8_t state = OPWEST_RUNNER_IDLE;

	ARG_UNUSED(second);
	ARG_UNUSED(third);
	for (;;) {
		K_SPINLOCK(&data->lock) {
			(void)k_event_clear(&data->changed, WORK);
			state = data->state;
			cancelled = data->cancelled;
			if (state == OPWEST_RUNNER_READY) {
				data->state = OPWEST_RUNNER_RUNNING;
			}
		}
		if (state == OPWEST_RUNNER_READY) {
			execute(runner, cancelled);
		} else if (k_event_wait(&data->changed, WORK, false,
					state == OPWEST_RUNNER_IDLE ? K_FOREVER : AGAIN) == 0U) {
			bury(data);
		}
	}
}

int opwest_runner_init(const struct device *runner)
{
	const struct opwest_runner_config *const config = config_of(runner);
	struct opwest_runner_data *const data = data_of(runner);

	opwest_status_clear(&data->status);
	k_event_init(&data->changed);
	k_timer_init(&data->cancel, cancel_again, NULL);
	k_timer_user_data_set(&data->cancel, (void *)runner);
	(void)k_thread_create(&data->thread, config->stack, config->stack_size, serve,
			      (void *)runner, NULL, NULL, config->priority, OPTIONS, K_NO_WAIT);
	(void)k_thread_name_set(&data->thread, runner->name);
	return 0;
}
