"""Signs that are painted into photographs of roads: their faces, how a camera sees them, where."""
