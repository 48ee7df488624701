"""A name for a set of runs, such as that of the folder of their page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from contracts.fingerprint import fingerprint

LONGEST = 80  # characters of a name


def run_set_name(runs: Iterable[str], named: Mapping[str, Iterable[str]], every: Sequence[str]) -> str:
    """The name of a set of runs: the one that it has, or one from its recipes and runs; other sets have other names.

    Args:
        runs: of the set, by name.
        named: sets that have a name.
        every: all runs that there are; a recipe whose runs are all in the set stands for them.
    """
    chosen = set(runs)
    known = {name: set(members) for name, members in named.items()}
    if names := [name for name, members in known.items() if members == chosen]:
        return names[0]
    parts = set()
    for run in chosen:
        recipe = run.partition("/")[0]
        whole = {name for name in every if name.partition("/")[0] == recipe}
        if not whole or not whole <= chosen:
            parts.add(run.replace("/", "_"))
        else:
            parts.add(recipe if known.get(recipe, whole) == whole else f"{recipe}_all")
    first, *others = sorted(parts)
    text = "+".join([first, *others])
    return (
        text if len(text) <= LONGEST or not others else f"{first}+{len(others)}-more-{fingerprint(sorted(chosen))[:8]}"
    )
