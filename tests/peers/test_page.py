"""The page about peers says what the tests beside this one prove."""

from pathlib import Path

from benchmarks import peers_page
from tests.peers.statements import Agreement, Difference


def test_its_tables_are_up_to_date():
    """`python -m benchmarks.peers_page` writes them."""
    assert peers_page.SNIPPET.read_text() == peers_page.tables()


def test_no_peer_is_left_out():
    """Every file with statements is on the page, and every peer agrees somewhere."""
    files = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    files -= {Path(__file__).stem, "test_migration", "test_papers"}
    assert files == {f"test_{name}" for name in peers_page.PEERS}
    agree = {s.peer.name for s in peers_page.statements(Agreement)}
    assert agree >= {s.peer.name for s in peers_page.statements(Difference)}


def test_cells_stay_in_their_columns():
    for line in peers_page.tables().splitlines():
        assert not line.startswith("|") or line.count("|") == 7
