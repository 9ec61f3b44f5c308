# SPDX-License-Identifier: Apache-2.0
"""What each token of a line is: operators, casts, names of declarations, brackets and their parameters."""

from __future__ import annotations

from typing import Final

from opwest.base.c_format.lines import FOR_EACH, Line
from opwest.base.c_format.tokens import ASSIGNMENT, ATTRIBUTES, CLOSES, KEYWORDS, PRECEDENCES, TYPES, Token

_BEFORE_UNARY: Final = frozenset("( , : ; = ? [ { case return sizeof".split())
_LITERALS: Final = frozenset(("num", "str", "char"))
_EXPRESSION_BEFORE: Final = frozenset("static_assert while ( , if".split())
_QUALIFIERS: Final = frozenset(("const", "volatile"))
_ENDS_CAST_NOT: Final = frozenset("volatile const -> ?".split())


class _Context:
    __slots__ = ("binding", "expression", "first_name", "for_each", "generic", "kind")

    def __init__(self, kind: str, binding: int, *, expression: bool) -> None:
        self.kind = kind
        self.binding = binding
        self.expression = expression
        self.first_name: Token | None = None
        self.generic = False
        self.for_each = False


def is_word(token: Token) -> bool:
    """Whether a token is an identifier or a keyword."""
    return token.kind == "id" or token.kind in KEYWORDS


def is_type(token: Token) -> bool:
    """Whether a token is the name of a type in every context."""
    return token.text in TYPES


def is_attribute(token: Token) -> bool:
    """Whether a token begins an attribute."""
    return token.kind == "__attribute__" or token.text in ATTRIBUTES


