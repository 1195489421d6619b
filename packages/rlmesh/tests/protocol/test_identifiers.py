import uuid

from rlmesh.protocol.identifiers import time_ordered_id


def test_an_id_is_a_version_7_uuid_of_this_moment() -> None:
    made = [uuid.UUID(time_ordered_id()) for _ in range(100)]
    assert {one.version for one in made} == {7}
    assert {one.variant for one in made} == {uuid.RFC_4122}
    assert len(set(made)) == 100
    moments = [one.int >> 80 for one in made]
    assert moments == sorted(moments)
