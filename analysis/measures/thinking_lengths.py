"""Lengths of the thinking and the answer part of completions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

THINKING_ENDS = "</think>"


def split_tokens(completions: pa.Array | pa.ChunkedArray, tokens: pd.Series) -> pd.DataFrame:
    """Length in tokens of the thinking part and of the answer part of each completion: columns thinking and answer.

    The tokens of a completion are divided in proportion to its characters before and after the first `</think>`.
    Completions without one, or of unknown length, have NaN.
    """
    position = pc.find_substring(completions, THINKING_ENDS).to_numpy(zero_copy_only=False).astype(float)
    whole = pc.binary_length(completions).to_numpy(zero_copy_only=False).astype(float) - len(THINKING_ENDS)
    count = pd.to_numeric(tokens, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    share = np.where((position >= 0) & (whole > 0), position / np.where(whole > 0, whole, 1), np.nan)
    return pd.DataFrame({"thinking": share * count, "answer": (1 - share) * count}, index=tokens.index)
