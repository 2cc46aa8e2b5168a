"""Try a wheel and an sdist, each in a fresh environment: ``python -m tests.dist FOLDER``, as ``make dist`` does.

Torch and numpy are those of the environment that runs this; nothing else is beside the package.
"""

import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

MOST_BYTES = {".whl": 5_000_000, ".gz": 5_000_000}
USE = """
import sys, torch, gramian
assert gramian.__file__.startswith(sys.prefix), gramian.__file__
features = torch.randn(32, 8, requires_grad=True)
gramian.gram_penalty(features).backward()
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
attached = gramian.attach(model[1], kappa=0.1, inject=True)
model(torch.randn(32, 4)).sum().backward()
print(gramian.__version__)
"""


def main(folder: Path) -> int:
    """Install each archive in ``folder`` without its dependencies, and use the base package."""
    archives = sorted(path for path in folder.iterdir() if path.suffix in MOST_BYTES)
    if [path.suffix for path in archives] != [".whl", ".gz"] and [path.suffix for path in archives] != [".gz", ".whl"]:
        raise SystemExit(f"'{folder}' must hold one wheel and one sdist, not {[path.name for path in archives]}")
    for archive in archives:
        size = archive.stat().st_size
        if size > MOST_BYTES[archive.suffix]:
            raise SystemExit(f"'{archive}' has {size:,} bytes, more than {MOST_BYTES[archive.suffix]:,}")
        with tempfile.TemporaryDirectory() as place:
            venv.create(place, with_pip=True)
            python = Path(place, "bin", "python")
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", archive], check=True)
            (own,) = Path(place).glob("lib/python*/site-packages")
            (own / "theirs.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
            subprocess.run([python, "-I", "-c", USE], check=True)
            subprocess.run([python, "-I", Path(place, "bin", "gramian"), "--version"], check=True)
        print(f"{archive.name}: {size / 1e6:.1f} MB, works")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
