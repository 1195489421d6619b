"""The training section of the published README, as far as tests use it: its words, unchanged."""

CONFIG = """{
  "training": [
    
    {
      "training": 1,
      "name": "finsim-ppo-run-007",
      "description": "PPO training run for FinSim baseline.",
      "environment_name": "Demo-FinSim-Env-aks-Demo",
      "agent_id": "",
      "scenario_id": "",
      "verifier_ids": [],
      "algorithm": "PPO",
      "max_steps": 200,
      "episodes": 500,
      "reward_fn": {
        "path": "rewards/finsim_reward.py"
      },
      "simulation": {
        "speed": 1.5,
        "seed": 42,
        "episode_settings": {
          "num_episodes": 500,
          "max_steps": 200
        }
      },
      "config": {
        "learning_rate": 0.0003,
        "batch_size": 128,
        "checkpoint_interval": 100
      }
    },
    {
      "training": 2,
      "name": "finsim-ppo-run-008",
      "description": "PPO training run for FinSim baseline.",
      "environment_name": "Demo-FinSim-Env-aks-Demo",
      "agent_id": "",
      "scenario_id": "",
      "verifier_ids": [],
      "algorithm": "PPO",
      "max_steps": 200,
      "episodes": 500,
      "reward_fn": {
        "path": "rewards/finsim_reward.py"
      },
      "simulation": {
        "speed": 1.5,
        "seed": 43,
        "episode_settings": {
          "num_episodes": 500,
          "max_steps": 200
        }
      },
      "config": {
        "learning_rate": 0.0003,
        "batch_size": 128,
        "checkpoint_interval": 100
      }
    }
  ]
}
"""

LINES = """
python -m rleaas.training_cli start
# status / rerun / operations:
python -m rleaas.training_cli status --job-id <job_id>
Eg: 
python -m rleaas.training_cli status --job-id train_8f3a2b1c
python -m rleaas.training_cli list
python -m rleaas.training_cli list --ids-only
python -m rleaas.training_cli wait --job-id <job_id>
python -m rleaas.training_cli metrics --job-id <job_id>
python -m rleaas.training_cli checkpoints --job-id <job_id>
python -m rleaas.training_cli rollouts --job-id <job_id>
python -m rleaas.training_cli cancel --job-id <job_id>

# if config has multiple training entries:
python -m rleaas.training_cli start --training 3
python -m rleaas.training_cli start --training 3,4,5
python -m rleaas.training_cli start --all
"""
