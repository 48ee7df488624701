"""The sections of the report, one file each; analysis.report.section says what is in one."""
