"""Batches of images, wherever they are kept; a model reads nothing but these."""
