"""Single moves of gomoku, judged by random playouts or an engine (document 002)."""
