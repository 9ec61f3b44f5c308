/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * @brief The functions of the system, Zephyr or a host, for the portable code, and its ABI.
 */
#ifndef OPWEST_PORT_H_
#define OPWEST_PORT_H_

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __ZEPHYR__
struct opwest_accelerator_driver_api;
struct opwest_host_config;
struct opwest_host_data;

/** A device on a host, like Zephyr's. A device without hooks has only a name. */
struct device {
	const char *name;
	/** Constant data; the driver casts it to its own type. */
	const struct opwest_host_config *config;
	const struct opwest_accelerator_driver_api *api;
	/** Mutable data; the driver casts it to its own type. */
	struct opwest_host_data *data;
};
#else
struct device;
#endif

/** @cond INTERNAL_HIDDEN */
/* The ABI of the code that includes this header, for struct opwest_build of opwest/model.h. */
#if defined(__x86_64__)
#define OPWEST_ABI_MACHINE 62U
#elif defined(__i386__)
#define OPWEST_ABI_MACHINE 3U
#elif defined(__aarch64__)
#define OPWEST_ABI_MACHINE 183U
#elif defined(__arm__)
#define OPWEST_ABI_MACHINE 40U
#elif defined(__riscv)
#define OPWEST_ABI_MACHINE 243U
#elif defined(__XTENSA__)
#define OPWEST_ABI_MACHINE 94U
#elif defined(__arc__)
#define OPWEST_ABI_MACHINE 195U
#elif defined(__mips__)
#define OPWEST_ABI_MACHINE 8U
#elif defined(__sparc__)
#define OPWEST_ABI_MACHINE 2U
#else
#define OPWEST_ABI_MACHINE 0U
#endif
#if defined(__ARM_PCS_VFP)
#define OPWEST_ABI_FLOAT OPWEST_FLOAT_ABI_HARD
#elif defined(__riscv_float_abi_quad)
#define OPWEST_ABI_FLOAT OPWEST_FLOAT_ABI_QUAD
#elif defined(__riscv_float_abi_double)
#define OPWEST_ABI_FLOAT OPWEST_FLOAT_ABI_DOUBLE
#elif defined(__riscv_float_abi_single)
#define OPWEST_ABI_FLOAT OPWEST_FLOAT_ABI_SINGLE
#elif defined(__arm__) || defined(__riscv)
#define OPWEST_ABI_FLOAT OPWEST_FLOAT_ABI_SOFT
#else
#define OPWEST_ABI_FLOAT OPWEST_FLOAT_ABI_ONLY
#endif
#define OPWEST_ABI_POINTER_SIZE sizeof(void *)
#define OPWEST_ABI_BIG_ENDIAN   (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
/** @endcond */

/**
 * @brief Check whether a device is ready.
 *
 * @param dev The device, may be NULL.
 *
 * @retval true  It exists, and its driver's initialisation succeeded.
 * @retval false It is NULL or not ready.
 */
bool opwest_port_device_is_ready(const struct device *dev);

/**
 * @brief Check whether a device is of the class of accelerators.
 *
 * @param dev The device, ready.
 *
 * @retval true  Its hooks can be called. Always before Zephyr 4.1, which has no list of classes.
 * @retval false It is a device of another class, or has no hooks.
 */
bool opwest_port_device_has_hooks(const struct device *dev);

/**
 * @brief Power a device up before its activation, or down after its deactivation.
 *
 * Device runtime power management on Zephyr (CONFIG_PM_DEVICE_RUNTIME); no effect elsewhere.
 *
 * @param dev The device.
 * @param on  Up, or down.
 *
 * @retval 0 Done, or not required.
 * @return A negative errno
 */
int opwest_port_device_power(const struct device *dev, bool on);

/**
 * @brief Return the time since an arbitrary start, for time-outs.
 *
 * @return Milliseconds
 */
int64_t opwest_port_uptime_ms(void);

/**
 * @brief Return a number of the calling thread that no other running thread has.
 *
 * Only accelerators (opwest/devices.h) require it.
 *
 * @return The number, not 0
 */
uintptr_t opwest_port_thread(void);

/**
 * @brief Return the size of a line of the data cache.
 *
 * @return Bytes, a power of two: the largest line of any processor if the size is unknown; 0 if
 * there is no cache, or no driver for it
 */
uint32_t opwest_port_cache_line(void);

/**
 * @brief Write cached data back to memory, for a device that is not coherent.
 *
 * @param data The first byte, aligned to a cache line.
 * @param size Bytes, whole cache lines.
 *
 * @retval 0        Done, or there is no cache.
 * @retval -ENOTSUP The cache lacks the operation: only a coherent device can be used.
 * @return Another negative errno
 */
int opwest_port_cache_flush(const uint8_t *data, uint32_t size);

/**
 * @brief Write cached data back and drop it, so no line is written back while a device writes.
 *
 * @param data The first byte, aligned to a cache line.
 * @param size Bytes, whole cache lines.
 *
 * @retval 0        Done, or there is no cache.
 * @retval -ENOTSUP The cache lacks the operation: only a coherent device can be used.
 * @return Another negative errno
 */
int opwest_port_cache_flush_and_invalidate(uint8_t *data, uint32_t size);

/**
 * @brief Drop cached data, to read the data that a device wrote.
 *
 * @param data The first byte, aligned to a cache line.
 * @param size Bytes, whole cache lines.
 *
 * @retval 0        Done, or there is no cache.
 * @retval -ENOTSUP The cache lacks the operation: only a coherent device can be used.
 * @return Another negative errno
 */
int opwest_port_cache_invalidate(uint8_t *data, uint32_t size);

/** A flag that one thread at a time can set; initially zero. */
typedef long opwest_port_flag_t;

/**
 * @brief Set a flag, without waiting.
 *
 * @param flag The flag.
 *
 * @retval true  The caller has set it, and has to clear it.
 * @retval false It was set.
 */
bool opwest_port_take(opwest_port_flag_t *flag);

/**
 * @brief Clear a flag.
 *
 * @param flag The flag, set by the caller.
 */
void opwest_port_give(opwest_port_flag_t *flag);

/**
 * @brief Log the failure of a step.
 *
 * @param model The model's name.
 * @param step  The step, counted from 0.
 * @param code  The return value of the operator.
 */
void opwest_port_log_failure(const char *model, uint16_t step, int32_t code);

/**
 * @brief Log the failure of a device's hook.
 *
 * @param model  The model's name.
 * @param device The device's name in the manifest.
 * @param hook   The hook's name.
 * @param code   The return value of the hook.
 */
void opwest_port_log_hook(const char *model, const char *device, const char *hook, int32_t code);

#ifdef CONFIG_THREAD_STACK_INFO
/** Bytes of an exception during the measurement of a stack, and of the measurement itself. */
#define OPWEST_STACK_UNSURE 256U

/**
 * @brief Call a function and measure its stack. Zephyr only.
 *
 * Fills the unused stack of the current thread, calls the function, and searches for the lowest
 * written byte. Threads of simulators that are host programs use stacks of the host, which cannot
 * be measured.
 *
 * @param call The function.
 *
 * @return Bytes from here to the lowest written byte, at most OPWEST_STACK_UNSURE above the need
 */
uint32_t opwest_stack_measure(void (*call)(void));
#endif

#ifdef __cplusplus
}
#endif

#endif /* OPWEST_PORT_H_ */
