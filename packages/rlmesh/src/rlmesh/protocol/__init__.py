"""The rules of the conversation, without any input or output; both sides obey them."""
