"""A completion that is a string to lm-eval, and carries what is known about how it was made."""

from __future__ import annotations


class Completion(str):
    """The text of a completion, with its finish reason (None if unknown)."""

    finish_reason: str | None

    def __new__(cls, text: str, finish_reason: str | None) -> Completion:
        """A completion of this text."""
        completion = super().__new__(cls, text)
        completion.finish_reason = finish_reason
        return completion
