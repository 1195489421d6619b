"""The published protocol generation: protos and what they compile to. Regenerate, never edit."""
