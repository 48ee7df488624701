"""The page of a sweep from its stored results: settings.py, figures.py and, as a command, __main__.py."""
