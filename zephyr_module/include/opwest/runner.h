/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief Runs of a model for user threads: CONFIG_OPWEST_RUNNER, Zephyr only.
 *
 * A runner is a kernel object, a device of the class `opwest_runner`. It has a workspace, buffers
 * for the inputs and outputs of the caller, and a thread in supervisor mode that opens the model
 * and runs it. A user thread passes a whole run by one system call. Inputs are copied to the
 * runner and outputs to the caller, so devices and operators never access memory of a user thread,
 * and a user thread never writes the workspace.
 *
 * `<MODEL>_RUNNER_DEFINE()` defines a runner, `<model>_runner_run()` is the typed form of
 * opwest_runner_run(). Without CONFIG_USERSPACE the functions work alike, for all threads.
 */
#ifndef OPWEST_RUNNER_H_
#define OPWEST_RUNNER_H_

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zephyr/device.h>
#include <zephyr/kernel.h>
#include <zephyr/toolchain.h>

#include <opwest/model.h>
#include <opwest/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The largest number of inputs, and of outputs. */
#define OPWEST_RUNNER_TENSORS 16

/** An input or output of a runner. */
struct opwest_runner_tensor {
	/** The address of the pointer to its memory, which open may set. */
	const void *place;
	/** Bytes. */
	uint32_t size;
};

/** The constant part of a runner. */
struct opwest_runner_config {
	/** Functions of the model on the workspace of the runner. */
	int (*open)(void);
	int (*run)(void);
	/** NULL for a model without accelerators. */
	void (*cancel)(void);
	/** Members of the workspace. */
	const bool *opened;
	const struct opwest_status *status;
	/** @ref input_count inputs, @ref output_count outputs, in the order of the manifest. */
	const struct opwest_runner_tensor *tensors;
	k_thread_stack_t *stack;
	size_t stack_size;
	int priority;
	uint16_t input_count;
	uint16_t output_count;
};

/** The progress of a request. */
enum opwest_runner_state {
	OPWEST_RUNNER_IDLE,
	/** A caller has the buffers. */
	OPWEST_RUNNER_HELD,
	/** The thread of the runner shall open or run the model. */
	OPWEST_RUNNER_READY,
	OPWEST_RUNNER_RUNNING,
};

/** The variable part of a runner. */
struct opwest_runner_data {
	struct k_thread thread;
	struct k_spinlock lock;
	/** Wakes those that wait for another state. */
	struct k_event changed;
	/** Cancels a run again until it has ended: it may not have begun at the first time. */
	struct k_timer cancel;
	/** The caller of the request; not used while idle. */
	k_tid_t caller;
	/** Its work: open or run of the configuration. */
	int (*work)(void);
	/** enum opwest_runner_state */
	uint8_t state;
	/** The caller does not wait for the end any more. */
	bool left;
	bool cancelled;
	/** The return value, and the status of the workspace after it. */
	int result;
	struct opwest_status status;
};

/** @brief Run a model; see opwest_runner_run(). */
typedef int (*opwest_runner_run_t)(const struct device *runner, const void *const *inputs,
				   void *const *outputs, int32_t timeout_ms);
/** @brief End a run; see opwest_runner_cancel(). */
typedef int (*opwest_runner_cancel_t)(const struct device *runner);
/** @brief Return the latest failure; see opwest_runner_status(). */
typedef int (*opwest_runner_status_t)(const struct device *runner, struct opwest_status *status);

/** The class of runners: a type of kernel object. */
__subsystem struct opwest_runner_driver_api {
	opwest_runner_run_t run;
	opwest_runner_cancel_t cancel;
	opwest_runner_status_t status;
};

/** The functions of all runners. */
extern const struct opwest_runner_driver_api opwest_runner_api;

/** @brief Start the thread of a runner; called by the kernel. */
int opwest_runner_init(const struct device *runner);

/**
 * @brief Define a runner, at file scope. Part of `<MODEL>_RUNNER_DEFINE()`.
 *
 * @param name       The runner's name, an identifier.
 * @param model      The model's name.
 * @param cancels    name##_cancel, or NULL.
 * @param inputs     The number of inputs.
 * @param outputs    The number of outputs; name##_tensors has the sum.
 * @param bytes      The stack of the thread that runs operators, bytes.
 * @param importance The priority of this thread.
 */
