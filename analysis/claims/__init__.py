"""The claims of the published documents, and what stored results say of each."""
