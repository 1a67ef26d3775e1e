"""What Holdfast adds to the papers: exponents, tails, order, phase diagrams, advice, real tables."""
