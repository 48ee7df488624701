"""Exit statuses with a meaning, for whoever decides whether a job is worth another attempt."""

RESUMABLE = 75  # EX_TEMPFAIL of sysexits.h: stopped in time with its work saved; the same command continues it
