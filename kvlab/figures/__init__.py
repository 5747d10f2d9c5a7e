"""Figures: pure functions from results to pictures, in one visual language."""
