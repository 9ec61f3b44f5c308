/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stddef.h>

#include <opwest/errors.h>
#include <opwest/model.h>

const char *opwest_error_name(int error)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {
		{-EACCES, "EACCES"},   {-EAGAIN, "EAGAIN"},         {-EALREADY, "EALREADY"},
		{-EBADMSG, "EBADMSG"}, {-EBUSY, "EBUSY"},           {-ECANCELED, "ECANCELED"},
		{-EDEADLK, "EDEADLK"}, {-EFAULT, "EFAULT"},         {-EFBIG, "EFBIG"},
		{-EILSEQ, "EILSEQ"},   {-EINTR, "EINTR"},           {-EINVAL, "EINVAL"},
		{-EIO, "EIO"},         {-EMSGSIZE, "EMSGSIZE"},     {-ENODATA, "ENODATA"},
		{-ENODEV, "ENODEV"},   {-ENOENT, "ENOENT"},         {-ENOEXEC, "ENOEXEC"},
		{-ENOMEM, "ENOMEM"},   {-ENOSPC, "ENOSPC"},         {-ENOTSUP, "ENOTSUP"},
		{-EPERM, "EPERM"},     {-EPROTOTYPE, "EPROTOTYPE"}, {-ERANGE, "ERANGE"},
		{-EROFS, "EROFS"},     {-ETIMEDOUT, "ETIMEDOUT"},   {-EXDEV, "EXDEV"},
	};

	for (size_t i = 0; i < OPWEST_ARRAY_SIZE(names); i++) {
		if (names[i].error == error) {
			return names[i].name;
		}
	}
	return "";
}
