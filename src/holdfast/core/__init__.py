"""What everything else is built on, without science: the loop, random numbers, linear algebra, statistics."""
