"""What people import into their own code has an example in the API reference; pytest runs all of them as doctests."""

import importlib
import inspect
import re
from types import ModuleType

import pytest

from tests.docs.pages import ROOT, blocks

PAGES = sorted((ROOT / "docs" / "api").glob("*.md"))
DIRECTIVE = re.compile(r"^::: (\S+)\n((?: {4}.*\n)*)", re.MULTILINE)
LIBRARY = [page for page in PAGES if page.stem in ("index", "attach", "penalties", "representation")]
PACKAGES = ["gramian", *(f"gramian.{name}" for name in ("linear", "deep", "representation", "report"))]


def resolve(identifier):
    """The object behind a dotted name; a module where the name is one."""
    parts = identifier.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute)
        # gramian.report.build and gramian.attach are functions that share their module's name.
        return getattr(found, parts[-1]) if isinstance(found, ModuleType) and hasattr(found, parts[-1]) else found
    raise AssertionError(f"there is no {identifier}")


def documented(page):
    """Functions and classes that a page of the reference shows, by name."""
    shown = {}
    for identifier, options in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
        found = resolve(identifier)
        if not isinstance(found, ModuleType):
            shown[identifier] = found
            continue
        members = re.search(r"members: (false|\[.*?\])", options)
        names = re.findall(r"\w+", members[1].strip("[]")) if members else [n for n in vars(found) if n[0] != "_"]
        for name in names if members is None or members[1] != "false" else []:
            member = getattr(found, name)
            if getattr(member, "__module__", None) == found.__name__:
                shown[f"{found.__name__}.{name}"] = member
    return shown


SHOWN = {page: documented(page) for page in PAGES}


def examples(text):
    return "\n".join(line for line in (text or "").splitlines() if line.strip().startswith((">>>", "...")))


def public_methods(kind):
    return [name for name, member in vars(kind).items() if not name.startswith("_") and inspect.isfunction(member)]


@pytest.mark.parametrize("page", LIBRARY, ids=lambda page: page.stem)
def test_every_function_of_the_reference_has_an_example(page):
    functions = {name: found for name, found in SHOWN[page].items() if inspect.isfunction(found)}
    functions = {name: found for name, found in functions.items() if ".measures." not in name}  # alike, of a line each
    assert [name for name, function in functions.items() if not examples(function.__doc__)] == []


@pytest.mark.parametrize("page", LIBRARY, ids=lambda page: page.stem)
def test_every_method_of_the_reference_is_used_in_an_example(page):
    classes = {name: found for name, found in SHOWN[page].items() if inspect.isclass(found)}
    methods = {
        f"{name}.{method}": getattr(kind, method) for name, kind in classes.items() for method in public_methods(kind)
    }
    used = "\n".join(examples(found.__doc__) for found in (*SHOWN[page].values(), *methods.values()))
    assert [name for name in methods if f".{name.rpartition('.')[2]}(" not in used] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package):
    module = importlib.import_module(package)
    shown = {id(found) for page in PAGES for found in SHOWN[page].values()}
    missing = []
    for name in module.__all__:
        found = resolve(f"{package}.{name}")
        if (inspect.isfunction(found) or inspect.isclass(found)) and id(found) not in shown:
            missing.append(name)
    assert missing == []


@pytest.mark.parametrize("page", ["docs/index.md", "docs/penalties.md", "docs/api/index.md"])
def test_the_python_of_a_page_runs(page):
    """As far as it stands on its own: what takes a model or an environment for granted is tested as a recipe."""
    code = blocks((ROOT / page).read_text(encoding="utf-8"), "python")
    for block in [block for block in code if "import" in block]:
        exec(compile(block, page, "exec"), {})


@pytest.mark.slow
def test_the_one_line_of_the_readme_trains_in_stable_baselines3():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.envs import FakeImageEnv

    (block,) = blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python")
    names = {"env": FakeImageEnv(screen_height=40, screen_width=40, n_channels=1)}
    exec(compile(block.replace("5_000_000", "120"), "README.md", "exec"), names)
    (hook,) = names["model"].q_net.features_extractor._forward_hooks.values()
    assert hook.__self__.last.value > 0
