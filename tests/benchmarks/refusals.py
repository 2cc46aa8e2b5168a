"""What benchmarks say when they are asked for what cannot be done."""


def refusal(program, arguments, capsys):
    """The one line that a benchmark says, with exit code 2, of arguments that it refuses."""
    try:
        code = program.main(arguments)
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line
