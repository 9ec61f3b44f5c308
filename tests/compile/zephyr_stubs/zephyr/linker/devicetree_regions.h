/* SPDX-License-Identifier: Apache-2.0 */
/* A stub of Zephyr's header: only the parts that emitted files use. */
#ifndef STUB_LINKER_DEVICETREE_REGIONS_H_
#define STUB_LINKER_DEVICETREE_REGIONS_H_

#define LINKER_DT_NODE_REGION_NAME(node) STRINGIFY(node)

#endif /* STUB_LINKER_DEVICETREE_REGIONS_H_ */
