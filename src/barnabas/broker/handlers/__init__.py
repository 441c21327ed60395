"""One module per API: ``handle(request, message)`` and the declaration ``API``, see ``broker/requests/api.py``.

The docstring of a module lists the versions, the behaviour and the differences from Kafka. To add an API, add its
messages in ``wire/messages`` and one module here.
"""
