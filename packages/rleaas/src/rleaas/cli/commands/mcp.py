"""`rleaas mcp`."""

from __future__ import annotations

from rleaas.cli.options import BaseUrl, Key, ProfileName


def mcp(base_url: BaseUrl = None, api_key: Key = None, profile: ProfileName = None) -> None:
    """Serve the platform's observability tools to an agent, over standard input and output.

    The tools list environments, their figures, jobs and health, and change nothing. In the
    settings of the agent's program the command is `rleaas mcp`, as a server of the Model Context
    Protocol.
    """
    import anyio

    from rleaas import AsyncClient
    from rleaas.cli.mcp_server import serve

    async def answer() -> None:
        async with AsyncClient(base_url=base_url, api_key=api_key, profile=profile) as client:
            await serve(client)

    anyio.run(answer)
