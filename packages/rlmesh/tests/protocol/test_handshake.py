from dataclasses import replace

import pytest
from rlcore import IncompatibleError
from rlmesh.protocol.handshake import (
    MORE_SPACES,
    SUBSET_STEP,
    YES,
    Hello,
    Peer,
    Welcome,
    accept,
    answer,
    greet,
)

PEER = Peer("rlmesh-env")


def welcome_for(hello: Hello) -> Welcome:
    return answer(hello, declared=None, capabilities={SUBSET_STEP: YES}, peer=PEER)


def test_two_of_us_agree_on_our_edition() -> None:
    welcome = welcome_for(greet(declared=None, peer=PEER))
    assert accept(welcome, declared=None) == "2026.06"
    assert welcome.offers(SUBSET_STEP)


def test_another_generation_is_refused_by_both_names() -> None:
    welcome = welcome_for(replace(greet(declared=None, peer=PEER), generation="rlmesh-wire-v0"))
    assert not welcome.compatible
    with pytest.raises(IncompatibleError, match=r"'rlmesh-wire-v1'.*'rlmesh-wire-v0'"):
        accept(welcome, declared=None)


def test_a_refusal_without_a_reason_still_says_what_we_speak() -> None:
    silent = Welcome(False, (), None, {}, None)
    with pytest.raises(IncompatibleError, match="rlmesh-wire-v1"):
        accept(silent, declared=None)


def test_the_server_leaves_unknown_editions_to_the_client() -> None:
    hello = replace(greet(declared=None, peer=PEER), editions=("2099.01",), preferred="2099.01")
    assert welcome_for(hello).compatible


def test_a_client_without_what_is_demanded_is_told_the_reason() -> None:
    demands = {MORE_SPACES: "the actions of 'E' hold a Graph"}
    published = replace(greet(declared=None, peer=PEER), capabilities={})
    welcome = answer(published, declared=None, capabilities={}, peer=PEER, demands=demands)
    assert not welcome.compatible
    with pytest.raises(IncompatibleError, match=r"the actions of 'E' hold a Graph.*more\.v1"):
        accept(welcome, declared=None)


def test_our_client_has_what_is_demanded() -> None:
    ours = greet(declared=None, peer=PEER)
    welcome = answer(ours, declared=None, capabilities={}, peer=PEER, demands={MORE_SPACES: "x"})
    assert welcome.compatible
