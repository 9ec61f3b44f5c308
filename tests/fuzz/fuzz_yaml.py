# SPDX-License-Identifier: Apache-2.0
"""Mutations of manifests that mostly remain YAML: keys, scalars, lines, words, and noise."""

import re
from collections.abc import Sequence
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

_WORDS = {"scalar": r"(?<=[:\[,] )[\w./-]+|(?<=\[)[\w./-]+|\[[^\[\]{}]*\]", "key": r"\w+(?=:)", "word": r"\w+"}
"""The patterns of replaced parts."""
MUTATIONS = "delete duplicate swap indent characters".split()
MUTATIONS += ["scalar"] * 5 + ["key"] * 2 + ["add"] * 3 + ["word"] * 2


def mutate(kind: str, lines: list[str], pick: Random) -> None:
    """Make one change of a kind."""
    words = re.findall(r"\w+", "\n".join(lines)) if kind == "word" else KEYS if kind == "key" else VALUES
    at = pick.randrange(len(lines))
    match kind:
        case "delete":
            del lines[at]
        case "duplicate":
            lines.insert(at, pick.choice(lines))
        case "swap":
            other = pick.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case "indent":
            lines[at] = pick.choice(["  " + lines[at], lines[at][2:], "\t" + lines[at]])
        case "add":
            lines[at] = lines[at].replace("{", f"{{{pick.choice(KEYS)}: {pick.choice(VALUES)}, ", 1)
        case "characters":
            column = pick.randrange(len(lines[at]) + 1)
            characters = [*range(1, 128), 0x85, 0xFEFF, 0x1F600]
            noise = "".join(chr(pick.choice(characters)) for _ in range(pick.randint(1, 4)))
            lines[at] = lines[at][:column] + noise + lines[at][column:]
        case _:
            places = list(re.finditer(_WORDS[kind], lines[at]))
            if places:
                place = pick.choice(places)
                lines[at] = lines[at][: place.start()] + pick.choice(words) + lines[at][place.end() :]


def mutated(text: str, pick: Random) -> bytes:
    """Return the text with one to four changes; sometimes with bytes that are not text."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    lines = lines or ["version: 1"]
    for _ in range(pick.choice([1, 1, 1, 2, 4])):
        mutate(pick.choice(MUTATIONS), lines, pick)
        lines = lines or ["version: 1"]
    content = "\n".join(lines).encode("utf-8", "surrogatepass")
    if pick.random() < 0.05:
        at = pick.randrange(len(content))
        content = content[:at] + pick.randbytes(pick.randint(1, 8)) + content[at:]
    return content


def mutate_yaml(content: bytes, chance: Random, _corpus: Sequence[bytes]) -> bytes:
    """Return a manifest with a few changes."""
    return mutated(content.decode("utf-8", "replace"), chance)
