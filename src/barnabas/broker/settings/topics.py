"""The settings in force for one topic: its own, over this broker's, over all brokers', over the file's, over defaults.

What a topic sets was checked when it was set; a value that a newer or older version would refuse is logged and left
out rather than letting one topic keep a broker from starting.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.metadata.image import ClusterImage
from barnabas.model.settings import InvalidSetting
from barnabas.observe.log import logger
from barnabas.storage.settings import TOPIC_SETTINGS, TopicSettings

log = logger("settings")


def topic_settings(image: ClusterImage, topic: str, settings: BrokerSettings) -> TopicSettings:
    own = {}
    for name, text in image.configs.of_topic(topic).items():
        try:
            setting = TOPIC_SETTINGS[name]
            own[setting.attribute] = setting.parse(text)
        except InvalidSetting as error:
            log.warning("topic setting left out", topic=topic, reason=error)
    return replace(settings.topic_defaults, **own) if own else settings.topic_defaults
