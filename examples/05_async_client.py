"""The same client with `await`: several environments come up at once.

Needs a server: `rleaas serve`, and RLEAAS_BASE_URL if it is not at http://localhost:8000.
"""

import anyio
from rleaas import AsyncClient


async def bring_up(client: AsyncClient, name: str, source: str) -> None:
    environment = await client.Environment.create(name, source=source)
    await environment.wait_until_ready(timeout=60)
    print(environment.name, environment.status)


async def main() -> None:
    async with AsyncClient() as client, anyio.create_task_group() as group:
        group.start_soon(bring_up, client, "Async-CartPole", "gym://CartPole-v1")
        group.start_soon(bring_up, client, "Async-Acrobot", "gym://Acrobot-v1")


anyio.run(main)
