/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the emulator's devices for hosts, which need threads: walk_two_npus.c has devices of its own. */
#ifndef OPWEST_NPU_EMUL_HOST_H_
#define OPWEST_NPU_EMUL_HOST_H_

#include <opwest/npu_emul.h>

#define OPWEST_NPU_EMUL_HOST_DEFINE(name, latency_us) struct name

#endif /* OPWEST_NPU_EMUL_HOST_H_ */
