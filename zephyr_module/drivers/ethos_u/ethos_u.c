/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arm Ethos-U through Zephyr's driver (CONFIG_ETHOS_U) and the vendor's (module hal_ethos_u).
 *
 * The vendor's driver runs one inference at a time. A thread for each NPU implements an
 * ordered queue, so the NPU continues while its owner computes, and sync() can time out:
 * ethosu_wait() either does not wait or waits without a limit.
 */
#define DT_DRV_COMPAT opwest_ethos_u

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/irq.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/sys/byteorder.h>
#include <zephyr/sys/util.h>

#include <ethosu_driver.h>

#include <opwest/accelerator.h>
#include <opwest/accelerator_context.h>
#include <opwest/ethos_u.h>

LOG_MODULE_DECLARE(opwest, CONFIG_OPWEST_LOG_LEVEL);

#define ALIGNMENT  16U
#define STACK_SIZE CONFIG_OPWEST_ETHOS_U_THREAD_STACK_SIZE

/* Custom operator payload: 32-bit words, the first of which is its name. */
#define PAYLOAD_NAME   0x31504f43U /* "COP1" */
#define ACTION_CONFIG  1U
#define ACTION_STREAM  2U
#define ACTION_NOTHING 5U

/* CONFIG_ETHOS_U_NPU_NAME is "ethos-u55-128" or so; the product is as in the register CONFIG. */
#define NPU_SERIES  (CONFIG_ETHOS_U_NPU_NAME[7])
#define NPU_PRODUCT (NPU_SERIES == '5' ? 0U : NPU_SERIES == '6' ? 1U : 2U)
#define PRODUCT_U85 2U

struct ethos_u_config {
	/* The device of Zephyr's driver, and its first register. */
	const struct device *npu;
	uintptr_t registers;
	unsigned int irq;
	k_thread_stack_t *stack;
	/* The longest wait for a full queue. */
	int32_t queue_timeout_ms;
	uint32_t queue_depth;
	struct opwest_ethos_u_inference *queue;
};

struct ethos_u_data {
	struct opwest_accelerator_context context;
	struct ethosu_driver *driver;
	struct k_thread thread;

	/* Guards the members below. */
	struct k_mutex lock;
	/* Signals a new inference. */
	struct k_condvar filled;
	/* Signals the end of the first inference. */
	struct k_condvar removed;
	/* The queue is a ring. The first inference stays in it while it runs. */
	uint32_t first;
	uint32_t count;
	/* The program that the device is active with, may be NULL. */
	const struct opwest_program *program;
	/* The NPU was started with the first inference. */
	bool running;
	/* The device has an owner. */
	bool owned;
	/* The NPU could not be reset: it may still write. */
	bool stuck;
	/* The first failure that sync() has not returned. */
	int error;

	/* Of the running inference: the vendor's driver keeps pointers to both. */
	uint64_t base[OPWEST_ETHOS_U_REGIONS];
	size_t base_size[OPWEST_ETHOS_U_REGIONS];
};

/*
 * Zephyr keeps the vendor's handle in its driver's data, whose type is private
 * (drivers/misc/ethos_u) and differs between releases. So the handle is found with the
 * public ethosu_reserve_driver(), and identified by the address of the NPU's registers. It stays
 * reserved: other users in the image (TensorFlow Lite Micro) cannot run inferences between those of
 * an owner.
 *
 * Called at initialisation, without other users: there is a free handle, so this does not block,
 * and the list does not change.
 */
static struct ethosu_driver *reserve(uintptr_t registers)
{
	struct ethosu_driver *const reserved = ethosu_reserve_driver();
	struct ethosu_driver *driver = reserved;

	while (driver != NULL && (uintptr_t)driver->dev.reg != registers) {
		driver = driver->next;
	}
	if (driver == NULL) {
		ethosu_release_driver(reserved);
	} else {
		/* The vendor's semaphore counts reserved handles: reserve this one instead. */
		reserved->reserved = false;
		driver->reserved = true;
	}
	return driver;
}

/* Returns the difference between this NPU and the one that a payload was made for, or NULL. */
static const char *compare(uint32_t config, uint32_t id, const struct ethosu_hw_info *hw)
{
	if (FIELD_GET(GENMASK(31, 28), config) != NPU_PRODUCT ||
	    FIELD_GET(GENMASK(3, 0), config) != hw->cfg.macs_per_cc) {
		return "it is for another NPU than " CONFIG_ETHOS_U_NPU_NAME;
	}
	if (NPU_PRODUCT != PRODUCT_U85 &&
	    FIELD_GET(GENMASK(7, 4), config) != hw->cfg.cmd_stream_version) {
		return "its command stream has another version than the NPU's";
	}
	if (FIELD_GET(BIT(27), config) != 0U && hw->cfg.custom_dma == 0U) {
		return "it is for an NPU with a custom DMA";
	}
	if (FIELD_GET(GENMASK(31, 28), id) != hw->version.arch_major_rev ||
	    FIELD_GET(GENMASK(27, 20), id) > hw->version.arch_minor_rev) {
		return "it is for another version of the architecture";
	}
	return NULL;
}

