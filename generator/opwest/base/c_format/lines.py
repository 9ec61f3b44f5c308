# SPDX-License-Identifier: Apache-2.0
"""The parts of C source text that are laid out one by one: statements, declarations, heads of blocks, directives."""

from __future__ import annotations

from typing import Final, NamedTuple

from opwest.base.c_format.tokens import ATTRIBUTES, CLOSES, OPENS, Token, tokenize

_CONDITIONS: Final = frozenset(("if", "for", "while", "switch"))
FOR_EACH: Final = frozenset(("FOR_EACH", "STRUCT_SECTION_FOREACH", "SYS_SLIST_FOR_EACH_NODE", "K_SPINLOCK"))
_RECORDS: Final = frozenset(("struct", "union", "enum"))
_BEFORE_VALUES: Final = frozenset("= , ( [ ] return { & ? : == != && ||".split())
"""Tokens before a brace of values."""


class Line:
    """A part of the text that begins a new line. `level` is its indentation in tabs."""

    __slots__ = ("body", "declares", "directive", "level", "newlines", "opens_function", "tokens", "verbatim")

    def __init__(self, tokens: list[Token], level: int, *, directive: str = "", body: bool = False) -> None:
        self.tokens = tokens
        self.level = level
        self.directive = directive
        """The name of the preprocessor directive that the line belongs to."""
        self.body = body
        """Whether the line is in the body of a macro."""
        self.declares = False
        """Whether only declarations are possible here: outside functions and macros."""
        self.newlines = tokens[0].newlines if tokens else 0
        self.verbatim: str | None = None
        self.opens_function = False

    def with_tokens(self, tokens: list[Token]) -> Line:
        """Return the line with other tokens."""
        line = Line(tokens, self.level, directive=self.directive, body=self.body)
        line.declares = self.declares
        return line


class _Block(NamedTuple):
    """An open block."""

    kind: str
    """file, macro, function, block, if, do, switch, record or enum."""
    level: int
    """The level of its content."""
    is_single: bool = False
    """Whether it has no braces: one statement."""


class _Condition(NamedTuple):
    """An open conditional of the preprocessor."""

    before: list[_Block]
    """The open blocks at its start."""
    is_inside: bool
    """Whether it is inside a statement."""
    after: list[_Block] | None = None
    """The open blocks at the end of its first branch."""


