# SPDX-License-Identifier: Apache-2.0
"""Make Python lack what Windows lacks: for child processes with this directory in PYTHONPATH.

Python's own modules that use POSIX are imported before; on Windows they have other implementations.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import types
import warnings

# On Windows, pyserial imports serialwin32.
for name in ("serial", "smpclient.transport.serial") if "OPWEST_IMPORT_ALL" in os.environ else ():
    with contextlib.suppress(ImportError):
        __import__(name)

warnings.filterwarnings("error", category=EncodingWarning, module="opwest")
_MODULES = "fcntl termios tty pty pwd grp resource syslog readline nis crypt spwd curses _posixshmem".split()
_OF_OS = """chown chroot fchown fork forkpty getegid geteuid getgid getgroups getpgid getpgrp getpriority getsid getuid
initgroups killpg lchown lockf major minor mkfifo mknod nice openpty posix_fallocate sched_getaffinity sched_yield
setsid statvfs sysconf ttyname O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_SYNC""".split()
_OF_SIGNAL = "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGUSR1 SIGUSR2 SIGXCPU SIGXFSZ alarm pause".split()

for name in _MODULES:
    sys.modules[name] = None
for name in _OF_OS:
    if hasattr(os, name):
        delattr(os, name)
for name in _OF_SIGNAL:
    if hasattr(signal, name):
        delattr(signal, name)
shutil._use_fd_functions = False
subprocess.Popen.kill = lambda self: self.send_signal(9)
tempfile.gettempdir()


class _Msvcrt(types.ModuleType):
    """A lock of Windows, without other processes."""

    LK_NBLCK, LK_UNLCK = 2, 0

    @staticmethod
    def locking(handle, mode, count):
        os.fstat(handle)


sys.modules["msvcrt"] = _Msvcrt("msvcrt")
assert asyncio is not None
