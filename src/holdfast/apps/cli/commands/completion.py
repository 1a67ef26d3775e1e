"""`holdfast completion`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from holdfast.apps.cli.command import Positional


@dataclass(frozen=True)
class CompletionArguments:
    """Print a script that makes a shell complete commands, options and their values.

    For bash, add this line to ~/.bashrc; for zsh, replace bash by zsh and add it to ~/.zshrc, after compinit:

        eval "$(holdfast completion bash)"

    For fish, write a file where fish looks for it:

        holdfast completion fish > ~/.config/fish/completions/holdfast.fish

    Bash and zsh load a file faster, too. Write it again after an update of holdfast.

    Examples:

        holdfast completion bash
        holdfast completion zsh
        holdfast completion fish
    """

    shell: Annotated[Literal["bash", "zsh", "fish"], Positional("SHELL")]
    """The shell."""


def execute(arguments: CompletionArguments) -> int:
    """Print the script."""
    from holdfast.apps.cli.main import COMMANDS  # which itself imports this module
    from holdfast.apps.cli.parser import command_line

    print(command_line(COMMANDS, (), ("", "")).generate_completion(shell=arguments.shell))
    return 0
