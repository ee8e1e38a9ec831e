"""Who may ask: this machine's browser, on the page that has the token, and nobody else."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

ADDRESS = "127.0.0.1"
HTTP = 80


@dataclass(frozen=True, slots=True)
class Guard:
    """What a request must show: the token in its path, this address as its host, and this page as its origin.

    The host keeps out pages that let a name of theirs lead to this machine, the origin those that send forms here.
    """

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    def knows(self, path: str, hosts: Sequence[str]) -> bool:
        """Say whether a request is for this place and has the token."""
        given = path.split("/")[1] if path.startswith("/") else ""
        token = secrets.compare_digest(given.encode(errors="replace"), self.token.encode())
        return token and len(hosts) == 1 and hosts[0].lower() in self._hosts

    def trusts(self, origins: Sequence[str]) -> bool:
        """Say whether a request that does something comes from the page itself."""
        return len(origins) == 1 and origins[0] in {f"http://{host}" for host in self._hosts}

    def place(self, path: str) -> str:
        """Give what is asked for behind the token."""
        return path.partition("?")[0].split("/", 2)[-1]

    @property
    def _hosts(self) -> frozenset[str]:
        # Browsers leave out the port that the scheme has anyway.
        ports = (f":{self.port}", "") if self.port == HTTP else (f":{self.port}",)
        return frozenset(f"{name}{port}" for name in (ADDRESS, "localhost") for port in ports)
