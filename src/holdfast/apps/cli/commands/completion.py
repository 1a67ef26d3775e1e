"""`holdfast completion`."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from holdfast.apps.cli.command import Command
from holdfast.apps.cli.shells import Shell


@dataclass(frozen=True)
class CompletionArguments:
    """Print the script with which a shell completes commands, options and their values.

    For bash, add this line to ~/.bashrc; for zsh, add it with zsh in the place of bash to ~/.zshrc, after compinit:

        eval "$(holdfast completion bash)"

    For fish, write a file that it finds by its name:

        holdfast completion fish > ~/.config/fish/completions/holdfast.fish

    A file is quicker to load for bash and zsh too. Write it anew after an update of holdfast.

    Examples:

        holdfast completion bash
        holdfast completion zsh
        holdfast completion fish
    """

    shell: tyro.conf.Positional[Annotated[Shell, tyro.conf.arg(metavar="{bash,zsh,fish}")]]
    """The shell."""


def execute(arguments: CompletionArguments) -> int:
    """Print the script."""
    from holdfast.apps.cli.help import first_sentence
    from holdfast.apps.cli.main import COMMANDS  # which itself imports this module
    from holdfast.apps.cli.parser import options_of
    from holdfast.apps.cli.shells import Completed, completion_script

    def completed(command: Command) -> Completed:
        options = options_of(command.arguments)
        choices = [choice for option in options if option.flag is None for choice in option.choices]
        return Completed(first_sentence(command.arguments), options, [*choices, *command.choices])

    commands = {name: completed(command) for name, command in COMMANDS.items()}
    print(completion_script(commands, arguments.shell), end="")
    return 0
