"""Is this checkpoint better than the baseline? Paired, by problem, corrected for several benchmarks, with a verdict."""
