# SPDX-License-Identifier: Apache-2.0
"""Blank the parts of a C or C++ source that a grammar without preprocessor cannot parse.

Removed text is replaced by spaces, so that offsets and line numbers do not change. Removed are
attributes, code for the other language (`#ifdef __cplusplus`), `#if 0`, the alternatives of conditionals that cut
through a statement or a function head, and macros among the specifiers of a declaration
(`TVM_DLL int32_t f(void)`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

RAW_STRING = rb"""
    (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z))
  | """
TOKENS = rb"""
    (?P<space>(?:[ \t\r\n\f\v]++|\\\r?\n)++)
  | (?P<comment>//(?:[^\n\\]++|\\.)*+|/\*.*?(?:\*/|\Z))
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]++|\\.)*+(?:"|(?=\n)|\Z)|[uUL]?'(?:[^'\\\n]++|\\.)*+(?:'|(?=\n)|\Z))
  | (?P<directive>\#(?:\\\r?\n|/\*.*?\*/|//[^\n]*+|[^\n])*+)
  | (?P<word>[A-Za-z_$\x80-\xff][A-Za-z0-9_$\x80-\xff]*+)
  | (?P<number>[0-9.](?:'?[A-Za-z0-9_.])*+)
  | (?P<other>.)
    """
_C_TOKEN = re.compile(TOKENS, re.VERBOSE | re.DOTALL)
_CPP_TOKEN = re.compile(RAW_STRING + TOKENS, re.VERBOSE | re.DOTALL)
_DIRECTIVE = re.compile(rb"#[ \t]*(\w+)[ \t]*(.*)", re.DOTALL)
_OPENING, _ALTERNATIVE = (b"if", b"ifdef", b"ifndef"), (b"else", b"elif", b"elifdef", b"elifndef")
_CPLUSPLUS = re.compile(rb"(!?)\s*defined\s*\(?\s*__cplusplus\s*\)?\s*")
_WITH_ARGUMENTS = frozenset(b"__attribute__ __attribute __declspec _Alignas alignas __asm__ __asm asm".split())
_PLAIN = frozenset(b"__extension__ _Noreturn noreturn __noreturn__ _Thread_local thread_local __thread".split())
_KEYWORDS = frozenset(
    b"void char short int long float double signed unsigned _Bool bool _Complex struct union enum const "
    b"volatile restrict static extern inline register typedef auto __inline __inline__ __const __volatile__ "
    b"__signed__ __int128 __int128_t __uint128_t __fp16 __bf16 _Float16 _Thread_local __thread typeof "
    b"__typeof__ constexpr _Atomic constinit consteval class namespace using template typename friend virtual explicit "
    b"mutable noexcept decltype operator".split()
)
_TYPES = frozenset(
    b"void char short int long float double signed unsigned _Bool bool struct union enum __int128 "
    b"__int128_t __uint128_t __fp16 __bf16 _Float16 typeof __typeof__".split()
)
_QUALIFIERS = frozenset(b"const volatile restrict __restrict __restrict__ _Atomic".split())
_MAX_OLD_STYLE_LENGTH = 256  # tokens of parameter declarations; keeps the search linear
_MAX_NAMESPACE_LENGTH = 64  # tokens of `namespace a::b`
_MACRO = re.compile(rb"[A-Z_][A-Z0-9_]*|__\w+")


class Token(NamedTuple):
    """A token of a source, with its place in bytes."""

    kind: str
    text: bytes
    start: int
    end: int


def source_tokens(text: bytes, *, cplusplus: bool) -> list[Token]:
    """Return all tokens but white space and comments."""
    return list(tokens_from(text, 0, cplusplus=cplusplus))


def tokens_from(text: bytes, start: int, *, cplusplus: bool) -> Iterator[Token]:
    """Yield the tokens from a byte that is in none, but white space and comments."""
    for match in (_CPP_TOKEN if cplusplus else _C_TOKEN).finditer(text, start):
        if match.lastgroup not in ("space", "comment"):
            yield Token(match.lastgroup or "other", match.group(), match.start(), match.end())


def mask(content: bytes, *, cplusplus: bool = False) -> bytes:
    """Return `content` with all text that a plain grammar of C or C++ cannot parse replaced by spaces."""
    text = bytearray(content)
    if text.startswith(b"\xef\xbb\xbf"):
        text[:3] = b"   "
    tokens = source_tokens(bytes(text), cplusplus=cplusplus)
    for step in (partial(dead_regions, cplusplus=cplusplus), _split_regions, _ignored_ranges, _unknown_qualifiers):
        regions = step(tokens)
        for start, end in regions:
            text[start:end] = re.sub(rb"[^\n]", b" ", text[start:end])
        # Blanked tokens are white space. All steps share the tokens, because the tokenizer takes most of the time.
        tokens = [t for t in tokens if text[t.start] != 0x20] if regions else tokens
    return bytes(text)


def without_attributes(content: bytes) -> bytes:
    """Return C with the attributes and assembly names of declarations replaced by spaces."""
    text = bytearray(content)
    tokens = source_tokens(content, cplusplus=False)
    closings = _closings(tokens)
    for index, token in enumerate(tokens, start=1):
        end = closings.get(index, index)
        if token.text in _WITH_ARGUMENTS and end > index:
            last = tokens[end - 1].end
            text[token.start : last] = re.sub(rb"[^\n]", b" ", text[token.start : last])
    return bytes(text)


def _directive(token: Token) -> tuple[bytes, bytes]:
    """Return the name of a directive (`ifdef`) and what follows it."""
    match = _DIRECTIVE.match(token.text)
    return (match.group(1), match.group(2)) if match else (b"", b"")


def _condition(name: bytes, rest: bytes, *, cplusplus: bool) -> bool | None:
    """Return the value of a condition in the language, None if it depends on the compiler."""
    rest = re.sub(rb"/\*.*?\*/|//.*", b"", rest, flags=re.DOTALL).strip()
    if name in (b"ifdef", b"ifndef"):
        return (name == b"ifdef") is cplusplus if rest == b"__cplusplus" else None
    if rest in (b"0", b"1"):
        return rest == b"1"
    match = _CPLUSPLUS.fullmatch(rest)
    return bool(match.group(1)) is not cplusplus if match else None


def dead_regions(tokens: list[Token], *, cplusplus: bool) -> list[tuple[int, int]]:
    """Return the ranges that no compiler of the language compiles, including their directives."""
    regions: list[tuple[int, int]] = []
    # Per open #if: the value of the condition of the current branch, and the start of the branch.
    open_ifs: list[tuple[bool | None, int]] = []
    for token in tokens:
        if token.kind != "directive":
            continue
        name, rest = _directive(token)
        if name in _OPENING:
            known = _condition(name, rest, cplusplus=cplusplus)
            open_ifs.append((known, token.start))
            if known is True:
                regions.append((token.start, token.end))
        elif name in _ALTERNATIVE and open_ifs:
            known, start = open_ifs[-1]
            if known is None:
                continue
            if known is False:
                regions.append((start, token.end))
            elif name == b"else":
                regions.append((token.start, token.end))
            # After a known condition, #else is its opposite; an #elif is left out with the rest.
            open_ifs[-1] = (not known, token.start)
        elif name == b"endif" and open_ifs:
            known, start = open_ifs.pop()
            if known is not None:
                regions.append((token.start if known else start, token.end))
    return regions


def _split_regions(tokens: list[Token]) -> list[tuple[int, int]]:
    """Return the ranges to remove to keep only the first branch of each conditional with incomplete branches.

    A branch with an unbalanced brace, or that ends within a statement, cannot be parsed separately.
    Conditionals with complete branches are kept, so that all branches are examined.
    """
    regions: list[tuple[int, int]] = []
    # Per open #if: its directives so far, the levels before it and after its first branch, incomplete branches.
    groups: list[tuple[list[Token], int, list[int], list[bool]]] = []
    level = 0
    last: Token | None = None
    for token in tokens:
        if token.kind != "directive":
            level += (token.text in (b"{", b"(", b"[")) - (token.text in (b"}", b")", b"]"))
            last = token
            continue
        name, _ = _directive(token)
        if name in _OPENING:
            groups.append(([token], level, [], []))
            continue
        if name not in (*_ALTERNATIVE, b"endif") or not groups:
            continue
        directives, before, after_first, incomplete = groups[-1]
        complete = last is None or last.start < directives[-1].start or last.text in (b";", b"}")
        incomplete.append(level != before or not complete)
        after_first.append(level)
        directives.append(token)
        level = before
        if name == b"endif":
            groups.pop()
            level = after_first[0]
            if any(incomplete):
                regions.extend((d.start, d.end) for d in directives)
                regions.append((directives[1].start, token.end))
    return regions


def _ignored_ranges(tokens: list[Token]) -> list[tuple[int, int]]:
    """Return the ranges of all attributes, and of macros in declarations at file scope."""
    ranges: list[tuple[int, int]] = []
    closings = _closings(tokens)
    depth = 0
    depths: list[int] = []  # at each #if, so that a brace opened in both branches counts once
    head: list[Token] = []  # the words of the declaration so far, at file scope
    in_head = True
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if token.kind == "directive":
            depth = _depth_after(token, depth, depths)
            continue
        if token.kind == "word" and (token.text in _WITH_ARGUMENTS or token.text in _PLAIN):
            end = closings.get(index, index) if token.text in _WITH_ARGUMENTS else index
            if token.text in _PLAIN or end > index:
                ranges.append((token.start, tokens[end - 1].end))
                index = end
            continue
        if token.text == b"{":
            depth += not _opens_file_scope(tokens, index - 1)
        elif token.text == b"}":
            depth = max(0, depth - 1)
        if depth or token.text in (b"{", b"}", b";"):
            head, in_head = [], depth == 0
        elif in_head and token.kind == "word":
            end = closings.get(index, index)
            following = tokens[end] if end < len(tokens) else None
            if end > index and _MACRO.fullmatch(token.text) and _is_macro_call(following, head):
                ranges.append((token.start, tokens[end - 1].end))
                index = end
            else:
                head.append(token)
        elif token.kind == "string" and tokens[index - 2].text == b"extern":
            continue
        elif in_head and token.text != b"*":
            if token.text == b"(":
                ranges.extend(_old_style_parameters(tokens, index - 1, closings))
            ranges.extend((t.start, t.end) for t in _macros(head))
            head, in_head = [], False
    return ranges


def _unknown_qualifiers(tokens: list[Token]) -> list[tuple[int, int]]:
    """Return the words between `*` and the name of a parameter that are no qualifiers of C, such as RESTRICT."""
    following = zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False)
    return [
        (word.start, word.end)
        for star, word, name, end in following
        if star.text == b"*"
        and word.kind == name.kind == "word"
        and end.text in (b",", b")", b"[")
        and not {word.text, name.text} & _QUALIFIERS
    ]


def _opens_file_scope(tokens: list[Token], brace: int) -> bool:
    """Whether a brace is that of `extern "C" {` or `namespace a::b {`: the declarations inside are at file scope."""
    at = brace - 1
    if at >= 1 and tokens[at].kind == "string":
        return tokens[at - 1].text == b"extern"
    first = max(0, brace - _MAX_NAMESPACE_LENGTH)
    while at > first and (tokens[at].text in (b":", b"inline") or tokens[at].kind == "word"):
        if tokens[at].text == b"namespace":
            return True
        at -= 1
    return at >= 0 and tokens[at].text == b"namespace"


def _depth_after(directive: Token, depth: int, depths: list[int]) -> int:
    """Return the brace depth after a directive."""
    name, _ = _directive(directive)
    if name in _OPENING:
        depths.append(depth)
    elif name in _ALTERNATIVE and depths:
        return depths[-1]
    elif name == b"endif" and depths:
        depths.pop()
    return depth


def _closings(tokens: list[Token]) -> dict[int, int]:
    """Return for each opening parenthesis the index after the one that closes it.

    A brace or semicolon inside, as in a statement expression or a `for`, means that it is no list
    of arguments.
    """
    closings: dict[int, int] = {}
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token.text == b"(":
            opened.append(at)
        elif token.text == b")" and opened:
            closings[opened.pop()] = at + 1
        elif token.text in (b"{", b";"):
            opened.clear()
    return closings


def _old_style_parameters(tokens: list[Token], opening: int, closings: dict[int, int]) -> list[tuple[int, int]]:
    """Return the range between the parameter names and the body of `f(a, b) int a; int b; {`."""
    end = closings.get(opening, opening)
    names = tokens[opening + 1 : end - 1]
    plain = all(t.text == b"," or (t.kind == "word" and t.text not in _KEYWORDS) for t in names)
    if not names or not plain or end >= len(tokens) or tokens[end].kind != "word":
        return []
    for at in range(end, min(end + _MAX_OLD_STYLE_LENGTH, len(tokens))):
        if tokens[at].text == b"{":
            if tokens[at - 1].text != b";":
                break
            return [(tokens[end].start, tokens[at - 1].end)]
        if tokens[at].text in (b"}", b"=") or tokens[at].kind == "directive":
            break
    return []


def _is_macro_call(following: Token | None, head: list[Token]) -> bool:
    """Whether a macro call at file scope precedes a declaration, or has no semicolon."""
    if following is None or following.kind == "directive":
        return not head
    return following.kind == "word"


def _macros(head: list[Token]) -> list[Token]:
    """Return the words before a declared name that can only be macros.

    In `TVM_DLL int32_t f` the type is int32_t, so TVM_DLL is a macro. In `FLOAT f` the type is FLOAT.
    """
    words = head[:-1]
    if any(w.text == b"typedef" for w in words):
        return []
    macros = [w for w in words if _MACRO.fullmatch(w.text) and w.text not in _KEYWORDS]
    # A word after struct, union or enum is a tag.
    tags = {id(after) for before, after in pairwise(head) if before.text in (b"struct", b"union", b"enum", b"class")}
    macros = [w for w in macros if id(w) not in tags]
    others = [w for w in words if w not in macros]
    has_type = any(w.text in _TYPES or w.text not in _KEYWORDS for w in others)
    return macros if has_type else macros[:-1]
