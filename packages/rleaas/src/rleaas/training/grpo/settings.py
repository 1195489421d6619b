"""The request of a GRPO training with every default filled in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from rleaas.training.actor.network import NET_ARCH
from rleaas.training.config import TrainingConfig
from rleaas.training.grpo.loss import EPISODE

SESSIONS = 16
"""Sessions side by side when the request does not say how many."""

INITIAL = "initial"
PREVIOUS = "previous"
OUTCOME = "outcome"
REWARD_TO_GO = "reward_to_go"


@dataclass(frozen=True, kw_only=True)  # no slots: the class has the defaults
class Settings:
    """How groups are played and learned from.

    Attributes:
        group_size: episodes that share one start.
        groups_per_update: groups that one update rests on.
        n_epochs: passes over their steps.
        batch_size: steps of one gradient step.
        learning_rate: of Adam; it falls to zero with the episodes that are left where `linear`.
        linear: whether it falls.
        clip_range: how far below 1 a step's ratio of probabilities may count.
        clip_range_high: how far above 1; as `clip_range` unless given (DAPO, arXiv 2503.14476).
        kl_coef: weight of the distance to the reference policy.
        reference: `initial`, the weights that the training began with (of the checkpoint that it
            was started from, if any); or `previous`, those before each update.
        ent_coef: weight of the entropy bonus. Not 0 by default, as in the paper: where a group's
            returns are all the same there is nothing to learn from, and a policy that has become
            sure of one call before it ever met the end of its task repeats it for good.
        max_grad_norm: longest gradient.
        length_normalization: `episode` or `constant`, see `loss.step_weights`.
        std_normalization: whether a group's advantages are divided by its standard deviation.
        credit: `outcome`, every step gets its episode's whole return; or `reward_to_go`, every
            step gets what followed it.
        gamma: the discount of `reward_to_go`; an outcome is not discounted.
        net_arch: widths of the network's layers.
    """

    group_size: int = 8
    groups_per_update: int = 4
    n_epochs: int = 4
    batch_size: int = 256
    learning_rate: float = 3e-3
    linear: bool = False
    clip_range: float = 0.2
    clip_range_high: float = 0.2
    kl_coef: float = 0.0
    reference: str = INITIAL
    ent_coef: float = 0.005
    max_grad_norm: float = 1.0
    length_normalization: str = EPISODE
    std_normalization: bool = True
    credit: str = OUTCOME
    gamma: float = 0.99
    net_arch: tuple[int, ...] = NET_ARCH

    @classmethod
    def settle(cls, config: TrainingConfig, saved_net_arch: tuple[int, ...] | None) -> Settings:
        """What was asked for, and the defaults for what was not."""
        clip = config.number("clip_range", cls.clip_range)
        return cls(
            group_size=config.count("group_size", cls.group_size),
            groups_per_update=config.count("groups_per_update", cls.groups_per_update),
            n_epochs=config.count("n_epochs", cls.n_epochs),
            batch_size=config.count("batch_size", cls.batch_size),
            learning_rate=config.number("learning_rate", cls.learning_rate),
            linear=config.word("learning_rate_schedule", "constant") == "linear",
            clip_range=clip,
            clip_range_high=config.number("clip_range_high", clip),
            kl_coef=config.number("kl_coef", cls.kl_coef),
            reference=config.word("reference", cls.reference),
            ent_coef=config.number("ent_coef", cls.ent_coef),
            max_grad_norm=config.number("max_grad_norm", cls.max_grad_norm),
            length_normalization=config.word("length_normalization", cls.length_normalization),
            std_normalization=config.flag("std_normalization", cls.std_normalization),
            credit=config.word("credit", cls.credit),
            gamma=config.number("gamma", cls.gamma),
            net_arch=saved_net_arch or config.widths(cls.net_arch),
        )

    def to_dict(self) -> Mapping[str, object]:
        """As a checkpoint's card tells them."""
        return {**asdict(self), "net_arch": list(self.net_arch)}
