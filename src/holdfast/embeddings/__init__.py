"""What varies between environments in embeddings of any network, as arrays: find it, remove it, balance it.

`discover` goes from moments of the classes to directions that vary (`variation`), scores of the rows along them and
groups of rows with similar scores (`attributes`), tests of what stays the same (`invariance`), and sentences.
`holdfast.torch` does the same for a torch network and its data.
"""

from holdfast.core.names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
