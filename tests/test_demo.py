from gramian.cli import main


def test_the_demo_shows_a_row_for_each_penalty(capsys):
    assert main(["demo", "--steps", "5", "--seeds", "2"]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "±" in line]
    assert rows == ["none", "gram", "norm"]
