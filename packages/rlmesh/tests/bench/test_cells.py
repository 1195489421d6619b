from rlmesh.bench.cells import IN_PROCESS, Carrier, Cell, Subject, carriers, cells, rounds

NOOP = Subject("noop", 100, source="a:noop")
FAR = Subject("far", 100, address="tcp://far:1")


def test_each_way_is_measured_once_whatever_was_dialled() -> None:
    assert carriers(["local", "tcp", "grpc"], ["tcp", "unix"]) == [
        Carrier("local", "unix"),
        Carrier("tcp", "tcp"),
        Carrier("grpc", "tcp"),
        Carrier("grpc", "unix"),
    ]


def test_the_fast_lane_over_tcp_needs_a_server_that_is_dialled_by_tcp() -> None:
    assert carriers(["tcp", "grpc"], ["unix"]) == [Carrier("grpc", "unix")]


def test_in_process_there_is_one_client_and_an_environment_to_make() -> None:
    grpc = Carrier("grpc", "tcp")

    assert cells([NOOP, FAR], [IN_PROCESS, grpc], [1, 4]) == [
        Cell(NOOP, IN_PROCESS, 1),
        Cell(NOOP, grpc, 1),
        Cell(NOOP, grpc, 4),
        Cell(FAR, grpc, 1),
        Cell(FAR, grpc, 4),
    ]


def test_every_round_has_every_cell_and_starts_at_another_carrier() -> None:
    ways = [IN_PROCESS, Carrier("grpc", "tcp"), Carrier("grpc", "unix")]
    all_cells = cells([NOOP, Subject("image", 5, source="a:image")], ways, [1])

    order = list(rounds(all_cells, 3))

    for number in range(3):
        mine = [cell for found, cell in order if found == number]
        assert set(mine) == set(all_cells)
        assert [cell.subject.name for cell in mine] == ["noop"] * 3 + ["image"] * 3
        assert [cell.carrier for cell in mine[:3]] == ways[number:] + ways[:number]


def test_a_cell_says_what_is_measured() -> None:
    assert str(Cell(NOOP, Carrier("grpc", "unix"), 16)) == "noop, gRPC over unix x 16 clients"
    assert str(Cell(NOOP, IN_PROCESS)) == "noop, in process"
