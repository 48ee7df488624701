"""Generations made elsewhere, turned into tables of samples, to be graded and compared under our protocol."""
