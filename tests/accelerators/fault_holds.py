# SPDX-License-Identifier: Apache-2.0
"""The intervals in which a run owns its devices, from the hand-written actions of a subject and devices.h."""

from fault_subjects import Subject


class Holds:
    """The actions of run with `acquire HANDLE STEP` and `release HANDLE`."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        groups = self._groups()
        self.first: dict[str, int] = {}
        self.last: dict[str, int] = {}
        for number in range(len(subject.steps)):
            self._use(subject.step(number)[1], number, number + 1)
        for before, (waits, _) in enumerate(groups):
            for action in waits:
                words = action.split()
                if words[0] == "wait":
                    self._use(words[1], before, before)
        self.acquired = self._acquired()
        self.actions: list[str] = []
        for before, (waits, others) in enumerate(groups):
            self.actions += waits
            self.actions += [f"release {handle}" for handle in self._released(before)]
            self.actions += [f"acquire {h} {before}" for h, at in sorted(self.acquired.items()) if at == before]
            self.actions += others

    def _use(self, device: str | None, first: int, last: int) -> None:
        if device and self.subject.members[self.subject.index(device)].kind == "accelerator":
            self.first[device] = min(self.first.get(device, first), first)
            self.last[device] = max(self.last.get(device, last), last)

    def _groups(self) -> list[tuple[list[str], list[str]]]:
        """Return, before every step and at the end, the waits with what follows them, and the other actions."""
        groups: list[tuple[list[str], list[str]]] = [([], [])]
        for action in self.subject.actions:
            words = action.split()
            waits, others = groups[-1]
            if words[0] == "wait" or (words[0] == "drop" and waits and not others):
                waits.append(action)
            elif words[0] == "drop":  # of the synchronous step before it
                groups[-2][1].append(action)
            else:
                others.append(action)
                if words[0].isdigit():
                    groups.append(([], []))
        return groups

    def _handle(self, device: str) -> int:
        handle = self.subject.members[self.subject.index(device)].handle
        assert handle is not None
        return handle

    def _end(self, handle: int) -> int:
        return max(last for device, last in self.last.items() if self._handle(device) == handle)

    def _acquired(self) -> dict[int, int]:
        """Return the steps that acquire the handles: none below one that is owned at that time."""
        found: dict[int, int] = {}
        for device, first in self.first.items():
            handle = self._handle(device)
            found[handle] = min(found.get(handle, first), first)
        changed = True
        while changed:
            changed = False
            for low in found:
                for high in found:
                    if low < high and found[high] < found[low] < self._end(high):
                        found[low] = found[high]
                        changed = True
        return found

    def _released(self, before: int) -> list[int]:
        """Return the handles that no later step needs, in the order of the context."""
        listed = [m.name for m in self.subject.members if self.last.get(m.name) == before]
        final = {self._handle(device): device for device in listed if self._end(self._handle(device)) == before}
        return [self._handle(device) for device in listed if final.get(self._handle(device)) == device]
