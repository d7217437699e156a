"""The page about performance shows what the kept results say."""

import json

from benchmarks import performance_page
from benchmarks.goals import picture as goals_picture

_MACHINE = {"processor": "P"}


def test_it_is_up_to_date():
    """`python -m benchmarks.performance_page` writes it."""
    assert performance_page.SNIPPET.read_text() == performance_page.page()


def test_what_was_not_run_is_said(tmp_path):
    text = performance_page.page(tmp_path)
    assert text.count("not run yet") == 4
    assert ".png" not in text


def test_goals_are_counted_level_by_level(tmp_path):
    text = _page(tmp_path, "goals", figures=_figures())
    assert "1 of 2 goals are reached with avx2; 2 of 2 goals are reached with avx512." in text
    assert "| 1×2 laplace | 2.50 > 2 ✗ | 1.00 ≤ 2 ✓ |" in text


def test_the_goals_have_a_picture(tmp_path):
    assert goals_picture.draw(_figures(), tmp_path / "goals.png")
    assert (tmp_path / "goals.png").exists()
    assert not goals_picture.draw([], tmp_path / "none.png")


def test_the_map_in_short(tmp_path):
    cell = {
        "operator": "soft_topk",
        "section": "forward",
        "rows": 2,
        "n": 10,
        "yardstick": "torch.softmax",
        "yardstick_ns": 2.0,
        "peer": "",
        "peer_ns": None,
    }
    cells = [cell | {"method": "laplace", "ns": 1.0}, cell | {"method": "normal", "ns": 6.0}]
    left = {"operator": "soft_rank", "section": "backward", "rows": 2, "n": 10}
    skipped = [left | {"provider": "softorder x", "why": "slow"}]
    skipped.append(skipped[0] | {"n": 100})
    kept = {"operator": "soft_sort", "provider": "softorder y", "rows": 2, "n": 10}
    memory = [kept | {"needs": "1: the scores", "forward": 80, "saved": 480, "too_much": True}]
    memory.append(memory[0] | {"provider": "softorder z", "too_much": False})
    text = _page(tmp_path, "map", cells=cells, skipped=skipped, memory=memory)
    worst, best = "3 (normal, 2×10)", "0.5 (laplace, 2×10)"
    assert f"| soft_topk | torch.softmax | 2 | 1.75 | 1 | {best} | {worst} |" in text
    assert text.index("| soft_topk | normal |") < text.index("| soft_topk | laplace |")
    assert "| soft_rank | softorder x | forward + backward | 2×10 | slow |" in text
    assert "2×100" not in text
    assert "| soft_sort | y | 4.0 | 24.0 | 4: the scores |" in text
    assert "1 of 2 lines" in text


def test_growth_and_instructions(tmp_path):
    timings = [
        {"provider": "torch.sort", "n": n, "minimum": 1e-9 * n * factor}
        for n, factor in ((64, 2.0), (128, 3.0))
    ]
    text = _page(tmp_path, "growth", cache="1024,1,64", timings=timings, misses=[])
    assert "`torch.sort` by 3.00 to 3.00" in text
    count = {"section": "avx2", "kernel": "topk_forward", "density": "laplace", "rows": 1, "n": 8}
    counts = [count | {"k": k, "per_score": number} for k, number in ((1, 5.0), (2, 7.5))]
    text = _page(tmp_path, "instructions", instructions=counts)
    assert "|  | topk_forward, avx2 |\n| --- | ---: |\n| 1×8 laplace | 7.50 |" in text


def _page(folder, suite, **results):
    (folder / f"{suite}.json").write_text(json.dumps({"machine": _MACHINE} | results))
    return performance_page.page(folder)


def _figures():
    title = "soft_topk, forward, × torch.softmax"
    return [
        {"table": title, "row": f"1×2 {density}", "column": level, "value": value, "limit": 2.0}
        for density, level, value in (
            ("laplace", "avx2", 2.5),
            ("laplace", "avx512", 1.0),
            ("normal", "avx2", 1.0),
            ("normal", "avx512", 1.0),
        )
    ]
