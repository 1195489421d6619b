"""Register an environment, train on it, and evaluate what came out.

Needs a server: `rleaas serve`, and RLEAAS_BASE_URL if it is not at http://localhost:8000.
"""

from rleaas import Client

with Client() as client:
    environment = client.Environment.create("CartPole-Train", source="gym://CartPole-v1")
    environment.wait_until_ready()
    print("registered", environment.name, environment.contract_digest)

    job = client.TrainingJob.run(
        environment_name="CartPole-Train",
        algorithm="PPO",
        config={"episodes": 60, "n_steps": 128, "batch_size": 64, "checkpoint_interval": 20},
    )
    job.wait_until_complete(
        poll_interval=0.5,
        on_progress=lambda seen: print(seen["status"], seen["progress"], seen["avg_reward"]),
    )
    for checkpoint in job.list_checkpoints():
        print(checkpoint.id, "episode", checkpoint.episode, "mean", checkpoint.avg_reward)

    evaluation = client.Evaluation.run(job.get_best_checkpoint().id, seeds=range(10))
    report = evaluation.wait_until_complete(poll_interval=0.5)
    print(f"{report.scored} of {report.asked} episodes scored")
    print("mean return", report.mean_return, "95 % interval", report.return_interval)
