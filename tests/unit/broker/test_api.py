"""An API is declared in one handler module, with its permissions; the routing tables only collect the declarations."""

from __future__ import annotations

import importlib
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from barnabas.broker.access import audit, permissions, refusals
from barnabas.broker.controller import forwarding
from barnabas.broker.requests import dispatch, routes
from barnabas.broker.requests.api import CLIENT, CONTROLLER, Api
from barnabas.broker.requests.routes import APIS, CONTROLLER_ROUTES, ROUTES, collected, declared
from barnabas.wire.api import ApiKey

HANDLER = """
from barnabas.broker.access.permissions import anyone
from barnabas.broker.requests.api import CLIENT, CONTROLLER, Api
from barnabas.wire.api import ApiKey
from barnabas.wire.messages.list_groups import ListGroupsResponse

def handle(request, message):
    return ListGroupsResponse()
"""
PACKAGES = itertools.count()
READING = ("DESCRIBE_", "LIST_")  # names of APIs that change nothing

Package = Callable[..., ModuleType]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """Makes a package of handler modules; the text of a module follows a handler."""

    def make(**modules: str) -> ModuleType:
        name = f"handlers_{next(PACKAGES)}"
        directory = tmp_path / name
        directory.mkdir()
        (directory / "__init__.py").write_text("")
        for module, text in modules.items():
            (directory / f"{module}.py").write_text(HANDLER + text)
        return importlib.import_module(name)

    monkeypatch.syspath_prepend(tmp_path)
    return make


def test_one_new_module_is_a_new_route(package: Package) -> None:
    handlers = package(some_api="API = Api(ApiKey.LIST_GROUPS, handle, at=CLIENT, needs=anyone)")
    apis = tuple(declared(handlers))
    assert [route.name for route in collected(apis, CLIENT).values()] == ["LIST_GROUPS"]
    assert collected(apis, CONTROLLER) == {}


def test_an_api_without_permissions_does_not_import(package: Package) -> None:
    with pytest.raises(TypeError, match="'needs'"):
        list(declared(package(some_api="API = Api(ApiKey.LIST_GROUPS, handle, at=CLIENT)")))
    with pytest.raises(TypeError, match="LIST_GROUPS declares no permissions"):
        list(declared(package(some_api="API = Api(ApiKey.LIST_GROUPS, handle, at=CLIENT, needs=None)")))


def test_a_handler_without_a_declaration_does_not_import(package: Package) -> None:
    with pytest.raises(ImportError, match=r"some_api defines a handler but declares no API"):
        list(declared(package(some_api="")))


def test_an_api_that_two_modules_declare_does_not_import(package: Package) -> None:
    text = "API = Api(ApiKey.LIST_GROUPS, handle, at=CLIENT, needs=anyone)"
    apis = tuple(declared(package(one=text, other=text)))
    with pytest.raises(ImportError, match="LIST_GROUPS is declared twice"):
        collected(apis, CLIENT)


def test_one_api_may_have_a_handler_for_each_kind_of_listener(package: Package) -> None:
    text = "API = Api(ApiKey.LIST_GROUPS, handle, at={}, needs=anyone)"
    apis = tuple(declared(package(one=text.format("CLIENT"), other=text.format("CONTROLLER"))))
    assert collected(apis, CLIENT)[ApiKey.LIST_GROUPS].api is apis[0]
    assert collected(apis, CONTROLLER)[ApiKey.LIST_GROUPS].api is apis[1]


def test_a_forwarded_api_runs_on_controllers_only() -> None:
    with pytest.raises(TypeError, match="at=CONTROLLER only"):
        Api(ApiKey.LIST_GROUPS, len, at=CLIENT, needs=permissions.anyone, is_forwarded=True)
    with pytest.raises(TypeError, match="not forwarded"):
        Api(ApiKey.LIST_GROUPS, len, at=CLIENT, needs=permissions.anyone, local_part=lambda handle: handle)


@pytest.mark.parametrize("api", APIS, ids=lambda api: f"{api.key.name}-{api.at.value}")
def test_every_api_is_served_where_it_is_declared(api: Api) -> None:
    assert callable(api.needs)
    for at, table in ((CLIENT, ROUTES), (CONTROLLER, CONTROLLER_ROUTES)):
        is_served = at in api.at or (at is CLIENT and api.is_forwarded)
        assert (api.key in table and table[api.key].api is api) == is_served
    if api.is_forwarded:
        assert (api.audit is None) == api.key.name.startswith(READING), "changes are written to the audit log"


def test_routes_are_in_the_order_of_their_keys() -> None:
    assert list(ROUTES) == sorted(ROUTES)
    assert list(CONTROLLER_ROUTES) == sorted(CONTROLLER_ROUTES)


@pytest.mark.parametrize(
    "module", [routes, permissions, audit, refusals, forwarding], ids=lambda module: module.__name__
)
def test_no_api_is_listed_outside_of_its_module(module: ModuleType) -> None:
    assert not re.findall(r"ApiKey\.[A-Z]", Path(module.__file__ or "").read_text())


def test_the_dispatcher_treats_only_these_apis_differently() -> None:
    """Produce has a short cut, followers' and consumers' fetches are counted apart, ApiVersions answers any version."""
    found = set(re.findall(r"ApiKey\.([A-Z_]+)", Path(dispatch.__file__).read_text()))
    assert found == {"PRODUCE", "FETCH", "API_VERSIONS"}