#define OPWEST_RUNNER_DEFINE(name, model, cancels, inputs, outputs, bytes, importance)             \
	BUILD_ASSERT((inputs) <= OPWEST_RUNNER_TENSORS && (outputs) <= OPWEST_RUNNER_TENSORS,      \
		     "a runner has at most 16 inputs and 16 outputs");                             \
	static int name##_open(void)                                                               \
	{                                                                                          \
		return model##_open(&name##_workspace, &name##_devices);                           \
	}                                                                                          \
	static int name##_run(void)                                                                \
	{                                                                                          \
		return model##_run(&name##_inputs, &name##_outputs, &name##_workspace,             \
				   &name##_devices);                                               \
	}                                                                                          \
	static K_KERNEL_STACK_DEFINE(name##_stack, bytes);                                         \
	static struct opwest_runner_data name##_data;                                              \
	static const struct opwest_runner_config name##_config = {                                 \
		name##_open,                                                                       \
		name##_run,                                                                        \
		cancels,                                                                           \
		&name##_workspace.opened,                                                          \
		&name##_workspace.status,                                                          \
		name##_tensors,                                                                    \
		name##_stack,                                                                      \
		K_KERNEL_STACK_SIZEOF(name##_stack),                                               \
		importance,                                                                        \
		inputs,                                                                            \
		outputs,                                                                           \
	};                                                                                         \
	DEVICE_DEFINE(name, #name, opwest_runner_init, NULL, &name##_data, &name##_config,         \
		      POST_KERNEL, CONFIG_KERNEL_INIT_PRIORITY_DEVICE, &opwest_runner_api)

/**
 * @brief Run the model of a runner once, for the calling thread.
 *
 * Callers wait for each other. The runner opens its workspace at the first run, and after a
 * time-out of a device. User threads need permission for the runner (k_object_access_grant()), and
 * access to all buffers: otherwise the kernel ends the thread.
 *
 * @param runner     The runner.
 * @param inputs     A pointer per input of the model, in the order of the manifest.
 * @param outputs    A pointer per output of the model.
 * @param timeout_ms The longest wait for other callers and the run, milliseconds; negative: no
 *                   limit. A run that has begun is cancelled after it.
 *
 * @retval 0          The outputs are written.
 * @retval -EINVAL    A pointer is NULL.
 * @retval -EAGAIN    Runs of other callers did not end in time: nothing was run.
 * @retval -ETIMEDOUT The run did not end in time, or a device did not.
 * @retval -ECANCELED opwest_runner_cancel() was called.
 * @return Another negative errno of `<model>_open()` or `<model>_run()`: see
 *         opwest_runner_status()
 */
#ifdef CONFIG_USERSPACE
__syscall int opwest_runner_run(const struct device *runner, const void *const *inputs,
				void *const *outputs, int32_t timeout_ms);

/* Parsed by Zephyr's scripts; described below. */
__syscall int opwest_runner_cancel(const struct device *runner);
__syscall int opwest_runner_status(const struct device *runner, struct opwest_status *status);

/** The name of a function below: with user threads it is the part in supervisor mode. */
#define OPWEST_RUNNER_IMPL(name) z_impl_opwest_runner_##name
#else
#define OPWEST_RUNNER_IMPL(name) opwest_runner_##name
#endif
static inline int OPWEST_RUNNER_IMPL(run)(const struct device *runner, const void *const *inputs,
					  void *const *outputs, int32_t timeout_ms)
{
	const struct opwest_runner_driver_api *const api =
		(const struct opwest_runner_driver_api *)runner->api;

	return api->run(runner, inputs, outputs, timeout_ms);
}

/**
 * @brief End the run of a runner early: it returns -ECANCELED to its caller.
 *
 * Without a run there is no effect.
 *
 * @param runner The runner.
 *
 * @retval 0        The run ends.
 * @retval -ENOTSUP The model has no accelerator: its runs cannot be cancelled once they have begun.
 */
static inline int OPWEST_RUNNER_IMPL(cancel)(const struct device *runner)
{
	const struct opwest_runner_driver_api *const api =
		(const struct opwest_runner_driver_api *)runner->api;

	return api->cancel(runner);
}

/**
 * @brief Return the status of the latest run that has ended, of any caller.
 *
 * @param runner The runner.
 * @param status Filled in; of a run that did not begin: no failure.
 *
 * @retval 0 Done.
 */
static inline int OPWEST_RUNNER_IMPL(status)(const struct device *runner,
					     struct opwest_status *status)
{
	const struct opwest_runner_driver_api *const api =
		(const struct opwest_runner_driver_api *)runner->api;

	return api->status(runner, status);
}

#ifdef __cplusplus
}
#endif

#ifdef CONFIG_USERSPACE
#if __has_include(<zephyr/syscalls/runner.h>)
#include <zephyr/syscalls/runner.h>
#else /* before Zephyr 3.7 */
#include <syscalls/runner.h>
#endif
#endif

#endif /* OPWEST_RUNNER_H_ */
