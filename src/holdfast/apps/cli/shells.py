"""Scripts with which shells complete a command line: written out in full, so that the tab key starts no Python."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from holdfast.apps.cli.parser import Option

Shell = Literal["bash", "zsh", "fish"]
# Descriptions beside options: longer ones are cut where a sentence or a list ends, or at this width.
WIDEST_TEXT = 60


class Completed(NamedTuple):
    """What is completed after the name of a command: its options, and words for what is given by position.

    Without such words, files are completed.
    """

    text: str
    options: Sequence[Option]
    words: Sequence[str] = ()


def completion_script(commands: Mapping[str, Completed], shell: Shell) -> str:
    """The script for one shell.

    Example:
        >>> commands = {"doctor": Completed("Look.", [Option("--format", ("table", "json"), "text", "What to print.")])}
        >>> print(completion_script(commands, "fish").splitlines()[-1])
        complete -c holdfast -n '__fish_seen_subcommand_from doctor' -l format -d 'What to print' -x -a 'table json'
    """
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](commands)


def short(text: str) -> str:
    """The beginning of a text that says enough beside an option.

    Example:
        >>> short("Step size eta; 0.05 if not given. It is positive.")
        'Step size eta'
    """
    for end in (". ", "; ", ": "):
        text = text.partition(end)[0]
    text = text.rstrip(".")
    return text if len(text) <= WIDEST_TEXT else text[:WIDEST_TEXT].rpartition(" ")[0] + " ..."


def _bash(commands: Mapping[str, Completed]) -> str:
    values, flags, words = [], [], []
    for name, (_, options, positional) in commands.items():
        flags.append(f"    {name}) words={_joined([*(each.flag for each in options if each.flag), '--help'])} ;;")
        values += [f'    "{name} {each.flag}") words={_joined(each.choices)} ;;' for each in options if each.choices]
        words += [f"    {name}) words={_joined(positional)} ;;"] if positional else []
    return "\n".join([
        "_holdfast() {",
        '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
        '  local name="${COMP_WORDS[1]}" words=""',
        '  if (( COMP_CWORD == 1 )); then',
        f"    words={_joined([*commands, '--help', '--version'])}",
        '  elif [[ $current == -* ]]; then',
        '    case "$name" in', *flags, "    esac",
        '  else',
        '    case "$name $previous" in', *values,
        '    *) case "$name" in', *words, "    esac ;;", "    esac",
        "  fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "# Files, where the function finds nothing.",
        "complete -o bashdefault -o default -F _holdfast holdfast",
        "",
    ])  # fmt: skip


def _zsh(commands: Mapping[str, Completed]) -> str:
    cases = []
    for name, (_, options, positional) in commands.items():
        arguments = ["'(- *)'{-h,--help}'[Explain the options]'"]
        for each in options:
            if each.flag:
                values = f"({' '.join(each.choices)})" if each.choices else "_files" if each.kind == "text" else " "
                value = "" if each.kind == "switch" else f":value:{values}"
                arguments.append(shlex.quote(f"{each.flag}[{_plain(short(each.text))}]{value}"))
        arguments.append(shlex.quote(f"*:argument:({' '.join(positional)})" if positional else "*:file:_files"))
        cases += [f"    {name})", "      _arguments -S \\", *(f"        {each} \\" for each in arguments), "      ;;"]
    listed = [shlex.quote(f"{name}:{_plain(short(each.text))}") for name, each in commands.items()]
    return "\n".join([
        "#compdef holdfast",
        "_holdfast() {",
        "  local -a commands=(", *(f"    {each}" for each in listed), "  )",
        "  if (( CURRENT == 2 )); then",
        "    _describe command commands",
        "    return",
        "  fi",
        "  shift words",
        "  (( CURRENT-- ))",
        '  case "$words[1]" in', *cases, "  esac",
        "}",
        "# Found in a folder of $fpath, or evaluated.",
        'if [[ "$zsh_eval_context[-1]" == loadautofunc ]]; then',
        '  _holdfast "$@"',
        "else",
        "  compdef _holdfast holdfast",
        "fi",
        "",
    ])  # fmt: skip


def _fish(commands: Mapping[str, Completed]) -> str:
    lines = [
        "complete -c holdfast -n __fish_use_subcommand -f",
        "complete -c holdfast -n __fish_use_subcommand -l version -d 'Print the version'",
        "complete -c holdfast -s h -l help -d 'Explain the options'",
    ]
    for name, (text, options, positional) in commands.items():
        lines.append(f"complete -c holdfast -n __fish_use_subcommand -a {name} -d {_fish_quoted(short(text))}")
        start = f"complete -c holdfast -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{start} -f -a '{' '.join(positional)}'"] if positional else []
        for each in options:
            if each.flag:
                values = (
                    f" -x -a '{' '.join(each.choices)}'" if each.choices else " -r" if each.kind == "text" else " -x"
                )
                value = "" if each.kind == "switch" else values
                lines.append(f"{start} -l {each.flag.removeprefix('--')} -d {_fish_quoted(short(each.text))}{value}")
    return "\n".join(lines) + "\n"


def _joined(words: Sequence[str]) -> str:
    return '"' + " ".join(words) + '"'


def _plain(text: str) -> str:
    """A text without the characters that mean something to zsh's `_arguments`."""
    return text.translate(str.maketrans("[]:", "(),"))


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
