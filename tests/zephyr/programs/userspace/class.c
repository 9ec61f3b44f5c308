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

static void calls(void *first, void *second, void *third)
{
	const struct opwest_program *const program = two_npus_device_set.devices[0].program;
	struct opwest_accelerator_info info = {0, 0};
	int rc = opwest_accelerator_info(npu, &info);

	ARG_UNUSED(first);
	ARG_UNUSED(second);
	ARG_UNUSED(third);
	check("info", rc == 0 && info.queue_depth == 8U, info.queue_depth);
	rc = opwest_accelerator_activate(npu);
	check("activate", rc == 0, rc);
	rc = opwest_accelerator_check(npu, program);
	check("check", rc == 0, rc);
	rc = opwest_accelerator_open(npu, 100);
	check("own", rc == 0, rc);
	rc = opwest_accelerator_open(npu, 0);
	check("own again", rc == -EDEADLK, rc);
	rc = opwest_accelerator_load(npu, program);
	check("load", rc == 0, rc);
	own = *program;
	rc = opwest_accelerator_load(npu, &own);
	check("structure of the thread", rc == -EFAULT, rc);
	own.data = bytes;
	own.size = sizeof(bytes);
	rc = opwest_accelerator_check(npu, &own);
	check("program of the thread", rc == -EFAULT, rc);
	rc = opwest_accelerator_notify(npu, ended, NULL);
	check("callback of a user thread", rc == -EPERM, rc);
	rc = (int)opwest_accelerator_enqueued(npu);
	check("enqueued", rc == 0, rc);
	opwest_accelerator_wake(npu);
	rc = opwest_accelerator_sync(npu, 0, 100);
	check("sync", rc == 0, rc);
	rc = opwest_accelerator_close(npu);
	check("release", rc == 0, rc);
	rc = opwest_accelerator_deactivate(npu);
	check("deactivate", rc == 0, rc);
}

static void describe_to_kernel(void *first, void *second, void *third)
{
	ARG_UNUSED(first);
	ARG_UNUSED(second);
	ARG_UNUSED(third);
	check("info in memory of the kernel", false, opwest_accelerator_info(npu, &kernel_info));
}

static void own_device(void *first, void *second, void *third)
{
	ARG_UNUSED(first);
	ARG_UNUSED(second);
	ARG_UNUSED(third);
	check("own without permission", false, opwest_accelerator_open(npu, 0));
}

void test_class(void)
{
	permit(permitted, ARRAY_SIZE(permitted));
	run_user("class in user mode", calls, NULL, false);
	run_user("info to memory of the kernel", describe_to_kernel, NULL, true);
	permit(NULL, 0);
	run_user("device without permission", own_device, NULL, true);
}
