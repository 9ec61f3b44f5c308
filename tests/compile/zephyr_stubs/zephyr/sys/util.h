/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header: only the parts that emitted files use. */
#pragma once
