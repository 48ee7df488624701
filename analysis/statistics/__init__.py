"""Statistics that the report, the comparisons and the claims share."""
