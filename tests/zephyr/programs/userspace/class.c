/* SPDX-License-Identifier: Apache-2.0 */
/* The class of accelerators as system calls. */
#include <errno.h>

#include <opwest/accelerator.h>

#include <two_npus.h>
#include <two_npus_devicetree.h>

#include "userspace.h"

static const struct device *const npu = DEVICE_DT_GET(TWO_NPUS_DEVICE_NPU0_NODE);
static const void *const permitted[] = {DEVICE_DT_GET(TWO_NPUS_DEVICE_NPU0_NODE)};

/* A program of a user thread, which it could change after the check. */
static K_APP_BMEM(user_partition) struct opwest_program own;
static K_APP_BMEM(user_partition) uint8_t bytes[16];
static struct opwest_accelerator_info kernel_info;

static void ended(const struct device *dev, void *user)
{
	ARG_UNUSED(dev);
	ARG_UNUSED(user);
}

static void calls(intptr_t argument)
{
	const struct opwest_program *const program = two_npus_device_set.devices[0].program;
	struct opwest_accelerator_info info = {0, 0};
	int rc = opwest_accelerator_info(npu, &info);

	check("info", rc == 0 && info.queue_depth == 8U, info.queue_depth);
	check_equal("activate", opwest_accelerator_activate(npu), 0);
	check_equal("check", opwest_accelerator_check(npu, program), 0);
	check_equal("own", opwest_accelerator_open(npu, 100), 0);
	check_equal("own again", opwest_accelerator_open(npu, 0), -EDEADLK);
	check_equal("load", opwest_accelerator_load(npu, program), 0);
	own = *program;
	check_equal("structure of the thread", opwest_accelerator_load(npu, &own), -EFAULT);
	own.data = bytes;
	own.size = sizeof(bytes);
	check_equal("program of the thread", opwest_accelerator_check(npu, &own), -EFAULT);
	rc = opwest_accelerator_notify(npu, ended, NULL);
	check_equal("callback of a user thread", rc, -EPERM);
	check_equal("enqueued", (int)opwest_accelerator_enqueued(npu), 0);
	opwest_accelerator_wake(npu);
	check_equal("sync", opwest_accelerator_sync(npu, 0, 100), 0);
	check_equal("release", opwest_accelerator_close(npu), 0);
	check_equal("deactivate", opwest_accelerator_deactivate(npu), 0);
}

static void describe_to_kernel(intptr_t argument)
{
	check("info in memory of the kernel", false, opwest_accelerator_info(npu, &kernel_info));
}

static void own_device(intptr_t argument)
{
	check("own without permission", false, opwest_accelerator_open(npu, 0));
}

void test_class(void)
{
	permit(permitted, ARRAY_SIZE(permitted));
	run_user("class in user mode", calls, 0, false);
	run_user("info to memory of the kernel", describe_to_kernel, 0, true);
	permit(NULL, 0);
	run_user("device without permission", own_device, 0, true);
}
