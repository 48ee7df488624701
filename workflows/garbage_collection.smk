# Python's garbage collector looks through all jobs again and again while the graph grows: here it looks less often.

import gc

gc.freeze()
gc.set_threshold(200_000, 50, 100)
