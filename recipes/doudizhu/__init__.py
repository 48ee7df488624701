"""Endgames of two-player dou dizhu, judged by random playouts or exactly (Zhang's post)."""
