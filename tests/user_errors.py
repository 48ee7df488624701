"""What tests look at of an error that a user can fix: its code and facts, never its sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from system.errors import UserError


@contextmanager
def refused(code: str, **facts: object) -> Iterator[None]:
    """Pass if the block raises a UserError of this code, with at least these facts."""
    with pytest.raises(UserError) as caught:
        yield
    assert caught.value.code == code, f"[{caught.value.code}] {caught.value}"
    assert {name: caught.value.facts.get(name) for name in facts} == facts
    assert str(caught.value).isprintable()


def printed_code(output: str) -> str | None:
    """The code of the error that a command or a workflow has printed last, or None."""
    codes = re.findall(r"\[([a-z]+(?:-[a-z0-9]+)+)\]", output)
    return codes[-1] if codes else None
