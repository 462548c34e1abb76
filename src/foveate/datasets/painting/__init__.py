"""Signs that are painted into photographs of roads: their faces, how a camera sees them, where.

How large signs are, how dark and how blurred, was set by looking at those in training photographs
of the German set, boxes and all. No box is read when signs are painted or learnt from.
"""
