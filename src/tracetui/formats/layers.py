"""A map that is copied for little: what a reader must remember of all that it has read, and not pay for again."""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class Layers(Generic[V]):
    """Text → value. A copy shares what was there, so that n values are copied log n times however often it is made."""

    __slots__ = ("_layers", "_new")

    def __init__(self, layers: tuple[dict[str, V], ...] = ()) -> None:
        self._layers = layers
        self._new: dict[str, V] = {}

    def __setitem__(self, key: str, value: V) -> None:
        self._new[key] = value

    def get(self, key: str) -> V | None:
        """The latest value of `key`, None if there is none."""
        if key in self._new:
            return self._new[key]
        return next((layer[key] for layer in reversed(self._layers) if key in layer), None)

    def copy(self) -> Layers[V]:
        """A map that goes on from here without changing this one."""
        layers, new = self._layers, self._new
        if not new:
            return Layers(layers)
        while layers and len(layers[-1]) <= len(new):
            new = layers[-1] | new
            layers = layers[:-1]
        return Layers((*layers, dict(new)))
