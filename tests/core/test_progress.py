from gramian.core.progress import Progress


def test_without_a_terminal_lines_come_at_the_interval_and_at_the_end(capsys):
    now = [0.0]
    with Progress(10, "work", unit="run", interval_s=5, clock=lambda: now[0]) as progress:
        for _ in range(10):
            now[0] += 2.0
            progress.advance(note="error 0.5")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "work: 3 of 10 runs (30%), 14 s left, error 0.5",
        "work: 6 of 10 runs (60%), 8 s left, error 0.5",
        "work: 9 of 10 runs (90%), 2 s left, error 0.5",
        "work: 10 of 10 runs (100%), took 20 s, error 0.5",
    ]


def test_the_estimate_of_resumed_work_counts_only_this_process():
    now = [0.0]
    with Progress(100, "work", done=50, clock=lambda: now[0]) as progress:
        assert progress.remaining_s() is None
        now[0] = 10.0
        progress.advance(10)
        assert progress.remaining_s() == 40.0
