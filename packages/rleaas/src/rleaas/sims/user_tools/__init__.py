"""Tools that users bring into a world: declared effects, HTTP endpoints, OpenAPI descriptions."""

from rleaas.sims.user_tools.reading import BEHAVIOUR, acts, endpoints_of, read_tools, tools_of

__all__ = ["BEHAVIOUR", "acts", "endpoints_of", "read_tools", "tools_of"]
