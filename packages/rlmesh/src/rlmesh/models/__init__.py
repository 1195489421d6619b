"""Models: what turns an observation into an action, and how one is made from anything that can."""
