import pytest

from apps.lab.serving import server


@pytest.fixture(scope="session")
def address():
    """Of a server for all tests in a browser: it has imported and compiled what views need once."""
    with server() as (found, _):
        yield found
