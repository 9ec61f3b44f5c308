/* SPDX-License-Identifier: Apache-2.0 */
/* For compilers without a C library. EALREADY is unlike that of any library: nothing may know it by heart. */
#ifndef BARE_ERRNO_H_
#define BARE_ERRNO_H_

#define EPERM    1
#define ENOENT   2
#define EIO      5
#define ENODEV   19
#define EINVAL   22
#define EALREADY 1120

#endif /* BARE_ERRNO_H_ */
