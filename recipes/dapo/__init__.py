"""DAPO: clip-higher, dynamic sampling, token means and a soft overlong punishment (arXiv:2503.14476)."""
