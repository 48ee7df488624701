# Snakemake looks at the arguments of each function again for every job; here they are looked at once.

import inspect

from snakemake.common import overwrite_function_params
from snakemake.resources import Resource


def function_of(item):
    """The function in an input, a parameter or a resource of a rule, or what is there instead."""
    inner = getattr(item, "_evaluator", None) or getattr(item, "_file", item)
    return getattr(inner, "callable", None) or inner


for known in workflow.rules:
    for item in (*known.input, *known.params, *known.resources.values()):
        if inspect.isfunction(function := function_of(item)):
            overwrite_function_params(function, inspect.signature(function).parameters)
overwrite_function_params(
    Resource.evaluate, inspect.signature(Resource.evaluate).parameters
)
