"""Group-relative policy optimisation."""
