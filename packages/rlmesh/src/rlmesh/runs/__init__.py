"""The evaluation loop: whole episodes of a model on an environment, with typed outcomes."""
