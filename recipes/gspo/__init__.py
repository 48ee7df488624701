"""GSPO: one ratio for a completion, the geometric mean of its tokens' (arXiv:2507.18071)."""
