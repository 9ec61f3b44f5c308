/* SPDX-License-Identifier: Apache-2.0 */
/* Nine launches on devices with queues of several depths, and a limit in the manifest. */
#include <nine.h>
#include <nine_by_two.h>
#include <nine_by_eight.h>

#include "contract.h"

USE_MODEL(nine, NINE)
USE_MODEL(nine_by_two, NINE_BY_TWO)
USE_MODEL(nine_by_eight, NINE_BY_EIGHT)

static int nine_of(int x)
{
	return x + 9;
}

/* The counts of a run with a right result. */
static void check_run(const char *what, const struct device *npu, bool right, uint32_t depth)
{
	const struct opwest_npu_emul_counts counts = counts_of(npu);

	check("queue", what, right, true);
	check("queue", "largest number of jobs", counts.most, depth);
	check("queue", "enqueued", counts.succeeded[OPWEST_NPU_EMUL_ENQUEUE], 9);
	check("queue", "rejected or repeated",
	      counts.calls[OPWEST_NPU_EMUL_ENQUEUE] - counts.succeeded[OPWEST_NPU_EMUL_ENQUEUE], 0);
	opwest_npu_emul_reset(npu);
}

/* A device of `depth`: the manifests have no limit, 2 and 8. */
static void on_device(const struct device *npu, uint32_t depth)
{
	bool right;

	printf("queue of %u:\n", (unsigned int)depth);
	check("queue", "open nine", nine_begin(npu), 0);
	check("queue", "open nine_by_two", nine_by_two_begin(npu), 0);
	check("queue", "open nine_by_eight", nine_by_eight_begin(npu), 0);
	opwest_npu_emul_reset(npu);

	right = nine_once(3) == 0 && equals(nine_result, 3, nine_of);
	check_run("run without a limit", npu, right, MIN(depth, 9));
	right = nine_by_two_once(4) == 0 && equals(nine_by_two_result, 4, nine_of);
	check_run("run with a limit of 2", npu, right, MIN(depth, 2));
	right = nine_by_eight_once(5) == 0 && equals(nine_by_eight_result, 5, nine_of);
	check_run("run with a limit of 8", npu, right, MIN(depth, 8));

	check("queue", "close nine_by_eight", nine_by_eight_end(), 0);
	check("queue", "close nine_by_two", nine_by_two_end(), 0);
	check("queue", "close nine", nine_end(), 0);
}

void queues(void)
{
	on_device(NPU(npu_one), 1);
	on_device(NPU(npu_four), 4);
	on_device(NPU(npu_slow), 8); /* no queue-depth in the devicetree */
	on_device(NPU(npu_sixteen), 16);
}
