"""Each path belongs to the first root that leads to it without links and hidden names, however many roots there are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from tracetui.live.folders import Roots

PATHS = some.lists(some.sampled_from(["a", "b", ".c"]), max_size=4).map(lambda names: "/" + "/".join(names))


def leads_to(top: str, path: str) -> bool:
    below = path[len(top.rstrip("/")) :]
    return path == top or (path.startswith(top.rstrip("/") + "/") and "/." not in below)


@given(some.lists(PATHS, min_size=1, max_size=6, unique=True), PATHS)
def test_the_first_root_that_leads_to_a_path_owns_it(given_roots: list[str], path: str) -> None:
    roots = Roots(given_roots, lambda place: place)

    owners = {each: [root for root in given_roots if leads_to(root, each)][:1] for each in [*given_roots, path]}
    assert [*roots.tops] == [root for root in given_roots if owners[root] == [root]]
    assert [root for root in given_roots if leads_to(root, path) and roots.owns(root, path)] == owners[path]
