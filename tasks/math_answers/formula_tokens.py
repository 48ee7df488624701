"""A formula's text as tokens, and the names of its symbols with what belongs to them: accents, indices, primes."""

from __future__ import annotations

import re
import unicodedata

_TOKEN = re.compile(r"(\s*)(\d+(?:\.\d+)?|\.\d+|\\[a-zA-Z]+|\\[{}|%]|[a-zA-Z]+|\S)")
GREEK = tuple(
    re.findall(
        r"\w+",
        "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho varrho sigma "
        "tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Upsilon Phi Psi Omega hbar ell",
    )
)
_GREEK_LETTERS = {
    unicodedata.lookup(f"GREEK {'CAPITAL' if name[0].isupper() else 'SMALL'} LETTER {name.upper()}"): f"\\{name}"
    for name in GREEK
    if name not in ("varepsilon", "vartheta", "varrho", "varphi", "hbar", "ell", "lambda", "Lambda")
} | {"λ": "\\lambda", "Λ": "\\Lambda", "ϕ": "\\varphi"}
ACCENTS = {
    "hat", "bar", "vec", "dot", "ddot", "tilde", "overline", "overrightarrow", "widehat", "widetilde", "underline",
    "mathbf", "boldsymbol", "bm", "mathcal", "mathbb", "mathfrak", "mathscr", "mathsf",
}  # fmt: skip
STATES = {"ket", "bra"}
UPRIGHT = {"mathrm", "text", "operatorname", "mathit", "textit", "rm", "mbox", "textrm"}


class Unreadable(Exception):
    """The text, or a part of it, is no formula that this module knows."""


class Tokens:
    """The tokens of a text, read from the left."""

    def __init__(self, text: str, functions: frozenset[str]) -> None:
        """Split the text; `functions` are the letters that stand for functions, not for factors."""
        for letter, command in _GREEK_LETTERS.items():
            text = text.replace(letter, f"{command} ")
        self.text = text
        self.tokens = [(match[2], bool(match[1]), match.start(2)) for match in _TOKEN.finditer(text)]
        self.tokens.append(("", False, len(text)))
        self.at = 0
        self.functions = functions

    @property
    def next(self) -> str:
        """The token that has not been taken yet; empty at the end."""
        return self.tokens[self.at][0]

    def take(self, *expected: str) -> str:
        """Go behind the next token and return it; raises Unreadable at the end, or if it is none of those expected."""
        token = self.next
        if not token or (expected and token not in expected):
            raise Unreadable
        self.at += 1
        return token

    def take_first(self, token: str) -> None:
        """Split a digit or letter off the next token, as TeX does for an argument without braces."""
        whole, spaced, start = self.tokens[self.at]
        if token != whole:
            self.tokens[self.at : self.at + 1] = [
                (token, spaced, start),
                (whole[len(token) :], False, start + len(token)),
            ]

    def raw_group(self) -> str:
        """The text of a group in braces, or of one token, without what only sets type."""
        if self.next != "{":
            token = self.take() if self.next[:1] == "\\" else self.next[:1]
            if token[:1] != "\\":
                self.take_first(token)
                self.take()
            if token[1:] in UPRIGHT and self.next == "{":
                return self.raw_group()
            return token.lstrip("\\") if len(token) > 2 and token[1:] not in GREEK else token
        start, depth = self.tokens[self.at][2], 0
        while self.next:
            token = self.take()
            depth += (token == "{") - (token == "}")
            if depth == 0:
                break
        else:
            raise Unreadable
        inside = self.text[start + 1 : self.tokens[self.at - 1][2]]
        return re.sub(r"\\(?:text|mathrm|mathit|rm|operatorname|mbox)(?![a-zA-Z])|[{}\s]|\\(?=max|min)", "", inside)

    def name_marks(self, name: str) -> str:
        """What belongs to a symbol and is no factor: an index, a prime, a star, a transposition, a place."""
        marks = ""
        if (
            re.fullmatch("[a-df-hj-zA-Z]", name)
            and self.next[:1].isdecimal()
            and not self.tokens[self.at][1]
            and "." not in self.next
        ):
            marks = f"_{self.take()}"  # `x1`
        marks += self.indices()
        if special := re.match(
            r"\^\s*\{?\s*(\*|\\prime|\\dagger|\\ast|\\star|\\top|\\intercal|')", self.text[self.tokens[self.at][2] :]
        ):
            self.take("^")
            self.raw_group()
            marks += "'" if special[1] in ("\\prime", "'") else special[1]
        if name.strip("\\") not in ("e", "i", "pi") and self.next == "(" and name not in self.functions:
            at = re.match(r"\(\s*(\d+)\s*\)", self.text[self.tokens[self.at][2] :])
            if at:  # `I(0)` is a value of I, not a product
                self.at += 3
                marks += f"({at[1]})"
        return marks

    def indices(self) -> str:
        """Indices and primes, each `_` with what it has."""
        marks = ""
        while self.next in ("_", "'", "′"):
            marks += f"_{self.raw_group()}" if self.take() == "_" else "'"
        return marks
