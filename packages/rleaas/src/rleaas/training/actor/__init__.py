"""The policy networks of our own trainers: what they see, how they act."""
