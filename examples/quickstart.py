"""Connect to a server, and look at what it has.

Needs a server: `rleaas serve`, and RLEAAS_BASE_URL if it is not at http://localhost:8000.
"""

from rleaas import Client

with Client() as client:
    welcome = client.ping()
    print(f"{welcome['message']}, version {welcome['version']}")

    environment = client.Environment.create("FinSim-Look", vertical="FinSim")
    environment.wait_until_ready()

    for one in client.Environment.list():
        print(f"{one.name}@{one.version}  {one.vertical or '-':8} {one.status}")

    for tool in client.Tools.list(env_name="FinSim-Look"):
        print(f"  {tool.name:24} {tool.category or '-':9} {(tool.description or '')[:60]}")