class Parser:
    """Splits tokens into lines."""

    def __init__(self, text: str, tokens: list[Token], level: int = 0, *, in_macro: bool = False) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0
        self._in_macro = in_macro
        self._blocks = [_Block("macro" if in_macro else "file", level)]
        self._conditions: list[_Condition] = []
        self._line: list[Token] = []
        self._above: list[Line] = []
        self.lines: list[Line] = []

    def parse(self) -> list[Line]:
        """Return the lines."""
        while self._at < len(self._tokens):
            self._statement()
        return self.lines

    def begin(self, *, in_function: bool, in_record: bool) -> None:
        """Set what the text is in: a function, the end of a structure."""
        level = self._blocks[0].level
        if in_function:
            self._blocks[0] = _Block("function", level)
        if in_record:
            is_else = len(self._tokens) > 1 and self._tokens[1].kind == "else"
            self._blocks.append(_Block("if" if is_else else "record", level + 1))

    def _peek(self, ahead: int = 0) -> Token | None:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else None

    def _take(self) -> Token:
        """Add the next token to the line; directives before it become lines."""
        token = self._tokens[self._at]
        self._at += 1
        self._line.append(token)
        return token

    def _end(self, level: int, *, trailing: bool = True) -> Line | None:
        """End the line, with the comments behind it."""
        if not self._line:
            return None
        while trailing and (token := self._peek()) is not None and token.kind == "comment" and not token.newlines:
            self._take()
        line = Line(self._line, level, directive="define" if self._in_macro else "", body=self._in_macro)
        line.declares = not self._in_macro and self._blocks[-1].kind in ("file", "record")
        self._line = []
        self.lines += [line, *self._above]
        self._above = []
        return line

    def _statement(self) -> None:
        token = self._tokens[self._at]
        block = self._blocks[-1]
        kind = token.kind
        if kind == "#" and not self._in_macro and (not token.escaped or self._at == 0):
            self._directive()
        elif kind == "comment":
            self._take()
            self._end(block.level, trailing=False)
        elif kind == "}":
            self._close()
        elif kind == "{" and not self._is_macro_value():
            self._take()
            self._end(block.level)
            self._blocks.append(_Block("block", block.level + 1))
        elif kind in _CONDITIONS or kind in ("else", "do"):
            self._control()
        elif kind in ("case", "default"):
            self._label(block.level - 1)
        elif block.kind == "enum":
            self._enumerator()
        else:
            self._declaration_or_expression()

    def _is_macro_value(self) -> bool:
        return self._in_macro and not self.lines and not any(token.kind == ";" for token in self._tokens)

    def _directive(self) -> None:
        first = self._at
        self._at += 1
        while (token := self._peek()) is not None and (token.escaped or token.newlines == 0):
            self._at += 1
        tokens = self._tokens[first : self._at]
        name = tokens[1].text if len(tokens) > 1 else ""
        if name in ("if", "ifdef", "ifndef"):
            self._conditions.append(_Condition(list(self._blocks), is_inside=bool(self._line)))
        lines = directive_lines(self._text, tokens, name)
        if name in ("else", "elif") and self._conditions:
            condition = self._conditions[-1]
            if self._line and not condition.is_inside:
                lines += self._other_head()
            else:
                self._conditions[-1] = condition._replace(after=condition.after or list(self._blocks))
                self._blocks = list(condition.before)
        elif name == "endif" and self._conditions:
            self._blocks = self._conditions.pop().after or self._blocks
        (self._above if self._line else self.lines).extend(lines)

    def _other_head(self) -> list[Line]:
        """Return the lines of the other branch of a conditional at the beginning of a statement."""
        first, depth = self._at, 0
        while (token := self._peek()) is not None:
            if token.kind == "#" and not token.escaped:
                following = self._peek(1)
                name = following.text if following is not None else ""
                if depth == 0 and name in ("else", "elif", "endif"):
                    break
                depth += name in ("if", "ifdef", "ifndef")
                depth -= name == "endif"
            self._at += 1
        return Parser(self._text, self._tokens[first : self._at], self._blocks[-1].level).parse()

    def _close(self) -> None:
        block = self._blocks.pop() if len(self._blocks) > 1 else self._blocks[0]
        level = self._blocks[-1].level if block.kind != "extern" else 0
        if block.kind == "switch":
            level = block.level - 1
        self._take()
        if block.kind == "do":
            self._until_semicolon(level)
        elif block.kind in ("record", "enum"):
            self._declaration_or_expression(level)
            return
        elif (token := self._peek()) is not None and token.kind == "else" and block.kind == "if":
            self._control(level)
            return
        else:
            if (token := self._peek()) is not None and token.kind == ";" and block.kind not in ("if",):
                self._take()
            self._end(level)
        self._finish_single()

    def _finish_single(self) -> None:
        """Close the blocks that have no braces, after their statement."""
        while self._blocks[-1].is_single:
            block = self._blocks.pop()
            level = self._blocks[-1].level
            self._line.append(Token("}", "}", 1, escaped=self._in_macro, start=0, column=0))
            token = self._peek()
            if token is not None and token.kind == "else" and block.kind == "if":
                self._control(level)
                return
            self._end(level, trailing=False)

    def _control(self, level: int | None = None) -> None:
        """Parse the head of a statement with a body; the brace before `else` can be on the line."""
        level = self._blocks[-1].level if level is None else level
        keyword = self._take()
        if keyword.kind == "else" and (token := self._peek()) is not None and token.kind == "if":
            keyword = self._take()
        if (token := self._peek()) is not None and token.kind == "(":
            self._bracket()
        while (token := self._peek()) is not None and token.kind == "comment" and not token.newlines:
            self._take()
        kind = "if" if keyword.kind in ("if", "else") else keyword.kind
        kind = kind if kind in ("if", "do", "switch") else "block"
        token = self._peek()
        if token is not None and token.kind == "{":
            self._take().block = True
            self._end(level)
            self._blocks.append(_Block(kind, level + 1))
        elif token is not None and token.kind == ";":
            self._take()
            self._end(level)
            self._finish_single()
        elif token is not None:
            brace = Token("{", "{", 0, escaped=True, start=0, column=0)
            brace.block = True
            self._line.append(brace)
            self._end(level)
            self._blocks.append(_Block(kind, level + 1, is_single=True))

    def _bracket(self) -> None:
        """Take a bracket with its content."""
        depth = 0
        while self._at < len(self._tokens):
            self._skip_directives()
            if self._at == len(self._tokens):
                return
            token = self._take()
            if token.kind in OPENS:
                depth += 1
            elif token.kind in CLOSES:
                depth -= 1
                if depth == 0:
                    return

    def _skip_directives(self) -> None:
        """Keep directives inside a statement as lines above its next token."""
        while not self._in_macro and (token := self._peek()) is not None and token.kind == "#" and not token.escaped:
            self._directive()
        if self._above and (token := self._peek()) is not None:
            token.above = self._above
            self._above = []

    def _label(self, level: int) -> None:
        while self._at < len(self._tokens):
            if self._take().kind == ":":
                break
        self._end(level)

    def _enumerator(self) -> None:
        while (token := self._peek()) is not None and token.kind != "}":
            self._skip_directives()
            if token.kind in OPENS:
                self._bracket()
            elif self._take().kind == ",":
                break
        self._end(self._blocks[-1].level)

    def _until_semicolon(self, level: int) -> None:
        while self._at < len(self._tokens):
            if self._take().kind == ";":
                break
        self._end(level)

    def _declaration_or_expression(self, level: int | None = None) -> None:
        block = self._blocks[-1]
        level = block.level if level is None else level
        while self._at < len(self._tokens):
            self._skip_directives()
            token = self._peek()
            if token is None:
                break
            kind = token.kind
            if kind == "}":
                break
            if kind == "{":
                if self._is_value():
                    outside = all(block.kind in ("file", "macro", "record") for block in self._blocks)
                    token.whole = outside and bool(self._line) and self._line[-1].kind == "="
                    self._bracket()
                    continue
                self._open(level)
                return
            if kind in OPENS:
                self._bracket()
                if self._ends_macro():
                    break
                continue
            self._take()
            if kind == ";":
                break
            if kind == ":" and len(self._line) == 2 and self._line[0].kind == "id" and block.kind != "record":
                self._end(0)
                return
            if kind == "id" and self._ends_macro():
                break
        self._end(level)
        self._finish_single()

    def _ends_macro(self) -> bool:
        """Whether the line is a macro without a semicolon."""
        first = self._line[0]
        after = self._peek()
        if first.kind != "id" or after is None or not after.newlines or first.text != first.text.upper():
            return False
        if len(self._line) == 1:
            return len(first.text) >= 5 and after.kind not in "; { ( [ = . -> , : + - * / & | ^ % < > ?".split()
        is_call = self._line[1].kind == "(" and self._line[-1].kind == ")" and self._one_bracket()
        return is_call and after.kind not in "; { ( [ = . -> , : + - * / & | ^ % < > ? == != <= >= && ||".split()

    def _one_bracket(self) -> bool:
        depth = 0
        for token in self._line[1:-1]:
            depth += (token.kind in OPENS) - (token.kind in CLOSES)
            if depth == 0:
                return False
        return True

    def _is_value(self) -> bool:
        """Whether the next brace contains values."""
        line = [token for token in self._line if token.kind != "comment"]
        if not line:
            return True
        last = line[-1]
        if last.kind != ")":
            return last.kind in _BEFORE_VALUES
        depth = 0
        for at in range(len(line) - 1, -1, -1):
            kind = line[at].kind
            depth += (kind == ")") - (kind == "(")
            if depth == 0:
                before = line[at - 1] if at else None
                return before is not None and (before.kind in _BEFORE_VALUES or before.kind in "+ - * / !".split())
        return False

    def _open(self, level: int) -> None:
        """Open a block after its head."""
        line = [token for token in self._line if token.kind != "comment"]
        words = [token.kind for token in line]
        first = line[0] if line else None
        if first is not None and words[0] == "extern" and words[1:] == ["str"]:
            self._take().block = True
            self._end(level)
            self._blocks.append(_Block("file", level))
        elif self._is_record(line):
            self._take().block = True
            self._end(level)
            self._blocks.append(_Block("enum" if "enum" in words else "record", level + 1))
        elif first is not None and first.text in FOR_EACH:
            self._take().block = True
            self._end(level)
            self._blocks.append(_Block("block", level + 1))
        else:
            head = self._end(level)
            if head is not None:
                head.opens_function = True
            self._take().block = True
            self._end(level)
            self._blocks.append(_Block("function", level + 1))

    @staticmethod
    def _is_record(line: list[Token]) -> bool:
        at = len(line) - 1
        while at >= 0:
            token = line[at]
            if token.kind in _RECORDS:
                return True
            if token.kind == ")":
                depth = 0
                while at >= 0:
                    depth += (line[at].kind == ")") - (line[at].kind == "(")
                    if depth == 0:
                        break
                    at -= 1
                at -= 1
                if at < 0 or line[at].text not in ("__attribute__", *ATTRIBUTES):
                    return False
            elif token.kind not in ("id", "##"):
                return False
            at -= 1
        return False


