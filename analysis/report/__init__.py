"""The report: tables, figures, sample browser and one page, from stored results."""
