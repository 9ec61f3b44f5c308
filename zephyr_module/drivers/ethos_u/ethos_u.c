/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arm Ethos-U through Zephyr's driver (CONFIG_ETHOS_U) and the vendor's (module hal_ethos_u): the
 * hooks, the vendor's handle and power.
 */
#define DT_DRV_COMPAT opwest_ethos_u

#include <errno.h>

#include <zephyr/device.h>
#include <zephyr/devicetree.h>
#include <zephyr/kernel.h>
#include <zephyr/logging/log.h>
#include <zephyr/pm/device.h>
#include <zephyr/sys/util.h>

#ifdef CONFIG_OPWEST_BUNDLE_DEVICES
#include <opwest/ethos_u_functions.h>
#endif

#include "ethos_u_internal.h"
#include "ethos_u_payload.h"

LOG_MODULE_DECLARE(opwest, CONFIG_OPWEST_LOG_LEVEL);

#define STACK_SIZE CONFIG_OPWEST_ETHOS_U_THREAD_STACK_SIZE

/* CONFIG_ETHOS_U_NPU_NAME is "ethos-u55-128" or so: the product of the vendor's driver. */
#define NPU_SERIES  (CONFIG_ETHOS_U_NPU_NAME[7])
#define NPU_PRODUCT (NPU_SERIES == '5' ? ETHOS_U55 : NPU_SERIES == '6' ? ETHOS_U65 : ETHOS_U85)

/*
 * Zephyr keeps the vendor's handle in its driver's data, whose type is private
 * (drivers/misc/ethos_u) and differs between releases. So the handle is reserved with the public
 * function, and identified by the address of the NPU's registers. It stays reserved: other users in
 * the image (TensorFlow Lite Micro) cannot run inferences between those of an owner.
 *
 * Zephyr's driver has initialised the NPU, and at initialisation there are no other users: the
 * handle is among the free ones, and ethosu_reserve_driver(), which waits for a free one, returns
 * it at last. Handles of other NPUs are held until then.
 */
static struct ethosu_driver *reserve(uintptr_t registers)
{
	struct ethosu_driver *const driver = ethosu_reserve_driver();
	struct ethosu_driver *found;

	if (driver == NULL || (uintptr_t)driver->dev.reg == registers) {
		return driver;
	}
	found = reserve(registers);
	ethosu_release_driver(driver);
	return found;
}

static int ethos_u_info(const struct device *dev, struct opwest_accelerator_info *info)
{
	const struct ethos_u_config *const config = dev->config;

	info->queue_depth = config->queue_depth;
	info->switching = OPWEST_SWITCH_FREE;
	return 0;
}

/* Called with the lock: after the return the NPU is in a known state. */
static int recover(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	data->stuck = data->stuck && ethos_u_kill(dev) != 0;
	return data->stuck ? -EIO : 0;
}

static int power_up(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;
	int rc;

	(void)k_mutex_lock(&data->lock, K_FOREVER);
	rc = recover(dev);
	if (rc == 0 && !data->powered) {
		/* Resets the NPU, unless another user keeps it powered. */
		rc = ethosu_request_power(data->driver) == 0 ? 0 : -EIO;
		data->powered = rc == 0;
	}
	k_mutex_unlock(&data->lock);
	return rc;
}

static int power_down(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;
	int rc = 0;

	(void)k_mutex_lock(&data->lock, K_FOREVER);
	if (data->count > 0U) {
		rc = -EBUSY;
	} else if (data->powered) {
		ethosu_release_power(data->driver);
		data->powered = false;
	}
	k_mutex_unlock(&data->lock);
	return rc;
}

static int ethos_u_activate(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	return opwest_accelerator_context_activate(&data->context, dev, power_up);
}

static int stop(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	data->program = NULL;
	return power_down(dev);
}

static int ethos_u_deactivate(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	return opwest_accelerator_context_deactivate(&data->context, dev, stop);
}

static bool is_remembered(struct ethos_u_data *data, const struct opwest_program *program)
{
	const k_spinlock_key_t key = k_spin_lock(&data->checked_lock);
	bool found = false;

	for (uint32_t i = 0; i < ETHOS_U_CHECKED && !found; i++) {
		found = data->checked[i].data == program->data &&
			data->checked[i].size == program->size;
	}
	k_spin_unlock(&data->checked_lock, key);
	return found;
}

static void remember(struct ethos_u_data *data, const struct opwest_program *program)
{
	k_spinlock_key_t key;

	if (is_remembered(data, program)) {
		return;
	}
	key = k_spin_lock(&data->checked_lock);
	data->checked[data->checked_next].data = program->data;
	data->checked[data->checked_next].size = program->size;
	data->checked_next = (uint8_t)((data->checked_next + 1U) % ETHOS_U_CHECKED);
	k_spin_unlock(&data->checked_lock, key);
}

