"""Errors in the words of a terminal: `--group=7`, where Python's name is `q_group_size`."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kvlab.errors import InvalidArgument


@contextmanager
def in_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """Let an `InvalidArgument` raised inside name a flag in place of Python's argument.

    `flags` maps an argument to its flag. In the rule, names with an underscore are replaced, and
    so is `name='value'`; plain words such as "budget" stay.

    >>> with in_flags({"q_group_size": "--group", "granularity": "--granularity"}):
    ...     raise InvalidArgument("q_group_size", 8, "there are none; say granularity='group'")
    Traceback (most recent call last):
    kvlab.errors.InvalidArgument: --group=8: there are none; say --granularity group
    """
    try:
        yield
    except InvalidArgument as error:
        argument = flags.get(error.argument, error.argument)
        raise InvalidArgument(argument, error.value, rule_in_flags(error.rule, flags)) from None


def rule_in_flags(rule: str, flags: Mapping[str, str]) -> str:
    """Return a rule with flags for Python's names.

    >>> rule_in_flags("say granularity='group'", {"granularity": "--granularity"})
    'say --granularity group'
    >>> rule_in_flags("the fp8 cache takes nbits, granularity", {"granularity": "--granularity"})
    'the fp8 cache takes nbits, --granularity'
    """
    before, takes, listed = rule.partition(" cache takes ")
    if takes:  # a list of options
        return before + takes + ", ".join(flags.get(name, name) for name in listed.split(", "))

    def replaced(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        if name not in flags or not (value or "_" in name):
            return found.group()
        return f"{flags[name]} {value}" if value else flags[name]

    return re.sub(r"(?<![\w-])(?P<name>[a-z_]+)(?:='(?P<value>\w+)')?", replaced, rule)
