"""DeepScaleR: completions that may be longer in each stage, 8, 16 and 24 thousand tokens."""
