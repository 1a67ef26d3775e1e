"""The laboratory: a local page where the phenomenon can be felt, and one's own table understood; no science in it.

A view is a file in `views` (its settings, and a function from them to the data of its charts) and a file of the same
name in `static/views`, which draws them. Everything else is shared. The page needs `pip install 'holdfast[lab]'`.
"""
