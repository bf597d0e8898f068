from tests.processes.conftest import processes

__all__ = ["processes"]
