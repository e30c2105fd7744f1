"""A parser of the command line that answers a mistake in one sentence, with what was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from spmdlint.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

HELP_ALL = "--help-all"

_CHOICE = re.compile(r"argument (?P<name>[^:]+): invalid choice: (?P<quote>['\"])(?P<word>.*?)(?P=quote)(?= \(|,)")
FEW = 4  # commands that an answer explains
_REQUIRED = "the following arguments are required: "
_EXPECTED = re.compile(r"argument (?P<name>[^:]+): expected (?P<what>.*)")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are :class:`UsageError`, and not a page of usage."""

    _words: Sequence[str] = ()
    _usual: Collection[str] = ()

    def hide_all_but(self, usual: Collection[str]) -> None:
        """Let ``--help`` list the options that are named here only; a new option, ``--help-all``, lists all."""
        self._usual = (*usual, "--help", HELP_ALL)
        self.add_argument(HELP_ALL, action=_HelpAll, nargs=0, help="list all options")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Called by argparse for ``--help``."""
        hidden = {action: action.help for action in self._actions if self._hides(action)}
        for action in hidden:
            action.help = argparse.SUPPRESS
        super().print_help(file)
        for action, words in hidden.items():
            action.help = words

    def _hides(self, action: argparse.Action) -> bool:
        return bool(self._usual and action.option_strings) and not set(self._usual).intersection(action.option_strings)

    def print_help_all(self) -> None:
        """Print the help with all options."""
        super().print_help()

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Read the words of a command, which the answer has too, as ``words``.

        Raises:
            UsageError: they are not what the command takes.

        """
        self._words = words
        options, unknown = self.parse_known_args(list(words))
        if unknown:
            self._refuse(unknown[0])
        options.words = self._words
        return options

    def error(self, message: str) -> NoReturn:
        """Called by argparse."""
        if message.startswith(_REQUIRED):
            for word in self._unknown_options():
                self._refuse(word)
            missing = message.removeprefix(_REQUIRED)
            raise UsageError(f"{self.prog} needs {missing}{self._meaning(missing)}. {self._more()}")
        if choice := _CHOICE.match(message):
            choices = self._choices(choice["name"])
            near = nearest(choice["word"], choices)
            way_out = f"Did you mean {near!r}?" if near else f"It takes {', '.join(self._told(choices))}."
            raise UsageError(f"{choice['name']} does not take {choice['word']!r}. {way_out}")
        if expected := _EXPECTED.match(message):
            what = expected["what"].replace("one argument", "a value")
            raise UsageError(f"{expected['name']} needs {what}. {self._more()}")
        raise UsageError(f"{message[:1].upper()}{message[1:]}. {self._more()}")

    def _refuse(self, word: str) -> NoReturn:
        name = word.partition("=")[0]
        if not word.startswith("-"):
            raise UsageError(f"{self.prog} has no use for the word {word!r}. {self._more()}")
        near = nearest(name, [known for known in self._option_string_actions if known.startswith("--")])
        hint = f" Did you mean {near}?" if near else ""
        raise UsageError(f"{self.prog} has no option {name}.{hint} {self._more()}")

    def _more(self) -> str:
        return f"'{self.prog} {HELP_ALL if self._usual else '--help'}' lists the options."

    def _meaning(self, name: str) -> str:
        """What an argument is, after its name."""
        found = next((each for each in self._actions if argparse._get_action_name(each) == name and each.help), None)
        return f": {found.help}" if found is not None else ""

    def _choices(self, name: str) -> list[str]:
        for action in self._actions:
            if name in (argparse._get_action_name(action), action.metavar, action.dest) and action.choices:
                return [str(each) for each in action.choices]
        return []

    def _told(self, choices: Sequence[str]) -> list[str]:
        """The words that can be chosen; of a few commands, with what each does."""
        helps = {
            each.dest: each.help
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for each in action._choices_actions
        }
        if len(choices) > FEW:
            return list(choices)
        return [f"{word} ({found})" if (found := helps.get(word)) else word for word in choices]

    def _unknown_options(self) -> Iterator[str]:
        """The options before the first word that is not one: what follows may belong to a script."""
        words = iter(self._words)
        for word in words:
            if not word.startswith("-") or word in ("-", "--"):
                return
            name, _, value = word.partition("=")
            action = self._option_string_actions.get(name)
            if action is None and word.startswith("--"):
                yield word
                return
            if action is not None and action.nargs is None and not value:
                next(words, None)


class _HelpAll(argparse.Action):
    """Print all options, and end."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Called by argparse."""
        assert isinstance(parser, Parser)
        parser.print_help_all()
        parser.exit()


def nearest(word: str, candidates: Sequence[str]) -> str | None:
    """The candidate that ``word`` most likely stands for."""
    from spmdlint import selection  # only needed after a mistake

    return selection.nearest(word, candidates)
