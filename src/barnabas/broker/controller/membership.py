"""Registers this controller with the active controller: its listeners and the features that it supports.

It registers once per process, and retries until the metadata has the registration. The quorum manages the voters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.broker.controller.link import ControllerLink, raise_for_error
from barnabas.metadata.image import ClusterImage
from barnabas.model.errors import ApiError
from barnabas.observe.log import logger
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest
from barnabas.world.tasks import Tasks
from barnabas.world.timers import Timers

log = logger("controller_membership")

RETRY_MS: Final = 1000


class ControllerMembership:
    def __init__(
        self,
        *,
        timers: Timers,
        link: ControllerLink,
        image: Callable[[], ClusterImage],
        request: ControllerRegistrationRequest,
    ) -> None:
        self._timers = timers
        self._link = link
        self._image = image
        self._request = request
        self._tasks = Tasks()

    def start(self) -> None:
        self._tasks.retry("controller-membership", self._register, self._timers, retry_ms=RETRY_MS)

    async def stop(self) -> None:
        await self._tasks.stop()

    @property
    def is_registered(self) -> bool:
        known = self._image().controllers.get(self._request.controller_id)
        return known is not None and known.incarnation_id == self._request.incarnation_id

    async def _register(self) -> None:
        while not self.is_registered:
            try:
                raise_for_error(await self._link.ask(self._request))
                return
            except ApiError as error:
                log.warning("this controller is not registered yet", reason=error)
            await self._timers.sleep(RETRY_MS)
