# Snakemake looks at the arguments of each function again for every job; here they are looked at once.

import inspect

from snakemake.common import overwrite_function_params

for known in workflow.rules:
    for item in (*known.input, *known.params, *known.resources.values()):
        function = getattr(getattr(item, "_file", item), "callable", None) or item
        if inspect.isfunction(function):
            overwrite_function_params(function, inspect.signature(function).parameters)
