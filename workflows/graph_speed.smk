# The graph of a thousand jobs is built faster: Python's garbage collector looks through all jobs less often, and the
# arguments of each function are looked at once instead of for every job.

import gc

from cluster.snakemake_internals import cache_signatures

gc.freeze()
gc.set_threshold(200_000, 50, 100)
cache_signatures(workflow.rules)
