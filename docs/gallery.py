"""The gallery: in which order its pages come, what their scripts may do, and how their figures are found."""

import warnings
from contextlib import ExitStack
from pathlib import Path

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

from holdfast.plots import style

ORDER = (
    "washing_out.py",
    "order_of_environments.py",
    "step_sizes.py",
    "absorbing_sets.py",
    "reproduce.py",
    "table.py",
    "torch_network.py",
    "sweep_on_a_cluster.py",
    "own_objects.py",
    "selection.py",
    "torch_quadratic_network.py",
)
# Where the figures of a script that are on its page already are noted.
SEEN = "__figures_on_page__"
# The filters of warnings while a script runs; other extensions have warnings of their own.
FILTERS = ExitStack()


def position(path) -> int:
    """Where a script stands in its gallery; all of them have a line in ORDER."""
    return ORDER.index(Path(path).name)


def warnings_are_errors(gallery_conf, path, when) -> None:
    """Called before and after each script: a warning ends it, and with it the build."""
    FILTERS.close()
    if when == "before":
        FILTERS.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")


def scrape(block, block_variables, gallery_conf) -> str:
    """Save the figures of a block: variables that are figures, or dictionaries of them.

    They are objects that pyplot does not know, so the scraper of sphinx-gallery would not find them.
    """
    variables = block_variables["example_globals"]
    seen = variables.setdefault(SEEN, [])
    paths = []
    for value in list(variables.values()):
        for figure in value.values() if isinstance(value, dict) else (value,):
            if isinstance(figure, Figure) and not any(figure is each for each in seen):
                seen.append(figure)
                paths.append(next(block_variables["image_path_iterator"]))
                with style():
                    figure.savefig(paths[-1])
    return figure_rst(paths, gallery_conf["src_dir"])