/*
 * Returns the error in a payload, or NULL. The vendor's driver finds some errors only after it has
 * begun to run the payload, and does not check the lengths. It would start all command streams at
 * once, so there must be exactly one.
 */
static const char *examine(const struct opwest_program *program, const struct ethosu_hw_info *hw)
{
	const uint32_t words = program->size / sizeof(uint32_t);
	uint32_t streams = 0;
	uint32_t i = 1;

	if (program->data == NULL || program->size % sizeof(uint32_t) != 0U || words == 0U ||
	    sys_get_le32(program->data) != PAYLOAD_NAME) {
		return "it is not a custom operator payload (COP1)";
	}
	while (i < words) {
		const uint32_t action = sys_get_le32(&program->data[i * sizeof(uint32_t)]);
		uint32_t length = 0;

		i++;
		switch (action & 0xffU) {
		case ACTION_NOTHING:
			break;
		case ACTION_CONFIG:
			length = 2U;
			break;
		case ACTION_STREAM:
			length = (action & 0xff00U) << 8 | action >> 16;
			streams++;
			break;
		default:
			return "it has an unknown action";
		}
		if (length > words - i) {
			return "it is truncated";
		}

		const uint8_t *const operand = &program->data[i * sizeof(uint32_t)];

		if ((action & 0xffU) == ACTION_CONFIG) {
			const char *const fault =
				compare(sys_get_le32(operand),
					sys_get_le32(&operand[sizeof(uint32_t)]), hw);

			if (fault != NULL) {
				return fault;
			}
		} else if ((action & 0xffU) == ACTION_STREAM &&
			   (length == 0U || !IS_ALIGNED(operand, ALIGNMENT))) {
			return "its command stream is empty or not aligned to 16 bytes";
		}
		i += length;
	}
	return streams == 1U ? NULL : "it does not have one command stream";
}

static int check(const struct device *dev, const struct opwest_program *program)
{
	const struct ethos_u_data *const data = dev->data;
	struct ethosu_hw_info hw;

	ethosu_get_hw_info(data->driver, &hw);

	const char *const fault = examine(program, &hw);

	if (fault != NULL) {
		LOG_ERR("%s: program %s: %s", dev->name,
			program->name != NULL ? program->name : "without a name", fault);
		return -EINVAL;
	}
	return 0;
}

/* Starts the first inference of the queue. */
static int start(const struct device *dev)
{
	const struct ethos_u_config *const config = dev->config;
	struct ethos_u_data *const data = dev->data;
	const struct opwest_ethos_u_inference *const inference = &config->queue[data->first];

	for (uint32_t i = 0; i < inference->count; i++) {
		data->base[i] = (uintptr_t)inference->regions[i].data;
		data->base_size[i] = inference->regions[i].size;
	}
	if (ethosu_invoke_async(data->driver, inference->program->data,
				(int)inference->program->size, data->base, data->base_size,
				(int)inference->count, NULL) != 0) {
		return -EIO;
	}
	return 0;
}

static void work(void *p1, void *p2, void *p3)
{
	const struct device *const dev = p1;
	const struct ethos_u_config *const config = dev->config;
	struct ethos_u_data *const data = dev->data;

	ARG_UNUSED(p2);
	ARG_UNUSED(p3);
	(void)k_mutex_lock(&data->lock, K_FOREVER);
	for (;;) {
		while (data->count == 0U) {
			(void)k_condvar_wait(&data->filled, &data->lock, K_FOREVER);
		}
		if (data->error == 0) {
			data->error = start(dev);
			data->running = data->error == 0;
		}
		if (data->running) {
			k_mutex_unlock(&data->lock);

			const int rc = ethosu_wait(data->driver, true);

			(void)k_mutex_lock(&data->lock, K_FOREVER);
			data->running = false;
			if (rc != 0 && data->error == 0) {
				data->error = -EIO;
			}
		}
		data->first = (data->first + 1U) % config->queue_depth;
		data->count--;
		(void)k_condvar_broadcast(&data->removed);
	}
}

/*
 * Ends the running inference like a time-out interrupt of the NPU: ethosu_wait() returns in the
 * thread and cleans up. The NPU is reset first, while its interrupt is off, because the vendor's
 * handler does not acknowledge the interrupt of a job that timed out, which would therefore repeat.
 */
