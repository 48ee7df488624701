"""Single moves of gomoku, judged by random playouts or an engine (Zhang's post)."""
