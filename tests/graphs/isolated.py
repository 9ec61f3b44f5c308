# SPDX-License-Identifier: Apache-2.0
"""Results of functions in a process of their own, because the kernels of a runtime can abort.

The process serves many calls. That of `compiler/reference/runtimes.py` is new for each model, which takes 0.2 s.
"""

import faulthandler
import multiprocessing
import os

_processes = {}
"""The process and the pipe to it, by the identifier of the process that started it."""


def _serve(pipe, other):
    other.close()
    faulthandler.disable()  # pytest would print the stack of an abort
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:  # the other process has ended
            return
        try:
            answer = function(*arguments), None
        except Exception as error:
            answer = None, str(error)
        pipe.send(answer)


def _pipe():
    """Return the pipe to the process; start one if there is none."""
    if os.getpid() not in _processes:
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, here), daemon=True)
        process.start()
        there.close()
        _processes[os.getpid()] = process, here
    return _processes[os.getpid()][1]


def isolated(function, *arguments):
    """Return the results of a function; None if it ended its process. Raises RuntimeError for its exceptions."""
    pipe = _pipe()
    pipe.send((function, arguments))
    try:
        found, reason = pipe.recv()
    except (EOFError, ConnectionResetError):
        process, _ = _processes.pop(os.getpid())
        process.join()
        return None
    if reason is not None:
        raise RuntimeError(reason)
    return found
