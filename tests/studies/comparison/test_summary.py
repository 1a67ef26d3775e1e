import numpy as np

from holdfast_studies.comparison import METHODS, PUBLIC_TESTS, Comparison, summarize, to_markdown


def with_seeds(**errors):
    """A comparison on one test, with given errors by seed."""
    cells = {
        ("Example1", name): {seed: {"error": value} for seed, value in by_seed.items()}
        for name, by_seed in errors.items()
    }
    return Comparison((PUBLIC_TESTS["Example1"],), tuple(METHODS[name] for name in errors), cells, {})


def with_errors(**errors):
    """A comparison on one test, with given errors."""
    return with_seeds(**{name: dict(enumerate(values)) for name, values in errors.items()})


def findings(comparison):
    return summarize(comparison).tests[0].findings


def test_leaders_are_found_by_paired_differences():
    noise = np.random.default_rng(0).standard_normal(50)
    comparison = with_errors(
        oracle=noise,
        eills=10 + noise,
        hetero=10 + noise + 0.01 * np.random.default_rng(1).standard_normal(50),
        irm=10.1 + noise,
    )
    # irm is far inside the spread over seeds, and behind on every single one
    assert set(comparison.ranking("Example1", "error").leaders) == {"eills", "hetero"}
    (sentence,) = findings(comparison)
    assert "leads with" in sentence


def test_where_we_do_not_lead_the_findings_say_so():
    noise = np.random.default_rng(0).standard_normal(50)
    sentences = findings(with_errors(eills=10 + noise, hetero=10.5 + noise))
    assert sentences[1] == "Example1: Hetero (ours) is behind by 0.500 (0.500 to 0.500)."


def test_an_unfinished_method_does_not_decide_who_leads():
    """On the one seed that irm has finished, eills happens to be better than hetero; on the others it is not."""
    hetero = {seed: 10.0 + 0.01 * seed for seed in range(20)}
    eills = {seed: value + (-1 if seed == 3 else 1) for seed, value in hetero.items()}
    comparison = with_seeds(eills=eills, hetero=hetero, irm={3: 0.0})
    ranking = comparison.ranking("Example1", "error")
    assert list(ranking.values) == ["eills", "hetero"]
    assert ranking.leaders == ["hetero"]
    assert list(ranking.behind) == ["eills"]
    assert "n=1" in to_markdown(summarize(comparison))


def test_means_differences_and_sentences_are_over_the_same_seeds():
    """irm has 12 of 20 seeds, the harder ones; all numbers are over these."""
    hetero = {seed: 10.0 + seed for seed in range(20)}
    eills = {seed: value - 0.5 for seed, value in hetero.items()}
    irm = {seed: hetero[seed] + 2.0 for seed in range(8, 20)}
    comparison = with_seeds(eills=eills, hetero=hetero, irm=irm)
    assert {name: len(values) for name, values in comparison.ranking("Example1", "error").values.items()} == {
        "eills": 12,
        "hetero": 12,
        "irm": 12,
    }
    first, second = findings(comparison)
    assert first == "Example1: EILLS leads with 23.00 over the 12 of 20 that all compared methods have."
    assert "behind by 0.500 (0.500 to 0.500)" in second


def test_methods_without_a_common_seed_are_not_compared():
    comparison = with_seeds(eills={seed: 10.0 + seed for seed in range(10)}, hetero=dict.fromkeys(range(10, 18), 1.0))
    assert comparison.ranking("Example1", "error").leaders == ["eills"]
    (sentence,) = findings(comparison)
    assert "nan" not in sentence + to_markdown(summarize(comparison))


def test_one_seed_cannot_separate_methods():
    comparison = with_seeds(eills={0: 1.0}, hetero={0: 2.0})
    assert set(comparison.ranking("Example1", "error").leaders) == {"eills", "hetero"}
    assert "1.00 (one seed)" in to_markdown(summarize(comparison)).replace("**", "")
