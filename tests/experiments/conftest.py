import pytest


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    """What an earlier run has fetched is not there: a test has the data that it makes."""
    monkeypatch.setenv("SOFTORDER_DATA", str(tmp_path / "cache"))