static int stop(const struct device *dev)
{
	const struct ethos_u_config *const config = dev->config;
	struct ethos_u_data *const data = dev->data;
	struct ethosu_driver *const driver = data->driver;
	bool stopped = false;
	int rc = 0;

	irq_disable(config->irq);
	if (driver->job.state == ETHOSU_JOB_RUNNING) {
		rc = ethosu_soft_reset(driver) == 0 ? 0 : -EIO;
		driver->job.result = ETHOSU_JOB_RESULT_TIMEOUT;
		driver->job.state = ETHOSU_JOB_DONE;
		stopped = true;
	}
	irq_enable(config->irq);
	if (stopped) {
		LOG_WRN("%s: inference aborted", dev->name);
		(void)ethosu_semaphore_give(driver->semaphore);
	}
	return rc;
}

/* Called with the lock: waits until fewer than `count` inferences are in the queue. */
static bool wait_until_below(struct ethos_u_data *data, uint32_t count, int32_t timeout_ms)
{
	const k_timepoint_t end =
		sys_timepoint_calc(timeout_ms < 0 ? K_FOREVER : K_MSEC(timeout_ms));
	int rc = 0;

	while (data->count >= count && rc == 0) {
		rc = k_condvar_wait(&data->removed, &data->lock, sys_timepoint_timeout(end));
	}
	return data->count < count;
}

/* Called with the lock. After the return the queue is empty. */
static int abort_all(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;
	int rc = 0;

	/* Waiting inferences are not started. */
	data->error = -ECANCELED;
	if (data->running) {
		rc = stop(dev);
		data->stuck = data->stuck || rc != 0;
	}
	(void)wait_until_below(data, 1U, OPWEST_FOREVER);
	data->error = 0;
	return rc;
}

static int load(const struct device *dev, const struct opwest_program *program)
{
	struct ethos_u_data *const data = dev->data;

	/* Resets the NPU, unless another user keeps it powered. */
	if (ethosu_request_power(data->driver) != 0) {
		return -EIO;
	}

	const int rc = program != NULL ? check(dev, program) : 0;

	if (rc != 0) {
		ethosu_release_power(data->driver);
		return rc;
	}
	data->stuck = false;
	data->program = program;
	return 0;
}

static int unload(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	ethosu_release_power(data->driver);
	return 0;
}

static int ethos_u_activate(const struct device *dev, const struct opwest_program *program)
{
	struct ethos_u_data *const data = dev->data;

	return opwest_accelerator_context_activate(&data->context, dev, program, load);
}

static int ethos_u_deactivate(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	return opwest_accelerator_context_deactivate(&data->context, dev, unload);
}

static int ethos_u_open(const struct device *dev, int32_t timeout_ms)
{
	struct ethos_u_data *const data = dev->data;
	int rc = opwest_accelerator_context_open(&data->context, timeout_ms);

	if (rc != 0) {
		return rc;
	}
	(void)k_mutex_lock(&data->lock, K_FOREVER);
	data->owned = !data->stuck;
	rc = data->stuck ? -EIO : 0;
	k_mutex_unlock(&data->lock);
	if (rc != 0) {
		(void)opwest_accelerator_context_close(&data->context);
	}
	return rc;
}

static int ethos_u_close(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	(void)k_mutex_lock(&data->lock, K_FOREVER);
	data->owned = false;

	const int rc = abort_all(dev);

	k_mutex_unlock(&data->lock);

	const int closed = opwest_accelerator_context_close(&data->context);

	return rc != 0 ? rc : closed;
}

static int ethos_u_sync(const struct device *dev, int32_t timeout_ms)
{
	struct ethos_u_data *const data = dev->data;
	int rc = -ETIMEDOUT;

	(void)k_mutex_lock(&data->lock, K_FOREVER);
	if (wait_until_below(data, 1U, timeout_ms)) {
		rc = data->error;
		data->error = 0;
	}
	k_mutex_unlock(&data->lock);
	return rc;
}

/* Called with the lock. */
static int append(const struct device *dev, const struct opwest_ethos_u_inference *inference)
{
	const struct ethos_u_config *const config = dev->config;
	struct ethos_u_data *const data = dev->data;
	const struct opwest_program *program = inference->program;

	if (!data->owned) {
		return -EPERM;
	}
	if (program == NULL) {
		/* Checked at the activation; constant while the device is active. */
		program = data->program;
		if (program == NULL) {
			return -EINVAL;
		}
	} else if (check(dev, program) != 0) {
		return -EINVAL;
	}
	if (!wait_until_below(data, config->queue_depth, config->queue_timeout_ms)) {
		return -EBUSY;
	}
	if (!data->owned) {
		return -EPERM;
	}

	struct opwest_ethos_u_inference *const last =
		&config->queue[(data->first + data->count) % config->queue_depth];

	*last = *inference;
	last->program = program;
	data->count++;
	(void)k_condvar_signal(&data->filled);
	return 0;
}

