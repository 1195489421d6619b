"""Train an agent to run the AML check: GRPO on FinSim, watched while it learns.

Needs a server: `rleaas serve`, and RLEAAS_BASE_URL if it is not at http://localhost:8000; and
`pip install 'rleaas[cli,plot]'`. EPISODES and SEED may be set.
"""

import os
import tempfile
from pathlib import Path

from rleaas import Client

NAME = "FinSim-Prod-v1"

with Client() as client:
    environment = client.Environment.create(NAME, vertical="FinSim")
    environment.wait_until_ready()

    verifier = client.Verifier.create(
        name="AML Compliance Check",
        verifier_type="rule_based",
        environment=NAME,
        config={
            "conditions": ["'run_aml_check' in trajectory.tool_calls"],
            "condition_logic": "AND",
            "reward_on_pass": 1.0,
            "reward_on_fail": 0.0,
        },
    )
    job = client.TrainingJob.run(
        environment_name=NAME,
        algorithm="GRPO",
        config={
            "episodes": int(os.environ.get("EPISODES", "10000")),
            "max_steps_per_episode": 20,
        },
        verifier_ids=[verifier.id],
        seed=int(os.environ.get("SEED", "7")),
    )
    # A live table and curve, here or below a notebook's cell; Ctrl-C leaves the job running.
    job.watch()

    picture = Path(tempfile.mkdtemp()) / "finsim.png"
    job.plot(picture)
    best = job.get_best_checkpoint()
    print(f"{job.id} is {job.status}; curve: {picture}")
    print(f"best checkpoint {best.id}: episode {best.episode}, mean return {best.avg_reward:.2f}")
