"""Completions as lm-eval handles them: strings, which here know how they ended."""

from __future__ import annotations


class CompletionText(str):
    """The text of a completion, with its finish reason (None if unknown)."""

    finish_reason: str | None

    def __new__(cls, text: str, finish_reason: str | None) -> CompletionText:
        """A completion of this text."""
        completion = super().__new__(cls, text)
        completion.finish_reason = finish_reason
        return completion
