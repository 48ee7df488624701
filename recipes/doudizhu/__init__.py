"""Endgames of two-player dou dizhu, judged by random playouts or exactly (document 002)."""