def directive_lines(text: str, tokens: list[Token], name: str) -> list[Line]:
    """Return the lines of a preprocessor directive."""
    if name == "define" and len(tokens) > 2:
        end = 3
        if len(tokens) > 3 and tokens[3].text == "(" and tokens[3].start == tokens[2].start + len(tokens[2].text):
            depth = 0
            while end < len(tokens):
                depth += (tokens[end].text == "(") - (tokens[end].text == ")")
                end += 1
                if depth == 0:
                    break
        head = Line(tokens[:end], 0, directive="define")
        body = tokens[end:]
        comments: list[Token] = []
        while body and body[-1].kind == "comment" and not body[-1].newlines:
            comments.insert(0, body.pop())
        if body and body[0].kind == "<" and body[-1].kind == ">":  # the name of a header
            lines = [Line(body, 1, directive=name, body=True)]
            lines[0].verbatim = text[body[0].start : body[-1].start + 1]
        else:
            lines = Parser(text, body, 1, in_macro=True).parse() if body else []
        (lines[-1] if lines else head).tokens.extend(comments)
        return [head, *lines]
    line = Line(tokens, 0, directive=name or "#")
    if name in ("include", "error", "warning", "pragma", "include_next") or any(
        token.text.startswith("__has_include") for token in tokens
    ):
        line.verbatim = text[tokens[0].start : tokens[-1].start + len(tokens[-1].text)]
    return [line]


def parse(text: str) -> list[Line]:
    """Return the lines of C source text."""
    return Parser(text, tokenize(text)).parse()


def parse_part(text: str, level: int, *, in_function: bool) -> list[Line] | None:
    """Return the lines of a part of C source text; None if brackets in it are not closed."""
    tokens = tokenize(text)
    parser = Parser(text, tokens, level)
    parser.begin(in_function=in_function, in_record=bool(tokens) and tokens[0].kind == "}")
    return parser.parse()
