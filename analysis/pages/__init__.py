"""Pages, their figures and tables: the style of all, and how they are written."""
