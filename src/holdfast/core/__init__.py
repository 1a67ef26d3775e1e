"""What every other part is built on, and no science: the loop, random numbers, linear algebra, statistics."""
