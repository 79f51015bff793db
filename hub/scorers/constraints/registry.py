"""Registry of constraints by id. To add one: a class in a module of this folder and a section in docs/scorers.md.

Constraints are short and share modules, so all modules are imported to list them. A class that states its own `id` is
registered; one that inherits it is a variant of another constraint.
"""

from importlib import import_module
from typing import cast

from hub.common.registry import Registry, defined_classes, module_names
from hub.scorers.constraints.base import Constraint

CONSTRAINTS: Registry[type[Constraint]] = Registry("instruction")
for module in module_names(__package__):
    for found in defined_classes(import_module(f"{__package__}.{module}"), Constraint):
        constraint = cast(type[Constraint], found)
        if "id" in vars(constraint):
            CONSTRAINTS.register(constraint.id, constraint)