static int ethos_u_check(const struct device *dev, const struct opwest_program *program)
{
	struct ethos_u_data *const data = dev->data;
	struct ethosu_hw_info hw;
	const char *fault;

	/* A step without a program has no inference either. */
	if (program == NULL) {
		return 0;
	}
	ethosu_get_hw_info(data->driver, &hw);

	const struct ethos_u_npu npu = {
		.product = NPU_PRODUCT,
		.macs = (uint8_t)hw.cfg.macs_per_cc,
		.stream_version = (uint8_t)hw.cfg.cmd_stream_version,
		.arch_major = (uint8_t)hw.version.arch_major_rev,
		.arch_minor = (uint8_t)hw.version.arch_minor_rev,
		.custom_dma = hw.cfg.custom_dma != 0U,
	};

	fault = ethos_u_payload_fault(program->data, program->size, &npu);
	if (fault != NULL) {
		LOG_ERR("%s (" CONFIG_ETHOS_U_NPU_NAME ", 2^%u MACs): program %s: %s", dev->name,
			npu.macs, program->name != NULL ? program->name : "without a name", fault);
		return -EINVAL;
	}
	remember(data, program);
	return 0;
}

static int ethos_u_open(const struct device *dev, int32_t timeout_ms)
{
	struct ethos_u_data *const data = dev->data;
	int rc = opwest_accelerator_context_open(&data->context, timeout_ms);

	if (rc != 0) {
		return rc;
	}
	(void)k_mutex_lock(&data->lock, K_FOREVER);
	rc = recover(dev);
	data->owned = rc == 0;
	k_mutex_unlock(&data->lock);
	if (rc != 0) {
		(void)opwest_accelerator_context_close(&data->context);
	}
	return rc;
}

/* The vendor's driver does not check the lengths in a payload, so load() does. */
static int make_current(const struct device *dev, const struct opwest_program *program)
{
	struct ethos_u_data *const data = dev->data;
	const bool known = program != NULL && program->size > 0U && is_remembered(data, program);
	const int rc = known ? 0 : ethos_u_check(dev, program);

	data->program = rc == 0 ? program : NULL;
	return rc;
}

static int ethos_u_load(const struct device *dev, const struct opwest_program *program)
{
	struct ethos_u_data *const data = dev->data;

	return opwest_accelerator_context_load(&data->context, dev, program, OPWEST_SWITCH_FREE,
					       make_current);
}

static uint32_t ethos_u_enqueued(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	return opwest_accelerator_context_enqueued(&data->context);
}

static int ethos_u_sync(const struct device *dev, uint32_t leave, int32_t timeout_ms)
{
	struct ethos_u_data *const data = dev->data;

	return ethos_u_returned(data,
				opwest_accelerator_context_sync(&data->context, leave, timeout_ms));
}

static void ethos_u_wake(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;

	opwest_accelerator_context_wake(&data->context);
}

static int ethos_u_notify(const struct device *dev, opwest_accelerator_callback_t callback,
			  void *user)
{
	struct ethos_u_data *const data = dev->data;

	return opwest_accelerator_context_notify(&data->context, callback, user);
}

static int ethos_u_close(const struct device *dev)
{
	struct ethos_u_data *const data = dev->data;
	int aborted = 0;
	int closed;

	/* Only the thread of the owner may abort work. */
	if (!opwest_accelerator_context_is_mine(&data->context)) {
		return -EPERM;
	}
	(void)k_mutex_lock(&data->lock, K_FOREVER);
	if (data->owned) {
		data->owned = false;
		aborted = ethos_u_abort(dev);
	}
	k_mutex_unlock(&data->lock);
	closed = opwest_accelerator_context_close(&data->context);
	return aborted != 0 ? aborted : closed;
}

struct ethosu_driver *opwest_ethos_u_driver(const struct device *dev)
{
	const struct ethos_u_data *const data = dev->data;

	return data->driver;
}

#ifdef CONFIG_PM_DEVICE
static int ethos_u_pm_action(const struct device *dev, enum pm_device_action action)
{
	switch (action) {
	case PM_DEVICE_ACTION_RESUME:
		return power_up(dev);
	case PM_DEVICE_ACTION_SUSPEND:
		return power_down(dev);
	case PM_DEVICE_ACTION_TURN_ON:
	case PM_DEVICE_ACTION_TURN_OFF:
		return 0;
	default:
		return -ENOTSUP;
	}
}
#endif

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
	/* The model maintains the caches of what its operators use. */
	ethosu_set_basep_cache_mask(data->driver, 0U, 0U);
	opwest_accelerator_context_init(&data->context);
	k_mutex_init(&data->lock);
	k_condvar_init(&data->filled);
	k_condvar_init(&data->removed);
	ethos_u_pmu_init(data);
	pm_device_init_suspended(dev);
	k_thread_create(&data->thread, config->stack, STACK_SIZE, ethos_u_work, (void *)dev, NULL,
			NULL, CONFIG_OPWEST_ETHOS_U_THREAD_PRIORITY, 0, K_NO_WAIT);
	k_thread_name_set(&data->thread, dev->name);
	return 0;
}

