"""Building blocks of every HTTP service: the schema registry, Connect's REST API and the console.

``service.Service`` is an application of routes behind one gate (Host and Origin checks, authentication, limits of size
and time, one shape for errors); ``server.Server`` listens for it. Needs starlette, uvicorn, httptools and msgspec.
"""
