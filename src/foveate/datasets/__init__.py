"""Data sets: labelled images of any size, in the same shape whatever they come from."""
