"""Language models behind one protocol, over the official clients."""

from rleaas.llm.anthropic_chat import AnthropicChat
from rleaas.llm.chat import Chat, Reply, ToolRequest
from rleaas.llm.directory_cache import DirectoryCache
from rleaas.llm.endpoint import ModelEndpoint, chat_of
from rleaas.llm.openai_chat import OpenAIChat
from rleaas.llm.pinned import Pinned

__all__ = [
    "AnthropicChat",
    "Chat",
    "DirectoryCache",
    "ModelEndpoint",
    "OpenAIChat",
    "Pinned",
    "Reply",
    "ToolRequest",
    "chat_of",
]
