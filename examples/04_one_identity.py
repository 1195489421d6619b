"""Step a registered environment from here, by its name, and get its identity with the result.

Needs a server: `rleaas serve`, and RLEAAS_BASE_URL if it is not at http://localhost:8000.
"""

import rlmesh
from rleaas import Client

with Client() as client:
    client.Environment.create("CartPole-Identity", source="gym://CartPole-v1").wait_until_ready()

# The name is all that is needed: the platform says where it is served, and the handshake
# proves that what is served there is what was registered.
result = rlmesh.run(rlmesh.RANDOM_SAMPLE, "rleaas://CartPole-Identity", seeds=range(5))
print(result)
print("environment:", result.environment)
