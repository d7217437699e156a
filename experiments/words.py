"""The words of computed sentences: lists, counts, spans."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.contest import Contest

FEW_NAMES = 5  #: are listed; more are counted


def listed(phrases: Sequence[str]) -> str:
    """
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def quoted(name: str) -> str:
    """In quotes if it has a comma, which would look like one of the sentence."""
    return f'"{name}"' if "," in name else name


def named(names: Sequence[str]) -> str:
    return listed([quoted(name) for name in names])


def few(names: Sequence[str], every: int) -> str:
    """The names if there are few of them; otherwise how many they are of `every` other."""
    if len(names) <= FEW_NAMES:
        return named(names)
    return f"all {every} others" if len(names) == every else f"{len(names)} of the {every} others"


def count(number: int, noun: str) -> str:
    """
    >>> count(1, "seed"), count(3, "seed")
    ('one seed', '3 seeds')
    """
    return f"one {noun}" if number == 1 else f"{number:,} {noun}s"


def duration(seconds: float) -> str:
    """In the largest unit that it has one of.

    >>> duration(0.0831), duration(1.5), duration(400), duration(9000), duration(2e5)
    ('83 milliseconds', '1.5 seconds', '6.7 minutes', '2.5 hours', '2.3 days')
    """
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{1e3 * seconds:.2g} milliseconds"


def durations(seconds: Sequence[float]) -> str:
    """From the shortest to the longest.

    >>> durations([0.011, 0.059]), durations([400, 9000]), durations([2])
    ('11 to 59 milliseconds', '6.7 minutes to 2.5 hours', '2.0 seconds')
    """
    low, high = duration(min(seconds)), duration(max(seconds))
    if low == high:
        return high
    same = low.split()[1] == high.split()[1]
    return f"{low.split()[0] if same else low} to {high}"


def too_few(seeds: int) -> str:
    """Why nothing is said of a difference."""
    if seeds == 0:
        return "no seed in common: nothing can be told"
    return f"{count(seeds, 'seed')} {'is' if seeds == 1 else 'are'} too few to tell"


def span(contest: Contest, sizes: Sequence[float]) -> str:
    """Of differences, without their signs."""
    unit = " points" if contest.unit == " %" else contest.unit
    low, high = (f"{size:,.{contest.digits}f}" for size in (min(sizes), max(sizes)))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def starting(group: str) -> str:
    return f" for {group}" if group else ""


def span_signed(contest: Contest, gaps: Sequence[float]) -> str:
    """
    >>> span_signed(Contest("a", "accuracy", digits=1, unit=" %"), [-2.5, 0.5])
    '-2.5 to +0.5 points'
    """
    unit = " points" if contest.unit == " %" else contest.unit
    if not gaps:
        return "no difference known"
    low, high = (f"{gap:+,.{contest.digits}f}" for gap in (min(gaps), max(gaps)))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"
