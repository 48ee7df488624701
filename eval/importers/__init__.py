"""Generations made elsewhere, as tables of samples: to be graded and compared under our protocol."""
