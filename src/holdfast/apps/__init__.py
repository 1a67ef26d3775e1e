"""Thin shells around the library: the command line and the page; no science in them."""
