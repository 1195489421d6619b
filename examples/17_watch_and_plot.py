"""Train, watch the learning curve while it rises, and keep it as a picture.

Needs a server: `rleaas serve`, and RLEAAS_BASE_URL if it is not at http://localhost:8000; and
`pip install 'rleaas[cli,plot,track]'`.
"""

import tempfile
from pathlib import Path

from rleaas import Client

with Client() as client:
    environment = client.Environment.create("CartPole-Watched", source="gym://CartPole-v1")
    environment.wait_until_ready()

    job = client.TrainingJob.run(
        environment,
        algorithm="PPO",
        config={
            "episodes": 60,
            "n_steps": 128,
            "batch_size": 64,
            # Files for `tensorboard --logdir`; what it costs when it fails is points of its chart.
            "tracking": {"tensorboard": True},
        },
        seed=7,
    )
    # A live table and curve, here or below a notebook's cell; Ctrl-C leaves the job running.
    job.watch()
    print(job.id, "is", job.status)

    # Also while it runs: dots are episodes, the line their mean, the band one standard deviation.
    picture = Path(tempfile.mkdtemp()) / "curve.png"
    job.plot(picture, window=10)
    print("curve:", picture)
    print("trackers:", job.results.get("tracking"))
