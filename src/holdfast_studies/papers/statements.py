"""What the papers state, in our words, under the names that the sources of claims use.

A name is as in the paper: "Theorem 2", "lemma 7", "eq. 10", "figure 3". Slides of Wang and Jacot begin with "jumps".
"""

from holdfast_studies.claims import Statement

TEXTBOOK = "a known result that the proof quotes"

PAPER = {
    "figure 1": Statement("Aggregated batches learn both signals, heterogeneous ones the invariant signal only."),
    "figure 2": Statement("An oscillating signal grows in mean and shrinks in a small power."),
    "figure 3": Statement("Heterogeneity removes the spurious signal; the transition is around M = 5."),
    "figure 4": Statement("A large step size removes the spurious signal, a small one learns it."),
    "figure 5": Statement("HeteroSGD learns the invariant signal only, PooledSGD both."),
    "figure 6": Statement("With small batches PooledSGD stays away from both solutions, at finite distances."),
    "Theorem 1": Statement(
        "With enough heterogeneity HeteroSGD ends at the invariant signal; PooledSGD ends at A* + E A(e), so away "
        "from it (informal)."
    ),
    "Theorem 2": Statement("HeteroSGD ends near A*, with probability above 0.99."),
    "Theorem 3": Statement("PooledSGD ends at A* + E A(e)."),
    "Theorem 4": Statement("Phase 1: R grows in every step, Q and E stay small, with probability 0.995."),
    "Theorem 5": Statement("Phase 2: R settles at one, Q and E stay small, with probability 0.995."),
    "Theorem 6": Statement("Gradient descent on all data ends at A* + E A(e)."),
    "Theorem 7": Statement("Algorithm 4 learns the invariant neurons of a quadratic network only."),
    "Theorem 8": Statement("HeteroSGD ends at an A* of any condition number, with probability above 0.99."),
    "Proposition 1": Statement("Random subspaces overlap by at most t sqrt((r1 + r2) / d), with high probability."),
    "Corollary 1": Statement("||Q_t|| stays below a multiple of the calibration line."),
    "Algorithm 1": Statement("PooledSGD."),
    "Algorithm 2": Statement("HeteroSGD."),
    "Algorithm 3": Statement("HeteroSGD for matrix sensing."),
    "Algorithm 4": Statement("HeteroSGD for quadratic networks, with truncation and shrinkage."),
    "Example 1": Statement("With random neurons the variant of Algorithm 3 selects the invariant ones only."),
    "Remark 1": Statement("The moment estimate of tau does as well in Algorithm 4."),
    "section 3.1": Statement("The general form U U^T - V V^T learns signals with negative eigenvalues."),
    "section 4": Statement("A small power of an oscillating signal shrinks in mean for eta in a window (informal)."),
    "section 6": Statement(
        "Heterogeneity and stochasticity are conjectured to be needed, over-parameterisation perhaps not."
    ),
    "assumption 1": Statement("Ranks, unit spectrum of A*, and small overlap of the two subspaces."),
    "assumption 2": Statement("Bounded strengths whose variance exceeds their mean, nearly diagonal."),
    "assumption 3": Statement("Restricted isometry of the measurements."),
    "definition 1": Statement("Restricted isometry."),
    "definition 2": Statement("The envelopes of the invariant signal."),
    "definition 3": Statement("The calibration line L_t."),
    "definition 4": Statement("The controller of the spurious signal, between L_t and an absorbing barrier."),
    "definition 5": Statement("The processes X_{k,t} that the controller moves along."),
    "eq. 3": Statement("The update: the gradient of eq. 2 without its factor 2, and with X for (X + X^T) / 2."),
    "eq. 7": Statement("Off-diagonal strengths of the order of the diagonal ones make recovery fail."),
    "eq. 9": Statement("The error is at most C max(delta*^2 sqrt(r1) M1^2, delta* M1) log(d)^2."),
    "eq. 10": Statement("The error is at most C log(d) sqrt(d/m), with probability 1 - C (d log(d) / m)^(2/5)."),
    "eq. 11": Statement("U*^T P U* tends to the identity and V*^T P V* to zero in probability."),
    "eq. 12": Statement("PooledSGD ends at A* + E A(e)."),
    "eq. 13": Statement("PooledSGD stays away from A* by a multiple of sqrt(min(r1, r2)) at all times."),
    "after Theorem 3": Statement("PooledSGD stays away from A* for large t, so that early stopping is not the reason."),
    "eq. 26": Statement(
        "||Q_t|| is below poly(log d, r, M1) L_t, informally.",
        untested="the sketch of Corollary 1, which is tested; the polynomial is not printed",
    ),
    "eq. 109": Statement("Gradient descent on all data ends within O(delta*^2 M1^2 sqrt(r1) + delta* M1) = o(1)."),
    "lemma 1": Statement("<E(X), Y> is at most delta ||X||_F ||Y||_F."),
    "lemma 2": Statement("||E(X) Z|| is at most delta ||X||_F ||Z||."),
    "lemma 3": Statement("The same for X of any rank, with its nuclear norm."),
    "lemma 4": Statement("The same as lemma 2 for X of any rank, with its nuclear norm."),
    "lemma 5": Statement("The invariant signal stays between two envelopes, which stay close for a known time."),
    "lemma 6": Statement("The controller of the spurious signal stays below a multiple of L_t, with probability."),
    "lemma 7": Statement("A power of the controlled process is a supermartingale for eta in the window."),
    "lemma 8": Statement("A bound on the interaction of the two subspaces."),
    "lemma 9": Statement("A bound on the isometry error of U U^T - A* - A(e)."),
    "lemma 10": Statement("The sum of both errors is below the calibration line."),
    "lemma 11": Statement("Each column of Q stays below its controller."),
    "lemma 12": Statement("The spectral norm of E grows by at most a small step."),
    "lemma 13": Statement("The Frobenius norm of E grows by at most a small step."),
    "lemma 14": Statement("Singular values of R grow by at least 1 + eta/3 in phase 1, and stay together."),
    "lemma 15": Statement("Singular values of R that are within g of one stay there."),
    "lemma 16": Statement("Covering number of the sphere.", untested=TEXTBOOK),
    "lemma 17": Statement("Singular values of Gaussian matrices.", untested=TEXTBOOK),
    "lemma 18": Statement("The operator norm from a net.", untested=TEXTBOOK),
    "lemma 19": Statement("Concentration of a sum of products of normal variables.", untested=TEXTBOOK),
    "lemma 20": Statement("Truncated rank-one measurements are near-isometries on low rank."),
}

