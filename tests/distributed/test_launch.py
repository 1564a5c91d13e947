"""The Slurm script and the Kubernetes manifest of `experiments/`, as far as they can be checked without a cluster."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from command_lines import read_experiment

from alphagateau.distributed.launch import parse_launch

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SLURM, JOBSET = EXPERIMENTS / "slurm.sh", EXPERIMENTS / "jobset.yaml"


def test_the_slurm_script_is_bash_and_asks_for_what_it_needs():
    subprocess.run(["bash", "-n", str(SLURM)], check=True)
    lines = re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", SLURM.read_text(), re.MULTILINE)
    options = dict(lines)
    assert options["signal"] == "B:USR1@300" and "requeue" in options
    assert options["ntasks-per-node"] == options["gpus-per-node"]


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/usr/bin/env bash\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("task", "is_signalled", "code", "is_requeued"),
    [
        ("exit 0", False, 0, False),
        ("exit 3", False, 3, False),
        ("trap 'exit 0' USR1; touch started; while true; do sleep 0.05; done", True, 0, True),
        ("trap 'exit 1' USR1; touch started; while true; do sleep 0.05; done", True, 1, False),
    ],
)
def test_the_slurm_script_goes_back_into_the_queue_when_its_time_is_up(task, is_signalled, code, is_requeued, tmp_path):
    program(tmp_path, "srun", f'echo "$@" > words; {task}')
    program(tmp_path, "scontrol", 'echo "$@" > requeued')
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "17"}
    job = subprocess.Popen(["bash", str(SLURM), "a.toml", "--seed", "1"], cwd=tmp_path, env=environment)
    if is_signalled:
        while not (tmp_path / "started").exists():
            assert job.poll() is None
            time.sleep(0.02)
        job.send_signal(signal.SIGUSR1)
    assert job.wait(timeout=30) == code
    assert (tmp_path / "words").read_text() == "--kill-on-bad-exit=1 alphagateau train a.toml --seed 1\n"
    assert (tmp_path / "requeued").exists() == is_requeued
    if is_requeued:
        assert (tmp_path / "requeued").read_text() == "requeue 17\n"


def test_the_jobset_starts_as_many_processes_as_it_says():
    jobset = yaml.safe_load(JOBSET.read_text())
    assert (jobset["apiVersion"], jobset["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    (hosts,) = jobset["spec"]["replicatedJobs"]
    job = hosts["template"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert job["completionMode"] == "Indexed" and job["completions"] == job["parallelism"]
    assert hosts["replicas"] == 1 and pod["restartPolicy"] == "Never"
    words = container["command"][2].split()
    assert words[:3] == ["exec", "alphagateau", "train"]
    flags = dict(zip(words[4::2], words[5::2], strict=True))
    assert flags.pop("--process-id") == '"$JOB_COMPLETION_INDEX"'
    options = ["--num-shares", flags["--num-shares"]]
    experiment = read_experiment(EXPERIMENTS.parent / words[3], options)
    gpus = container["resources"]["limits"]["nvidia.com/gpu"] * job["completions"]
    assert experiment.num_shares % gpus == 0
    launch = parse_launch(flags["--coordinator"], flags["--num-processes"], "0")
    assert launch is not None and launch.num_processes == job["completions"]
    name, network = jobset["metadata"]["name"], jobset["spec"]["network"]
    host, port = launch.coordinator.split(":")
    assert network["enableDNSHostnames"] and host == f"{name}-{hosts['name']}-0-0.{network['subdomain']}"
    assert {"containerPort": int(port)} in container["ports"]


def test_the_jobset_keeps_the_run_where_all_pods_write():
    jobset = yaml.safe_load(JOBSET.read_text())
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert "persistentVolumeClaim" in volumes[mounts[container["workingDir"]]]
