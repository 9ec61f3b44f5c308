/* SPDX-License-Identifier: Apache-2.0 */
#define DT_DRV_COMPAT opwest_flash_emul

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <zephyr/cache.h>
#include <zephyr/devicetree.h>
#include <zephyr/drivers/flash.h>
#include <zephyr/irq.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/reboot.h>
#include <zephyr/sys/util.h>

#include <opwest/flash_emul.h>

#define MAGIC  0x464f5045U
#define ERASED 0xffU

struct flash_emul_config {
	uint8_t *memory;
	uint32_t size;
	uint32_t block;
	struct opwest_flash_emul_state *state;
	struct flash_parameters parameters;
	struct flash_pages_layout layout;
};

struct flash_emul_data {
	struct k_mutex lock;
};

#ifdef CONFIG_ARCH_POSIX
/* flash_emul_native.c, outside of Zephyr. */
extern int opwest_native_flash(uintptr_t memory, size_t size, uintptr_t state, size_t state_size);
extern void opwest_native_power_off(void);
#endif

struct opwest_flash_emul_state *opwest_flash_emul_state(const struct device *dev)
{
	const struct flash_emul_config *const config = dev->config;

	return config->state;
}

static FUNC_NORETURN void power_off(void)
{
#ifdef CONFIG_ARCH_POSIX
	opwest_native_power_off();
	CODE_UNREACHABLE;
#else
	(void)irq_lock();
	sys_reboot(SYS_REBOOT_WARM);
#endif
}

/* One operation: data is NULL for an erasure. Writes only clear bits. */
static int operate(const struct flash_emul_config *config, uint32_t offset, const uint8_t *data,
		   uint32_t size)
{
	struct opwest_flash_emul_state *const state = config->state;
	uint8_t *const memory = config->memory + offset;
	const bool is_cut = ++state->operations == state->cut_at;
	uint32_t whole = size;
	int rc;

	if (is_cut) {
		state->cut_at = 0U;
		state->cut_offset = offset;
		if (state->cut == OPWEST_FLASH_EMUL_BEFORE) {
			power_off();
		}
		if (state->cut == OPWEST_FLASH_EMUL_INSIDE) {
			whole = size / 2U;
		}
	}
	for (uint32_t i = 0U; i < whole; i++) {
		memory[i] = data != NULL ? memory[i] & data[i] : ERASED;
	}
	if (whole < size) {
		memory[whole] = data != NULL ? memory[whole] & (data[whole] | 0x0fU)
					     : memory[whole] | 0x0fU;
	}
	rc = sys_cache_data_flush_range(memory, size);
	if (is_cut) {
		power_off();
	}
	/* Without a data cache of Zephyr's. */
	if (rc == -ENOTSUP && !(IS_ENABLED(CONFIG_CACHE_MANAGEMENT) && IS_ENABLED(CONFIG_DCACHE))) {
		rc = 0;
	}
	return rc;
}

static int check_range(const struct flash_emul_config *config, off_t offset, size_t size,
		       uint32_t unit)
{
	if (offset < 0 || (size_t)offset > config->size || config->size - (size_t)offset < size) {
		return -EINVAL;
	}
	return (size_t)offset % unit != 0U || size % unit != 0U ? -EIO : 0;
}

static int flash_emul_read(const struct device *dev, off_t offset, void *data, size_t size)
{
	const struct flash_emul_config *const config = dev->config;
	const int rc = check_range(config, offset, size, 1U);

	if (rc == 0) {
		memcpy(data, config->memory + offset, size);
	}
	return rc;
}

static int flash_emul_write(const struct device *dev, off_t offset, const void *data, size_t size)
{
	const struct flash_emul_config *const config = dev->config;
	struct flash_emul_data *const own = dev->data;
	const uint32_t unit = config->parameters.write_block_size;
	int rc = check_range(config, offset, size, unit);

	if (rc != 0) {
		return rc;
	}
	(void)k_mutex_lock(&own->lock, K_FOREVER);
	config->state->writes++;
	for (uint32_t done = 0U; rc == 0 && done < size; done += unit) {
		config->state->written += unit;
		rc = operate(config, (uint32_t)offset + done, (const uint8_t *)data + done, unit);
	}
	(void)k_mutex_unlock(&own->lock);
	return rc;
}

