"""Checks of seeds: what they settle, in one instance, in another, and elsewhere."""

from __future__ import annotations

from rlcore import Error, SessionBusy

from rlmesh.conformance.evidence import Evidence, need, unseen
from rlmesh.conformance.recording import Departure, Recording, departure, info_departure
from rlmesh.conformance.stage import Raised
from rlmesh.conformance.verdicts import Finding, Place, failed, noted, passed, skipped

SEEDING = "Call super().reset(seed=seed) first, and draw only from self.np_random."
UNSETTLED = "the seed does not settle a play; see seed_honoured"


def seed_honoured(evidence: Evidence) -> Finding:
    """The same seed and actions give the same play, in two instances."""
    mine = evidence.recording
    if evidence.second.unmade is not None:
        return skipped("there is no second instance; see made_again")
    its = need(evidence.second.recording)
    apart = departure(mine, its)
    where = "two instances, one after the other"
    if apart is not None:
        return failed(f"in {where}, {apart.text}", SEEDING, apart.place)
    if not mine.steps:
        return skipped("no step was taken; see plays")
    return passed(f"{where}, gave the same {mine.steps} steps")


def second_episode(evidence: Evidence) -> Finding:
    """A seeded reset gives the same play again, in the same instance."""
    if _unsettled(evidence):
        return skipped(UNSETTLED)
    apart = departure(evidence.recording, need(evidence.first.again))
    if apart is not None:
        fix = "Set everything that an episode changes in reset, not in __init__."
        return failed(f"after other episodes, {apart.text}", fix, apart.place)
    return passed("the same play came back after other episodes")


def seeds_differ(evidence: Evidence) -> Finding:
    """Other seeds give other plays."""
    recordings = list(evidence.first.recordings.values())
    if len(evidence.seeds) < 2:
        return skipped("one seed tells nothing; give two at least")
    if len(recordings) < len(evidence.seeds):
        need(None)
    if _unsettled(evidence):
        return skipped(UNSETTLED)
    different = len({_content(recording) for recording in recordings})
    if different > 1:
        return passed(f"{len(recordings)} seeds gave {different} different plays")
    told = set(evidence.first.generator_seeds.values())
    if len(told) == 1 and isinstance(next(iter(told)), int):
        what = f"np_random has the seed {next(iter(told))} after every seeded reset"
        return failed(f"all seeds gave the same play, and {what}", SEEDING, _start(recordings))
    return noted(
        f"all {len(recordings)} seeds gave the same play",
        "Fine for an environment in which nothing is random.",
        _start(recordings),
    )


def unseeded_reset(evidence: Evidence) -> Finding:
    """Resets without a seed go on from where the seeded one began."""
    if _unsettled(evidence):
        return skipped(UNSETTLED)
    seen = evidence.first.unseeded
    if seen is None:
        raise unseen()
    if isinstance(seen, Raised):
        return failed(str(seen), "reset() has to work without a seed.")
    half = len(seen) // 2
    if seen[:half] != seen[half:]:
        fix = "Make no new generator where seed is None: a training could not be repeated."
        return noted("reset() after reset(seed) starts differently each time", fix)
    return passed("reset() after reset(seed) starts the same each time")


def infos_repeat(evidence: Evidence) -> Finding:
    """The infos of the same play are the same."""
    if _unsettled(evidence) or evidence.second.recording is None:
        return skipped(UNSETTLED)
    apart = info_departure(evidence.recording, evidence.second.recording)
    if apart is not None:
        fix = "Fine for timings; anything else in an info should follow from the seed."
        return noted(f"in two instances, {apart.text}", fix, apart.place)
    return passed("the infos of two instances are the same")


def threads(evidence: Evidence) -> Finding:
    """Two instances, played in two threads at once, give what each gives alone."""
    if evidence.subject.borrowed:
        return skipped("there is one instance only; give a factory, module:attribute or an id")
    if _unsettled(evidence):
        return skipped(UNSETTLED)
    both = evidence.side_by_side()
    if isinstance(both, Error):
        return skipped(f"there cannot be two at once: {both.message}")
    plays: list[Recording] = need(both)
    if any(isinstance(play.cause, SessionBusy) for play in plays):
        return skipped("the server lets one client in at a time: it serves an instance")
    apart = _first_of([departure(evidence.recording, play) for play in plays])
    if apart is not None:
        fix = "Keep state in the instance: no globals, no class attributes, no np.random.seed."
        return failed(f"played in two threads at once, {apart.text}", fix, apart.place)
    return passed("two instances in two threads gave the same plays as alone")


def other_thread(evidence: Evidence) -> Finding:
    """An instance can be played in another thread than the one that made it."""
    bound = need(evidence.first.face).said.get("thread_bound")
    if bound:
        return skipped('its metadata says "thread_bound": True')
    if evidence.subject.borrowed:
        return skipped("the instance was made by the caller; give a factory")
    if _unsettled(evidence):
        return skipped(UNSETTLED)
    moved = need(evidence.moved())
    apart = departure(evidence.recording, moved)
    if apart is None:
        return passed("played in a thread that did not make it, it gave the same")
    if bound is None:
        fix = 'Say "thread_bound": True in its metadata if it has to stay where it was made.'
        return noted(f"in a thread that did not make it, {apart.text}", fix, apart.place)
    fix = 'Its metadata says "thread_bound": False: mend either.'
    return failed(f"in a thread that did not make it, {apart.text}", fix, apart.place)


def processes(evidence: Evidence) -> Finding:
    """Another process gives the same play."""
    if evidence.subject.source is None:
        return skipped("another process can only make what is named: module:attribute, or an id")
    if _unsettled(evidence):
        return skipped(UNSETTLED)
    mine, its = evidence.recording, evidence.elsewhere()
    fix = "Look for the order of sets, hash(), id(), the time, and generators seeded at import."
    if its.digest is None:
        return failed(
            f"in another process: {its.problem}", "It has to be made and played anywhere."
        )
    if its.digest != mine.digest:
        return failed(
            f"another process gave the trajectory {its.digest[:12]}, this one {mine.digest[:12]}",
            fix,
            _start([mine]),
        )
    return passed(f"another process gave the same trajectory ({mine.digest[:12]})")


def _unsettled(evidence: Evidence) -> bool:
    """Tell whether seeds settle nothing, so that what follows from them cannot be judged."""
    its = evidence.second.recording
    if its is None:
        return evidence.second.unmade is None
    return departure(evidence.recording, its) is not None


def _content(recording: Recording) -> tuple[bytes, ...]:
    return tuple(moment.observation + moment.outcome for moment in recording.moments)


def _first_of(departures: list[Departure | None]) -> Departure | None:
    return next((apart for apart in departures if apart is not None), None)


def _start(recordings: list[Recording]) -> Place | None:
    return recordings[0].moments[0].place if recordings[0].moments else None
