# SPDX-License-Identifier: Apache-2.0
"""Mutations of manifests that mostly remain YAML: keys, scalars, lines, words, and noise."""

import re
from collections.abc import Callable, Sequence
from random import Random

# Replacements of scalars: every type, its limits, and names with a meaning elsewhere.
VALUES = (
    r"""
0|1|-1|2|7|255|256|65536|2147483647|2147483648|99999999999999999999999999|0x7fffffff|1.0|4.0|1.5|1e-3|1e39|1e400|-0.0
.inf|-.inf|.nan|true|false|null|~|''|""|[]|{}|[[]]|[1]|{a: 1}|[1, 2, 3, 4]|image|label|features|conv2d_relu|dense|nobody
int8|uint8|float16|float32|float64|bool|in|out|inout|scratch|void|status|packed|64KiB|1B|4KiB|64KB|class|int|__x|_X|a-b
ä|"a\0b"|"\uFFFF"|../x|/x|.|..|/|operators|application|parameters.npz|operators/dense.c|'*'|'&x'|!!str|!!int 1|'%'
'@'|<<
""".strip()
    .replace("\n", "|")
    .split("|")
)
VALUES += ["9" * 5000, "0x" + "f" * 5000, "x" * 5000, "- " * 200, "[" * 100 + "]" * 100]
KEYS = """
shape dtype scalar align direction quantization scale zero_point axis symbol returns device async stateful
args call optional target targets files entry_points memory size reachable_by boards devices devicetree
nodelabel program constants externals tensors pool run inputs outputs steps version model libc application
sources console description
""".split()

Lines = list[str]


def delete(lines: Lines, pick: Random) -> None:
    del lines[pick.randrange(len(lines))]


def duplicate(lines: Lines, pick: Random) -> None:
    lines.insert(pick.randrange(len(lines)), pick.choice(lines))


def swap_lines(lines: Lines, pick: Random) -> None:
    one, other = pick.randrange(len(lines)), pick.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def indent(lines: Lines, pick: Random) -> None:
    at = pick.randrange(len(lines))
    lines[at] = pick.choice(["  " + lines[at], lines[at][2:], "\t" + lines[at]])


def _replace_word(lines: Lines, pick: Random, new: Callable[[], str], pattern: str) -> None:
    at = pick.randrange(len(lines))
    words = list(re.finditer(pattern, lines[at]))
    if words:
        word = pick.choice(words)
        lines[at] = lines[at][: word.start()] + new() + lines[at][word.end() :]


def replace_scalar(lines: Lines, pick: Random) -> None:
    _replace_word(lines, pick, lambda: pick.choice(VALUES), r"(?<=[:\[,] )[\w./-]+|(?<=\[)[\w./-]+|\[[^\[\]{}]*\]")


def replace_key(lines: Lines, pick: Random) -> None:
    _replace_word(lines, pick, lambda: pick.choice(KEYS), r"\w+(?=:)")


def add_key(lines: Lines, pick: Random) -> None:
    at = pick.randrange(len(lines))
    lines[at] = lines[at].replace("{", f"{{{pick.choice(KEYS)}: {pick.choice(VALUES)}, ", 1)


def swap_words(lines: Lines, pick: Random) -> None:
    words = re.findall(r"\w+", "\n".join(lines))
    _replace_word(lines, pick, lambda: pick.choice(words), r"\w+")


def insert_characters(lines: Lines, pick: Random) -> None:
    at = pick.randrange(len(lines))
    column = pick.randrange(len(lines[at]) + 1)
    noise = "".join(chr(pick.choice([*range(1, 128), 0x85, 0xFEFF, 0x1F600])) for _ in range(pick.randint(1, 4)))
    lines[at] = lines[at][:column] + noise + lines[at][column:]


MUTATIONS = [
    delete, duplicate, swap_lines, indent, insert_characters,
    *[replace_scalar] * 5, *[replace_key] * 2, *[add_key] * 3, *[swap_words] * 2,
]  # fmt: skip


def mutated(text: str, pick: Random) -> bytes:
    """Return the text with one to four changes; sometimes with bytes that are not text."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    lines = lines or ["version: 1"]
    for _ in range(pick.choice([1, 1, 1, 2, 4])):
        pick.choice(MUTATIONS)(lines, pick)
        lines = lines or ["version: 1"]
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    if pick.random() < 0.05:
        at = pick.randrange(len(content))
        content = content[:at] + pick.randbytes(pick.randint(1, 8)) + content[at:]
    return content


def mutate_yaml(content: bytes, chance: Random, _corpus: Sequence[bytes]) -> bytes:
    """Return a manifest with a few changes."""
    return mutated(content.decode("utf-8", "replace"), chance)