static int flash_emul_erase(const struct device *dev, off_t offset, size_t size)
{
	const struct flash_emul_config *const config = dev->config;
	struct flash_emul_data *const own = dev->data;
	int rc = check_range(config, offset, size, config->block);

	if (rc != 0) {
		return rc;
	}
	(void)k_mutex_lock(&own->lock, K_FOREVER);
	for (uint32_t done = 0U; rc == 0 && done < size; done += config->block) {
		config->state->erased++;
		rc = operate(config, (uint32_t)offset + done, NULL, config->block);
	}
	(void)k_mutex_unlock(&own->lock);
	return rc;
}

static const struct flash_parameters *flash_emul_parameters(const struct device *dev)
{
	const struct flash_emul_config *const config = dev->config;

	return &config->parameters;
}

#ifdef CONFIG_FLASH_PAGE_LAYOUT
static void flash_emul_layout(const struct device *dev, const struct flash_pages_layout **layout,
			      size_t *count)
{
	const struct flash_emul_config *const config = dev->config;

	*layout = &config->layout;
	*count = 1;
}
#endif

/* From Zephyr 4.1 on the structure is in the section of its class. */
#ifdef DEVICE_API
static DEVICE_API(flash, flash_emul_api) = {
#else
static const struct flash_driver_api flash_emul_api = {
#endif
	.read = flash_emul_read,
	.write = flash_emul_write,
	.erase = flash_emul_erase,
	.get_parameters = flash_emul_parameters,
#ifdef CONFIG_FLASH_PAGE_LAYOUT
	.page_layout = flash_emul_layout,
#endif
};

static int flash_emul_init(const struct device *dev)
{
	const struct flash_emul_config *const config = dev->config;
	struct flash_emul_data *const own = dev->data;

#ifdef CONFIG_ARCH_POSIX
	const int rc = opwest_native_flash((uintptr_t)config->memory, config->size,
					   (uintptr_t)config->state, sizeof(*config->state));

	if (rc != 0) {
		return -EIO;
	}
#endif
	if (config->state->magic != MAGIC) {
		memset(config->memory, ERASED, config->size);
		memset(config->state, 0, sizeof(*config->state));
		config->state->magic = MAGIC;
	}
	return k_mutex_init(&own->lock);
}

#define FLASH_EMUL_DEFINE(inst, flash)                                                             \
	BUILD_ASSERT(DT_INST_REG_SIZE(inst) >= sizeof(struct opwest_flash_emul_state));            \
	BUILD_ASSERT(DT_REG_SIZE(flash) % DT_PROP(flash, erase_block_size) == 0);                  \
	BUILD_ASSERT(DT_PROP(flash, erase_block_size) % DT_PROP(flash, write_block_size) == 0);    \
	static struct flash_emul_data flash_emul_data_##inst;                                      \
	static const struct flash_emul_config flash_emul_config_##inst = {                         \
		.memory = (uint8_t *)DT_REG_ADDR(flash),                                           \
		.size = DT_REG_SIZE(flash),                                                        \
		.block = DT_PROP(flash, erase_block_size),                                         \
		.state = (struct opwest_flash_emul_state *)DT_INST_REG_ADDR(inst),                 \
		.parameters = {.write_block_size = DT_PROP(flash, write_block_size),               \
			       .erase_value = ERASED},                                             \
		.layout = {.pages_count = DT_REG_SIZE(flash) / DT_PROP(flash, erase_block_size),   \
			   .pages_size = DT_PROP(flash, erase_block_size)},                        \
	};                                                                                         \
	DEVICE_DT_INST_DEFINE(inst, flash_emul_init, NULL, &flash_emul_data_##inst,                \
			      &flash_emul_config_##inst, POST_KERNEL, CONFIG_FLASH_INIT_PRIORITY,  \
			      &flash_emul_api);

#define FLASH_EMUL_CHILD(child, inst) FLASH_EMUL_DEFINE(inst, child)
#define FLASH_EMUL(inst)              DT_INST_FOREACH_CHILD_VARGS(inst, FLASH_EMUL_CHILD, inst)

DT_INST_FOREACH_STATUS_OKAY(FLASH_EMUL)
