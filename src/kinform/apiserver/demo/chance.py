"""Random events of the demo cluster: crashes, more load, new releases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from kinform.apiserver.demo.manifests import IMAGE, REPLICAS, SHOPS, image
from kinform.apiserver.demo.pods import crash, is_ready
from kinform.apiserver.demo.world import DemoWorld, is_going
from kinform.apiserver.serializer.json_values import Json, as_dict, as_list, text

__all__ = ["Chance", "next_image", "next_replicas"]

_MANAGER: Final = "kinform-demo"
_RARITY: Final = 0.15
"""The probability of a random event in a step."""
_FEWEST: Final = 1
_MOST: Final = 6


def next_replicas(held: int, *, is_growing: bool) -> int:
    """Return one more or one less, within the bounds."""
    wanted = held + 1 if is_growing else held - 1
    return wanted if _FEWEST <= wanted <= _MOST else 2 * held - wanted


def next_image(held: str) -> str:
    """Return the image of the next release."""
    repository, _, tag = held.rpartition(":")
    minor = tag.rpartition(".")[2]
    return image(repository, int(minor) + 1 if minor.isdigit() else 1)


@final
class Chance:
    """Lets things happen."""

    def __init__(self, world: DemoWorld) -> None:
        self._world = world
        self._happenings: list[Callable[[], None]] = [
            *[self._crash] * 3,
            *[self._lose] * 2,
            *[self._scale] * 3,
            self._release,
        ]

    def step(self, *, is_quiet: bool) -> None:
        """Make a random change; if there is none, change the customers of a shop."""
        chance = self._world.random
        if chance.random() < _RARITY:
            chance.choice(self._happenings)()
        if is_quiet or chance.random() < _RARITY:
            self._trade()

    def _crash(self) -> None:
        if pod := self._any_pod():
            crash(self._world, pod)

    def _lose(self) -> None:
        if pod := self._any_pod():
            self._world.delete(pod)

    def _any_pod(self) -> Json | None:
        """Return one of the pods that run for a deployment of the demo."""
        sets = {it["metadata"]["uid"] for it in self._replica_sets()}
        pods = [
            it
            for it in self._world.all("pods")
            if is_ready(it)
            and not is_going(it)
            and any(
                owner["uid"] in sets for owner in as_list(it["metadata"].get("ownerReferences"))
            )
        ]
        return self._world.random.choice(pods) if pods else None

    def _replica_sets(self) -> list[Json]:
        ours = {it["metadata"]["uid"] for it in self._deployments()}
        return [
            it
            for it in self._world.all("replicasets.apps")
            if any(owner["uid"] in ours for owner in as_list(it["metadata"].get("ownerReferences")))
        ]

    def _deployments(self) -> list[Json]:
        """Return the demo's own deployments."""
        return [
            it
            for it in self._world.all("deployments.apps")
            if REPLICAS in as_dict(it["metadata"].get("annotations")) and not is_going(it)
        ]

    def _scale(self) -> None:
        """Scale a deployment that was last scaled here, so that what a user sets stays."""
        chance = self._world.random
        free = [
            it
            for it in self._deployments()
            if it["metadata"]["annotations"][REPLICAS] == str(it["spec"]["replicas"])
        ]
        if not free:
            return
        deployment = chance.choice(free)
        held = deployment["spec"]["replicas"]
        wanted = next_replicas(held, is_growing=chance.random() < 0.5)

        def change(obj: Json) -> None:
            obj["spec"]["replicas"] = wanted
            obj["metadata"]["annotations"][REPLICAS] = str(wanted)

        self._world.change(deployment, change, manager=_MANAGER)

    def _release(self) -> None:
        """Roll out the next image of a deployment whose image was last set here."""
        free = [
            it
            for it in self._deployments()
            if text(it, "metadata", "annotations", IMAGE) == _first_container(it)["image"]
        ]
        if not free:
            return
        deployment = self._world.random.choice(free)
        wanted = next_image(_first_container(deployment)["image"])

        def change(obj: Json) -> None:
            _first_container(obj)["image"] = wanted
            obj["metadata"]["annotations"][IMAGE] = wanted

        self._world.change(deployment, change, manager=_MANAGER)

    def _trade(self) -> None:
        """Change the number of customers of one of the shops."""
        shops = self._world.all(SHOPS)
        if not shops:
            return
        chance = self._world.random
        shop = chance.choice(shops)
        state = as_dict(shop.get("status"))
        customers = max(0, state.get("customers", 0) + chance.choice((-2, -1, 1, 2, 3)))
        state = {
            "phase": "Open" if customers else "Closed",
            "customers": customers % 40,
            "sales": state.get("sales", 0) + chance.randrange(1, 5),
        }
        self._world.set_status(shop, state, manager=_MANAGER)


def _first_container(deployment: Json) -> Json:
    container: Json = deployment["spec"]["template"]["spec"]["containers"][0]
    return container
