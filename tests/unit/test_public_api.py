"""`queues` lists its exports for type checkers and for lazy imports: both lists agree."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import queues


def typed() -> dict[str, str]:
    source = Path(str(queues.__file__)).read_text("utf-8")
    block = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_each_name_is_what_type_checkers_take_it_for() -> None:
    assert sorted(queues.__all__) == sorted(typed())
    for name, module in typed().items():
        assert getattr(queues, name) is getattr(import_module(module), name), name


def test_a_name_loads_no_more_than_its_module_needs() -> None:
    program = "import sys; from queues import encode; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {name for name in done.stdout.split() if name.startswith("queues")} == {
        "queues",
        "queues.model",
        "queues.model.codec",
    }


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(queues, "Crew")


def test_each_error_that_a_caller_may_catch_is_public() -> None:
    errors = {name for name, value in vars(import_module("queues.model.errors")).items() if is_error(value)}
    assert errors <= set(queues.__all__)


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, queues.QueueError)
