/* SPDX-License-Identifier: Apache-2.0 */
/* For compilers without a C library. The last five differ from those of all libraries: no code may assume values. */
#ifndef BARE_ERRNO_H_
#define BARE_ERRNO_H_

#define EPERM     1
#define ENOENT    2
#define EINTR     4
#define EIO       5
#define ENOEXEC   8
#define EAGAIN    11
#define ENOMEM    12
#define EFAULT    14
#define EXDEV     18
#define EBUSY     16
#define ENODEV    19
#define EINVAL    22
#define EALREADY  1120
#define EBADMSG   1230
#define ETIMEDOUT 1160
#define ENOTSUP   1340
#define ECANCELED 1250

#endif /* BARE_ERRNO_H_ */