int opwest_ethos_u_enqueue(const struct device *dev,
			   const struct opwest_ethos_u_inference *inference)
{
	struct ethos_u_data *const data = dev->data;

	if (inference->count > OPWEST_ETHOS_U_REGIONS) {
		return -EINVAL;
	}
	for (uint32_t i = 0; i < inference->count; i++) {
		if (!IS_ALIGNED(inference->regions[i].data, ALIGNMENT)) {
			return -EINVAL;
		}
	}
	(void)k_mutex_lock(&data->lock, K_FOREVER);

	const int rc = append(dev, inference);

	k_mutex_unlock(&data->lock);
	return rc;
}

int opwest_ethos_u_run(const struct device *dev, const struct opwest_ethos_u_inference *inference,
		       int32_t timeout_ms)
{
	const int rc = opwest_ethos_u_enqueue(dev, inference);

	return rc != 0 ? rc : ethos_u_sync(dev, timeout_ms);
}

struct ethosu_driver *opwest_ethos_u_driver(const struct device *dev)
{
	const struct ethos_u_data *const data = dev->data;

	return data->driver;
}

static int ethos_u_init(const struct device *dev)
{
	const struct ethos_u_config *const config = dev->config;
	struct ethos_u_data *const data = dev->data;

	if (!device_is_ready(config->npu)) {
		LOG_ERR("%s: %s is not ready", dev->name, config->npu->name);
		return -ENODEV;
	}
	data->driver = reserve(config->registers);
	if (data->driver == NULL) {
		LOG_ERR("%s: no driver of %s is registered", dev->name, config->npu->name);
		return -ENODEV;
	}
	opwest_accelerator_context_init(&data->context);
	k_mutex_init(&data->lock);
	k_condvar_init(&data->filled);
	k_condvar_init(&data->removed);
	k_thread_create(&data->thread, config->stack, STACK_SIZE, work, (void *)dev, NULL, NULL,
			CONFIG_OPWEST_ETHOS_U_THREAD_PRIORITY, 0, K_NO_WAIT);
	k_thread_name_set(&data->thread, dev->name);
	return 0;
}

static OPWEST_ACCELERATOR_API(ethos_u_api) = {
	.activate = ethos_u_activate,
	.open = ethos_u_open,
	.close = ethos_u_close,
	.deactivate = ethos_u_deactivate,
	.sync = ethos_u_sync,
};

#define ETHOS_U_DEFINE(n)                                                                          \
	BUILD_ASSERT(DT_NODE_HAS_STATUS(DT_INST_PHANDLE(n, npu), okay),                            \
		     "The npu of a devicetree node opwest,ethos-u is disabled");                   \
	/* Defined twice where two nodes name the same NPU. */                                     \
	enum { CONCAT(opwest_ethos_u_has_the_npu_, DT_DEP_ORD(DT_INST_PHANDLE(n, npu))) };         \
	static K_THREAD_STACK_DEFINE(ethos_u_stack_##n, STACK_SIZE);                               \
	BUILD_ASSERT(DT_INST_PROP(n, queue_depth) > 0, "queue-depth is 0");                        \
	static struct opwest_ethos_u_inference ethos_u_queue_##n[DT_INST_PROP(n, queue_depth)];    \
	static struct ethos_u_data ethos_u_data_##n;                                               \
	static const struct ethos_u_config ethos_u_config_##n = {                                  \
		.npu = DEVICE_DT_GET(DT_INST_PHANDLE(n, npu)),                                     \
		.registers = DT_REG_ADDR(DT_INST_PHANDLE(n, npu)),                                 \
		.irq = DT_IRQN(DT_INST_PHANDLE(n, npu)),                                           \
		.stack = ethos_u_stack_##n,                                                        \
		.queue_timeout_ms = DT_INST_PROP(n, queue_timeout_ms),                             \
		.queue_depth = DT_INST_PROP(n, queue_depth),                                       \
		.queue = ethos_u_queue_##n,                                                        \
	};                                                                                         \
	DEVICE_DT_INST_DEFINE(n, ethos_u_init, NULL, &ethos_u_data_##n, &ethos_u_config_##n,       \
			      POST_KERNEL, CONFIG_OPWEST_ETHOS_U_INIT_PRIORITY, &ethos_u_api);

DT_INST_FOREACH_STATUS_OKAY(ETHOS_U_DEFINE)
