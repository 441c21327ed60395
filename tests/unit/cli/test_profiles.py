"""Profiles: named files of client settings, one of them in use, and what wins over them."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

import pytest

from barnabas.cli.main import FAILED, main
from barnabas.cli.terminal.connection import add_connection, settings_of
from barnabas.cli.terminal.profiles import path_of, profile_in_use, write_profile
from barnabas.client.settings.client import Settings
from barnabas.ops.failure import Failure


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("BARNABAS_BOOTSTRAP_SERVERS", "BARNABAS_CLIENT_CONFIG", "BARNABAS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BARNABAS_HOME", str(tmp_path))
    return tmp_path


def settings(*words: str) -> Settings:
    parser = ArgumentParser()
    add_connection(parser)
    return settings_of(Settings, parser.parse_args(words))


def test_without_a_profile_a_broker_is_looked_for_here() -> None:
    assert settings().bootstrap_servers == ("127.0.0.1:9092",)


def test_the_profile_in_use_holds_until_something_nearer_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert main(["profile", "create", "far", "-b", "far:1", "-X", "client.id=ada", "--use"]) == 0
    assert main(["profile", "create", "near", "-b", "near:1"]) == 0
    assert (settings().bootstrap_servers, settings().client_id) == (("far:1",), "ada")
    assert settings("--profile", "near").bootstrap_servers == ("near:1",)
    monkeypatch.setenv("BARNABAS_PROFILE", "near")
    assert settings().bootstrap_servers == ("near:1",)
    (tmp_path / "client.properties").write_text("bootstrap.servers=file:1\n")
    assert settings("--client-config", str(tmp_path / "client.properties")).bootstrap_servers == ("file:1",)
    assert settings("-b", "option:1").bootstrap_servers == ("option:1",)
    assert settings("-b", "option:1", "-X", "bootstrap.servers=last:1").bootstrap_servers == ("last:1",)


def test_profiles_are_listed_shown_and_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-X", "security.protocol=SASL_SSL", "-X", "sasl.mechanism=PLAIN"]
    words += ["-X", "sasl.username=ada", "-X", "sasl.password=secret"]
    assert main(["profile", "create", "prod", "-b", "p:1,q:1", *words, "--use"]) == 0
    assert main(["profile", "list"]) == 0
    assert "prod  yes     p:1,q:1  SASL_SSL PLAIN" in capsys.readouterr().out
    assert main(["profile", "show", "prod"]) == 0
    shown = capsys.readouterr().out
    assert "(secret)" in shown
    assert "=secret" not in shown
    assert path_of("prod").stat().st_mode & 0o077 == 0, "it may hold a password"
    assert main(["profile", "delete", "prod", "--yes"]) == 0
    assert profile_in_use() is None
    assert main(["profile", "show", "prod"]) == FAILED
    assert "`barnabas profile list` shows" in capsys.readouterr().err


def test_values_survive_their_file() -> None:
    value = 'a\\b = "c"\n\t:#!é '
    write_profile("odd", {"sasl.password": value.strip(), "client.id": " leading"})
    from barnabas.cli.terminal.config_file import read_config

    assert read_config(path_of("odd")) == {"sasl.password": value.strip(), "client.id": " leading"}


def test_a_setting_that_no_client_has_is_a_mistake_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "create", "x", "-X", "bootstrap.server=a:1"]) == FAILED
    assert "bootstrap.servers" in capsys.readouterr().err
    assert not path_of("x").exists()


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".hidden"])
def test_a_name_leads_nowhere_else(name: str) -> None:
    with pytest.raises(Failure, match="no name for a profile"):
        path_of(name)


def test_a_profile_is_edited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "editor"
    script.write_text("#!/bin/sh\necho 'bootstrap.servers=new:1' > \"$1\"\n")
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))
    assert main(["profile", "edit", "mine"]) == 0
    assert path_of("mine").read_text() == "bootstrap.servers=new:1\n"


def test_a_profile_that_is_gone_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", "--profile", "nobody"]) == FAILED
    assert "there is no profile 'nobody'" in capsys.readouterr().err
