"""A node whose directory was put back from an older copy ends with a sentence, and joins as new with an empty one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from cluster_roles import active_controller

from barnabas.testing import Cluster

SECONDS_MAX = 60


def test_a_directory_from_an_older_copy_is_refused_and_an_empty_one_joins_as_new(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster:
        leader = active_controller(cluster.bootstrap_servers)
        number = next(each for each in cluster.nodes if each != leader)
        directory, copy = cluster.directory / f"broker-{number}", tmp_path / "copy"
        cluster.stop(number)
        shutil.copytree(directory, copy)
        cluster.start(number)
        cluster.kill(number)
        shutil.rmtree(directory)
        shutil.copytree(copy, directory)
        done = subprocess.run(cluster.command(number), capture_output=True, text=True, check=False, timeout=SECONDS_MAX)
        assert done.returncode == 1, done
        assert "the disk is older than" in done.stderr
        assert "Traceback" not in done.stderr
        for each in [each for each in directory.iterdir() if each.name != "server.properties"]:
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink()
        cluster.start(number)
