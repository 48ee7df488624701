"""CISPO: the ratio is cut and multiplies the gradient, so that no token is left out (arXiv:2506.13585)."""
