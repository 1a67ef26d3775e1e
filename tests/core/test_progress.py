from holdfast.core.progress import stages


def test_stages_fill_one_bar():
    seen = []
    first, second = stages(lambda done, total: seen.append((done, total)), [10, 30])
    first(1, 2)
    first(2, 2)
    second(1, 3)
    second(3, 3)
    assert seen == [(5, 40), (10, 40), (20, 40), (40, 40)]
    stages(None, [1])[0](1, 1)
