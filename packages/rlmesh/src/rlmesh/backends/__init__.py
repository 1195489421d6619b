"""Array libraries: what decoded values become in each, and how theirs become what travels."""