SLIDES = {
    "jumps: theorem": Statement("From any start SGD enters B_r, for any r >= 0, and stays."),
    "jumps: closed": Statement("B_r is closed under SGD."),
    "jumps: enters": Statement("From any parameters SGD enters B_r within T steps, with a probability above zero."),
    "jumps: lemma": Statement("Critical points in B_r have approximate rank r."),
    "jumps: figure": Statement("SGD on a 2 x 2 matrix jumps to rank 1; offshoots then have a small test error."),
    "jumps: one way": Statement("Jumps go from high to low rank, never back."),
    "jumps: continuous": Statement("A continuous approximation of SGD does not have the absorbing phenomenon."),
}

QUESTIONS = {
    1: "What heterogeneity, stochasticity and over-parameterisation each contribute.",
    2: "How much overlap and how many off-diagonal strengths are allowed.",
    3: "Whether Adam and other optimisers have the same bias.",
    4: "What happens beyond quadratic networks.",
    5: "A continuum of environments.",
    6: "Implicit against explicit methods.",
    7: "Why more environments help.",
    8: "Why more diverse environments help.",
    9: "Causes, effects and spouses of the target.",
    10: "Conditioning and saddle points.",
}

OWN = "Results of this project: exponents, thresholds, laws at finite time, order, advice."

STATEMENTS: dict[str, Statement] = {
    **{name: statement._replace(origin="Xu, Gu and Fang") for name, statement in PAPER.items()},
    **{name: statement._replace(origin="Wang and Jacot") for name, statement in SLIDES.items()},
    **{f"question {number}": Statement(says, origin="ten questions") for number, says in QUESTIONS.items()},
    "Holdfast": Statement(OWN, origin="Holdfast"),
}
"""Name -> statement. Questions are those of a public summary of the first version of the paper by Xu, Gu and Fang."""
