"""Who may import whom: the contract holds, and notices when it is broken."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {"matplotlib", "numba", "pandas", "plotly", "polars", "ray", "scipy", "stable_baselines3"}


BREACHES = {
    "penalties.py": ["gramian.cli", "rich"],
    "attach/reach.py": ["gramian.deep.agent.learner"],
    "deep/agent/learner.py": ["scipy", "numba"],
    "core/errors.py": ["torch"],
}


def test_the_linter_notices_every_breach_of_the_contract(tmp_path):
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src" / "gramian", tmp_path / "gramian")
    for path, modules in BREACHES.items():
        with (tmp_path / "gramian" / path).open("a") as file:
            file.writelines(f"\nimport {module}" for module in modules)
    linter = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([linter, "--no-cache"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    for path, modules in BREACHES.items():
        importer = "gramian." + path.removesuffix(".py").replace("/", ".")
        assert all(f"{importer} -> {module}" in done.stdout for module in modules)


def test_every_module_has_its_place_in_the_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    placed = {name.strip(" ()").split(".")[1] for layer in layers for name in layer.split("|")}
    modules = {
        path.stem
        for path in (ROOT / "src" / "gramian").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert modules - {"__init__"} <= placed


def third_party(statement):
    """Top-level packages outside the standard library that a statement loads."""
    probe = (
        f"import sys; {statement}\n"
        "names = {name.partition('.')[0] for name in sys.modules if not name.startswith('_')}\n"
        "print(*sorted(names - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


def test_penalties_and_drop_in_load_torch_and_numpy_alone():
    ours = third_party("import gramian.penalties, gramian.attach")
    assert ours - third_party("import torch, numpy") == {"gramian"}


def test_the_base_package_has_nothing_that_python_3_10_lacks():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (alone,) = (
        contract["source_modules"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"].endswith("need torch and numpy alone")
    )
    modules = [
        ROOT / "src" / module.replace(".", "/") for module in ("gramian.__init__", "gramian.cli.__init__", *alone)
    ]
    places = [str(module if module.is_dir() else module.with_suffix(".py")) for module in modules]
    vermin = Path(sys.executable).parent / "vermin"
    found = subprocess.run(
        [vermin, "-t=3.10-", "--eval-annotations", "--no-tips", *places], capture_output=True, text=True
    )
    assert project["project"]["requires-python"] == ">=3.10"
    assert found.returncode == 0, found.stdout


def test_the_training_path_loads_nothing_heavy():
    loaded = third_party("import gramian.cli.train, gramian.deep.envs.atari, gramian.deep.envs.minatar")
    assert not loaded & HEAVY


@pytest.mark.slow
def test_atari_is_trained_without_numba(tmp_path):
    command = ["train", "--game", "pong", "--arm", "dqn", "--preset", "tiny", "--device", "cpu"]
    script = (
        "import sys; sys.modules['numba'] = None; from gramian.cli import main; "
        f"sys.exit(main({[*command, '--out', str(tmp_path / 'out')]!r}))"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)
