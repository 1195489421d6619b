from rlmesh.protocol.episodes import UNREPORTED_LIMIT, EpisodeLedger


def test_a_finished_episode_is_nobodys_to_report_again() -> None:
    ledger = EpisodeLedger()
    ledger.begin("a", 7, now_ns=10)
    episode = ledger.running
    assert episode is not None
    ledger.end(episode, terminated=True, truncated=False, now_ns=20)
    assert (episode.terminated, episode.truncated, episode.ended_ns) == (True, False, 20)
    assert ledger.running is None
    assert ledger.close(now_ns=30) == []


def test_a_reset_over_a_running_episode_ends_it_truncated() -> None:
    ledger = EpisodeLedger()
    ledger.begin("a", None, now_ns=1)
    ledger.begin("b", None, now_ns=2)
    (cut,) = ledger.take_unreported()
    assert (cut.episode_id, cut.truncated, cut.terminated, cut.ended_ns) == ("a", True, False, 2)
    assert ledger.take_unreported() == []


def test_closing_reports_what_runs_and_what_nobody_reported() -> None:
    ledger = EpisodeLedger()
    ledger.begin("a", None, now_ns=1)
    ledger.begin("b", 5, now_ns=2)
    assert [one.episode_id for one in ledger.close(now_ns=3)] == ["a", "b"]


def test_a_caller_that_only_resets_is_remembered_in_part() -> None:
    ledger = EpisodeLedger()
    for number in range(UNREPORTED_LIMIT + 10):
        ledger.begin(str(number), None, now_ns=number)
    episodes = ledger.close(now_ns=0)
    assert len(episodes) == UNREPORTED_LIMIT
    assert episodes[-1].episode_id == str(UNREPORTED_LIMIT + 9)
