"""`holdfast completion`."""

from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from holdfast.cli.shells import Shell


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
    from holdfast.cli.help import first_sentence
    from holdfast.cli.main import COMMANDS  # which itself imports this module
    from holdfast.cli.parser import options_of
    from holdfast.cli.shells import Completed, completion_script
    from holdfast.experiments import TITLES

    def completed(name: str, data_class: Any) -> Completed:
        options = options_of(data_class)
        choices = [choice for option in options if option.flag is None for choice in option.choices]
        return Completed(first_sentence(data_class), options, list(TITLES) if name == "reproduce" else choices)

    commands = {name: completed(name, data_class) for name, (data_class, _) in COMMANDS.items()}
    print(completion_script(commands, arguments.shell), end="")
    return 0