static OPWEST_ACCELERATOR_API(ethos_u_api) = {
	.info = ethos_u_info,
	.activate = ethos_u_activate,
	.check = ethos_u_check,
	.open = ethos_u_open,
	.load = ethos_u_load,
	.enqueued = ethos_u_enqueued,
	.sync = ethos_u_sync,
	.wake = ethos_u_wake,
	.notify = ethos_u_notify,
	.close = ethos_u_close,
	.deactivate = ethos_u_deactivate,
#ifdef CONFIG_OPWEST_BUNDLE_DEVICES
	.functions = &opwest_ethos_u_functions.base,
#endif
};

/* The fast memory of an instance, with a check; nothing without one. */
#define FAST_NODE(n) DT_INST_PHANDLE(n, fast_memory)
#define FAST_CHECK(n)                                                                              \
	BUILD_ASSERT(DT_REG_ADDR(FAST_NODE(n)) % 16 == 0,                                          \
		     "The fast-memory of an opwest,ethos-u is not aligned to 16 bytes");           \
	BUILD_ASSERT(!DT_SAME_NODE(FAST_NODE(n), DT_CHOSEN(zephyr_sram)),                          \
		     "The fast-memory of an opwest,ethos-u is the memory of the image")
#define FAST_MEMBERS(n)                                                                            \
	.fast_memory = DT_REG_ADDR(FAST_NODE(n)), .fast_memory_size = DT_REG_SIZE(FAST_NODE(n)),

#define ETHOS_U_DEFINE(n)                                                                          \
	BUILD_ASSERT(DT_NODE_HAS_STATUS(DT_INST_PHANDLE(n, npu), okay),                            \
		     "The npu of a devicetree node opwest,ethos-u is disabled");                   \
	/* Defined twice where two nodes name the same NPU. */                                     \
	enum {                                                                                     \
		CONCAT(opwest_ethos_u_has_the_npu_, DT_DEP_ORD(DT_INST_PHANDLE(n, npu)))           \
	};                                                                                         \
	IF_ENABLED(DT_INST_NODE_HAS_PROP(n, fast_memory), (FAST_CHECK(n);))                                                                                 \
	static K_THREAD_STACK_DEFINE(ethos_u_stack_##n, STACK_SIZE);                               \
	BUILD_ASSERT(DT_INST_PROP(n, queue_depth) >= 1 && DT_INST_PROP(n, queue_depth) <= 1024,    \
		     "queue-depth of an opwest,ethos-u must be 1 to 1024");                        \
	static struct ethos_u_job ethos_u_queue_##n[DT_INST_PROP(n, queue_depth)];                 \
	static struct ethos_u_data ethos_u_data_##n;                                               \
	static const struct ethos_u_config ethos_u_config_##n = {                                  \
		.npu = DEVICE_DT_GET(DT_INST_PHANDLE(n, npu)),                                     \
		.registers = DT_REG_ADDR(DT_INST_PHANDLE(n, npu)),                                 \
		IF_ENABLED(DT_INST_NODE_HAS_PROP(n, fast_memory), (FAST_MEMBERS(n))) .irq = DT_IRQN(DT_INST_PHANDLE(n, npu)), \
			.stack = ethos_u_stack_##n,                                                \
			.queue_timeout_ms = DT_INST_PROP(n, queue_timeout_ms),                     \
			.queue_depth = DT_INST_PROP(n, queue_depth), .queue = ethos_u_queue_##n,   \
	};                                                                                         \
	PM_DEVICE_DT_INST_DEFINE(n, ethos_u_pm_action);                                            \
	DEVICE_DT_INST_DEFINE(n, ethos_u_init, PM_DEVICE_DT_INST_GET(n), &ethos_u_data_##n,        \
			      &ethos_u_config_##n, POST_KERNEL,                                    \
			      CONFIG_OPWEST_ETHOS_U_INIT_PRIORITY, &ethos_u_api);                  \
	IF_ENABLED(CONFIG_OPWEST_ETHOS_U_PMU,                                                      \
		   (OPWEST_MEASURED_DEVICE(DEVICE_DT_INST_GET(n), ethos_u_measured_##n,            \
					   ethos_u_pmu_read, ethos_u_pmu_reset);))

DT_INST_FOREACH_STATUS_OKAY(ETHOS_U_DEFINE)
