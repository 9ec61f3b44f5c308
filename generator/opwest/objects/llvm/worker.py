# SPDX-License-Identifier: Apache-2.0
"""The child process: reads requests from standard input, writes responses to standard output.

Started as `python -P -m opwest.objects.llvm.worker MEMORY SECONDS`. Only this process imports llvmlite. What
LLVM rejects with an error is a response; an abort of LLVM ends the process, and the parent reports it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from opwest.base.processes import limit_next_request, limit_process
from opwest.objects.llvm.facts import CompileOptions, LlvmError, LlvmTarget
from opwest.objects.llvm.protocol import Frame, read_frame, write_frame


def _handle(request: Frame) -> Frame:
    """Return the response to one request. Raises LlvmError."""
    try:
        from opwest.objects.llvm import compiling, reading
    except (ImportError, OSError) as fault:
        raise LlvmError(
            f"cannot load llvmlite: {fault}", hint="install it again with 'pip install --force-reinstall llvmlite'"
        ) from fault
    what = request.header["do"]
    if what == "read":
        return Frame(reading.facts_of(request.blob, uses=bool(request.header.get("uses"))))
    target = LlvmTarget(**request.header["target"])
    if what == "layout":
        return Frame({"data_layout": compiling.data_layout(target)})
    return Frame({}, compiling.compile_module(request.blob, target, CompileOptions(**request.header["options"])))


def _answer(request: Frame) -> Frame:
    fault: list[Any]
    try:
        return _handle(request)
    except LlvmError as error:
        fault = [error.message, error.expected, error.hint]
    except MemoryError:
        fault = ["LLVM ran out of memory", "IR that needs less memory", "split the module"]
    except Exception as error:  # llvmlite raises various exceptions for invalid input
        words = str(error).strip().splitlines()
        fault = [f"LLVM rejected the IR: {words[0] if words else type(error).__name__}", "valid IR", None]
    return Frame({"fault": fault})


def main(arguments: list[str]) -> None:
    """Serve requests until the end of the input."""
    memory, seconds = int(arguments[0]), float(arguments[1])
    limit_process(memory)
    # LLVM may print to standard output: responses use a duplicate of it.
    with os.fdopen(os.dup(1), "wb") as answers, os.fdopen(os.dup(0), "rb") as requests:
        os.dup2(2, 1)
        while True:
            limit_next_request(seconds)
            request = read_frame(requests)
            if request is None:
                return
            write_frame(answers, _answer(request))


if __name__ == "__main__":
    main(sys.argv[1:])
