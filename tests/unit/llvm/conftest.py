# SPDX-License-Identifier: Apache-2.0
"""One child process for the tests of a file; test_llvm_child.py tests the ends of children."""

import pytest
from opwest.objects.llvm import api
from opwest.objects.llvm.child import _Child


@pytest.fixture(scope="module")
def one_child():
    """Let the requests of all tests of a file share a child until it ends."""
    children: list[_Child] = []

    def run(requests):
        answers = []
        for request in requests:
            if not children or children[-1].ended:
                children.append(_Child())
            answers.append(children[-1].respond(request))
        return answers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "run", run)
        yield
    for child in children:
        child.close()