class Kinds:
    """Finds the kinds of the tokens of a line."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._contexts = [_Context("", 1, expression=False)]
        self._token: Token | None = line.tokens[0]
        self.might_declare = False
        """Whether the line can be the declaration of a function."""
        self.is_multiple = False
        """Whether the line declares several variables."""

    def find(self) -> None:
        """Set the types of all tokens."""
        is_assembly = self._line.tokens[0].kind in ("asm", "__asm__")
        for token in self._line.tokens:
            token.reset()
            if token.text in ATTRIBUTES:
                token.type = "attribute"
            elif is_assembly and token.kind == ":":
                token.type = "operands"
        if self._line.directive and not self._line.body:
            self._next()
            if self._line.directive in ("if", "elif"):
                self._contexts[-1].expression = True
        while self._token is not None:
            if not self._consume():
                self._next()

    def _next(self) -> None:
        token = self._token
        if token is None:
            return
        context = self._contexts[-1]
        token.nesting = len(self._contexts) - 1
        token.binding = context.binding
        self._change_context(token, context)
        if not token.type or token.type == "attribute":
            self._set_type(token)
        self._token = token.next

    def _change_context(self, token: Token, context: _Context) -> None:
        kind = token.kind
        if PRECEDENCES.get(kind) == ASSIGNMENT:
            if self._line.tokens[0].kind != "return":
                context.expression = True
                self._correct_pointers(token)
        elif kind in ("<<", "return"):
            context.expression = True
        elif kind in (")", ">", ","):
            previous = token.prev
            while previous is not None and previous.kind in ("*", "&"):
                previous.type = "pointer"
                previous = previous.prev
            if self._line.declares:
                context.expression = False
        elif kind in (";", "!"):
            context.expression = True

    def _correct_pointers(self, token: Token) -> None:
        """What looks like an operator before an assignment belongs to a declaration."""
        if self._line.tokens[0].type == "unary":
            return
        previous = token.prev
        while previous is not None and previous.prev is not None and previous.prev.kind not in (",", ";"):
            if previous.kind in ("]", ")"):
                previous = previous.match
                if previous is None:
                    return
            if previous.kind in ("(", "[", "{"):
                return
            is_operator = previous.type in ("binary", "unary") and previous.kind in ("*", "&", "&&")
            if is_operator and previous.prev is not None and previous.prev.kind != "=":
                previous.type = "pointer"
            previous = previous.prev

    def _consume(self) -> bool:
        """Read a token, with its content if it is a bracket."""
        token = self._token
        if token is None:
            return False
        kind = token.kind
        if kind in CLOSES and token.prev is not None:
            return False
        self._next()
        if kind == "(":
            self._parentheses()
            before = token.prev
            if (
                self._line.declares
                and len(self._contexts) == 1
                and not self._contexts[0].expression
                and token is not self._line.tokens[0]
                and token.type != "type of"
                and (before is None or (not is_attribute(before) and before.type != "binary"))
            ):
                self.might_declare = True
        elif kind == "[":
            self._square()
        elif kind == "{":
            self._brace()
        elif kind == "?":
            while self._token is not None:
                if self._token.kind == ":":
                    self._token.type = "conditional"
                    self._next()
                    break
                if self._token.kind in CLOSES or not self._consume():
                    break
        elif kind == ",":
            context = self._contexts[-1]
            name = context.first_name
            first = self._line.tokens[0]
            if name is not None and (len(self._contexts) == 1 or first.kind == "for"):
                name.multi = True
                self.is_multiple = True
            if context.for_each:
                context.expression = True
        return True

    def _parentheses(self) -> None:
        token = self._token
        opening = token.prev if token is not None else None
        if token is None or opening is None:
            return
        previous = opening.prev
        context = _Context("(", self._contexts[-1].binding + 1, expression=self._contexts[-1].expression)
        self._contexts.append(context)
        if previous is not None and (previous.kind in _EXPRESSION_BEFORE or previous.type in ("cast", "binary")):
            context.expression = True
        elif previous is not None and previous.kind == "_Generic":
            context.generic = context.expression = True
        elif self._line.directive and (previous is None or previous.kind != "id"):
            context.expression = True
        elif previous is not None and previous.text in FOR_EACH:
            context.for_each = True
            context.expression = False
        elif previous is not None and previous.match is not None and previous.match.type == "function type":
            context.expression = False
        elif not self._line.declares and not self._line.directive:
            context.expression = not (previous is not None and previous.kind == "for")
        if previous is not None and not opening.type:
            if is_attribute(previous):
                opening.type = "attribute ("
            elif previous.kind in ("typeof", "_Atomic"):
                opening.type = "type of"
                context.expression = context.expression or previous.kind == "typeof"
        might_be_type = not self._contexts[-2].expression
        probably_type = token.kind in ("*", "&", "^")
        while (token := self._token) is not None:
            before = token.prev
            assert before is not None
            before2 = before.prev
            if before.type == "pointer" and before2 is not None and before2.kind == "(":
                probably_type = True
            if token.kind == ",":
                might_be_type = False
            if before.type == "binary":
                context.expression = True
            if token.kind == ")":
                if before.type == "pointer" and before2 is opening:
                    might_be_type = True
                following = token.next
                if (
                    might_be_type
                    and probably_type
                    and following is not None
                    and (
                        following.kind == "("
                        or (following.kind == "[" and (self._line.declares or (previous and is_type(previous))))
                    )
                ):
                    opening.type = "function type"
                opening.match, token.match = token, opening
                if opening.type == "attribute (":
                    token.type = "attribute )"
                elif opening.type == "type of":
                    token.type = "type of"
                self._next()
                break
            if token.kind in ("]", "}"):
                break
            is_type_paren = token.kind == "(" and token.next is not None and token.next.kind in ("*", "&", "^")
            if (before.kind in ("const", "auto") or is_type(before)) and not (
                token.kind == "{" or (token.kind == "(" and not is_type_paren)
            ):
                context.expression = False
            if not self._consume():
                self._next()
            self._count(opening, token)
        self._contexts.pop()

    @staticmethod
    def _count(opening: Token, token: Token) -> None:
        if token.kind == ",":
            opening.count += 1
            opening.commas.append(token)
        elif opening.count == 0 and token.kind != "comment":
            opening.count = 1

    def _square(self) -> None:
        token = self._token
        opening = token.prev if token is not None else None
        if token is None or opening is None:
            return
        before = opening.before()
        if self._contexts[-1].kind == "{" and before is not None and before.kind in ("{", ","):
            opening.type, binding = "designator [", 1
        else:
            opening.type, binding = "subscript", 10
        context = _Context("[", self._contexts[-1].binding + binding, expression=self._contexts[-1].expression)
        context.expression = True if opening.type == "subscript" else context.expression
        self._contexts.append(context)
        while (token := self._token) is not None:
            if token.kind == "]":
                opening.match, token.match = token, opening
                self._next()
                break
            if token.kind in (")", "}"):
                break
            if not self._consume():
                self._next()
            self._count(opening, token)
        self._contexts.pop()

    def _brace(self) -> None:
        token = self._token
        if token is None or token.prev is None:
            return
        opening = token.prev
        context = _Context("{", self._contexts[-1].binding + 1, expression=self._contexts[-1].expression)
        if not opening.block:
            context.expression = True
        self._contexts.append(context)
        while (token := self._token) is not None:
            if token.kind == "}":
                opening.match, token.match = token, opening
                self._next()
                break
            if token.kind in (")", "]"):
                break
            self._count(opening, token)
            if not self._consume():
                self._next()
        self._contexts.pop()

    def _set_type(self, token: Token) -> None:
        kind = token.kind
        context = self._contexts[-1]
        if kind == "id":
            if self._starts_name(token) and (not self.might_declare or token.nesting):
                context.first_name = token
                token.type = "name"
            elif (
                self.might_declare
                and len(self._contexts) == 1
                and token.prev is not None
                and not token.type
                and token.prev.kind != "="
            ):
                token.type = "annotation"
        elif kind == ";":
            context.first_name = None
        elif kind in ("*", "&", "&&"):
            token.type = self._star(token, expression=context.expression)
        elif kind in ("-", "+", "^"):
            token.type = "unary" if self._is_unary(token) or token.before() is None else "binary"
        elif kind in ("++", "--"):
            previous = token.before()
            is_after = previous is not None and previous.type != "cast" and previous.kind in (")", "]", "id")
            token.type = "postfix" if is_after else "unary"
        elif kind in ("!", "~"):
            token.type = "unary"
        elif kind == "?":
            token.type = "conditional"
        elif kind in PRECEDENCES and kind != ",":
            token.type = "binary"
        elif kind == ")":
            if self._ends_cast(token):
                token.type = "cast"
            self._annotated(token)
        elif kind == ".":
            previous = token.before()
            if previous is not None and previous.kind in (",", "{"):
                token.type = "designator"
        elif kind == "const" and self.might_declare and len(self._contexts) == 1 and token.prev is not None:
            token.type = "annotation"

    @staticmethod
    def _annotated(token: Token) -> None:
        """Find a macro in capitals at the start of a line, before a declaration."""
        following = token.next
        if token.match is None or following is None or token.type == "cast":
            return
        if following.kind in PRECEDENCES or following.kind in "; : { ( , . ->".split():
            return
        before = token.match.prev
        is_name = before is not None and before.kind == "id" and before.text == before.text.upper()
        if before is not None and is_name and before.prev is None:
            token.type = "annotation )"

    def _starts_name(self, token: Token) -> bool:
        previous = token.prev
        if previous is None:
            return False
        following = token.after()
        if following is None:
            if not self._line.body:
                return False
        elif following.kind in ("*", "&", "&&", "str"):
            return False
        before = token.before()
        while before is not None and before.kind == "const":
            before = before.before()
        if before is None:
            return False
        if before.type in ("type of", "attribute )") and before.kind == ")":
            return True
        if before.kind == "id" and before.prev is not None and before.prev.kind == "#" and not self._line.body:
            return False
        return before.kind in ("id", "auto") or before.type == "pointer" or is_type(before)

    def _is_unary(self, token: Token) -> bool:
        previous = token.before()
        if previous is None:
            return True
        return previous.kind in _BEFORE_UNARY or previous.type in ("conditional", "cast", "unary", "binary")

    def _star(self, token: Token, *, expression: bool) -> str:
        previous = token.before()
        if previous is None:
            return "unary"
        if is_type(previous):
            return "pointer"
        following = token.after()
        if following is None:
            return "pointer"
        if following.kind in ("->", "=", ",", ")") or following.kind in _QUALIFIERS or is_attribute(following):
            return "pointer"
        if previous.kind == ")" and previous.type == "type of":
            return "pointer"
        if self._is_unary(token):
            return "unary"
        if following.kind in ("[", ",", ";"):
            return "pointer"
        if previous.kind in _LITERALS or previous.kind in (")", "]", "true", "false"):
            return "binary"
        if previous.kind == "}":
            return "pointer" if previous.match is None else "binary"
        inner: Token | None = following
        while inner is not None and inner.kind == "(":
            inner = inner.after()
        if inner is not None and (inner.kind in _LITERALS or inner.kind in "true false + - ! ~ ++ -- & * &&".split()):
            if inner.kind in ("*", "&", "&&") and not (inner.type == "unary" or inner.kind == "&&"):
                pass
            elif inner.kind not in ("*", "&", "&&"):
                return "binary"
        if token.kind == "&&" and following.kind in ("(", "*", "&"):
            return "binary"
        if is_word(following):
            after = following.after()
            if after is not None:
                if after.kind == "->":
                    return "binary"
                if after.kind in ("*", "&", "&&"):
                    after.type = "binary"
                    return "binary"
        return "binary" if expression else "pointer"

    def _ends_cast(self, token: Token) -> bool:
        opening, last, following = token.match, token.prev, token.next
        if opening is None or last is None or last is opening or following is None:
            return False
        left = opening.before()
        if left is not None:
            if left.kind == ")" and left.type != "cast":
                if left.match is None or left.match.prev is None:
                    return False
                left = left.match.prev
            if is_word(left) and left.kind not in ("return", "case"):
                return False
            if left.kind in ("]", "..."):
                return False
        if following.kind in _ENDS_CAST_NOT or (following.kind == "&&" and not is_type(last)):
            return False
        if following.kind in ("sizeof", "_Alignof", "alignof", "num", "char"):
            return True
        pointer: Token | None = last
        while pointer is not None and pointer.kind in _QUALIFIERS:
            pointer = pointer.prev
        is_type_name = last.type == "type of" or is_type(last) or (pointer is not None and pointer.type == "pointer")
        if is_type_name and following.kind not in ("=", ";", "{", ">"):
            return True
        if left is None:
            return False
        inner: Token | None = opening.next
        while inner is not None and inner is not token:
            if inner.type == "binary":
                return False
            inner = inner.next
        if following.kind == "id":
            return True
        if following.kind == "(" and last.kind == "id" and last.prev is opening:
            return True
        if following.next is None:
            return False
        if following.kind == "{" and not following.block:
            return True
        if following.kind not in ("&", "*", "-", "!", "~", "++", "--") or following.next.kind not in ("id", "num"):
            return False
        if following.kind in ("&", "*") and (following.next.kind == "num" or self._line.directive):
            return False
        if self._line.directive and following.kind == "-":
            return False
        inner = last
        while inner is not opening and inner is not None:
            if inner.kind not in ("const", "id"):
                return False
            inner = inner.prev
        return True
