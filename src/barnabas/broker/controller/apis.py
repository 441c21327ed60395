"""What the nodes of the cluster ask of the active controller, answered by the controller of this node.

Registrations, heartbeats, changes of the ISR and the like; administrators' requests have handlers of their own. The
handlers of the controller's listener come here, and so does this node's own broker, without a detour over the network.
NOT_CONTROLLER is raised where another node is the active one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from barnabas.metadata import controller as decisions
from barnabas.metadata.active_controller import ActiveController
from barnabas.metadata.decision import Facts
from barnabas.metadata.quorum_controller import QuorumController
from barnabas.model.errors import ApiError
from barnabas.model.ids import Uuid
from barnabas.wire.message import Message
from barnabas.wire.messages import response_of
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.wire.messages.alter_partition import AlterPartitionRequest
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest
from barnabas.wire.messages.controller_registration import ControllerRegistrationRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.world.entropy import Entropy

SEED_MAX: Final = 2**31  # where placement begins


class ControllerApis:
    def __init__(
        self,
        *,
        controller: QuorumController,
        active: ActiveController,
        facts: Callable[[], Facts],
        entropy: Entropy,
    ) -> None:
        self._controller = controller
        self._active = active
        self._facts = facts
        self._entropy = entropy
        self._answers: dict[type[Message], Callable[[Any], Awaitable[Message]]] = {
            BrokerRegistrationRequest: active.register_broker,
            BrokerHeartbeatRequest: active.broker_heartbeat,
            AlterPartitionRequest: self._alter_partition,
            AllocateProducerIdsRequest: self._allocate_producer_ids,
            AssignReplicasToDirsRequest: self._assign_replicas,
            ControllerRegistrationRequest: self._register_controller,
            CreateTopicsRequest: self._create_topics,
        }

    async def answer(self, message: Message) -> Message:
        """The answer; ApiError where the request fails as a whole."""
        return await self._answers[type(message)](message)

    async def answer_own(self, message: Message) -> Message:
        """The same for this very node; an error for the whole is in the answer, as it is when one comes from afar."""
        try:
            if isinstance(message, BrokerRegistrationRequest):
                # Two processes cannot own one node's directories, so whoever was registered under our id is gone.
                return await self._active.register_broker(message, is_own_node=True)
            return await self.answer(message)
        except ApiError as error:
            assert message.api_key is not None
            response: Any = response_of(message.api_key)()
            response.error_code = error.error.code
            if hasattr(response, "error_message"):
                response.error_message = error.message
            refusal: Message = response
            return refusal

    async def _alter_partition(self, message: AlterPartitionRequest) -> Message:
        facts = self._facts()
        return await self._controller.submit(lambda image: decisions.alter_partition(image, message, facts))

    async def _allocate_producer_ids(self, message: AllocateProducerIdsRequest) -> Message:
        return await self._controller.submit(lambda image: decisions.allocate_producer_ids(image, message))

    async def _assign_replicas(self, message: AssignReplicasToDirsRequest) -> Message:
        facts = self._facts()
        return await self._controller.submit(lambda image: decisions.assign_replicas_to_dirs(image, message, facts))

    async def _register_controller(self, message: ControllerRegistrationRequest) -> Message:
        return await self._controller.submit(lambda image: decisions.register_controller(image, message))

    async def _create_topics(self, message: CreateTopicsRequest) -> Message:
        """For topics that brokers make because somebody asked for them."""
        facts, seed = self._facts(), self._entropy.below(SEED_MAX)
        return await self._controller.submit(
            lambda image: decisions.create_topics(
                image, message, facts, topic_ids=iter(self._fresh_id, None), seed=seed
            )
        )

    def _fresh_id(self) -> Uuid:
        return self._entropy.uuid()
