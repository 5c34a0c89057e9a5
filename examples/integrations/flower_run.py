"""Certified federated averaging with Flower: the guarantee is about all the data of a client.

    python examples/integrations/flower_run.py [--folder runs/flower] [--epsilon 8] [--rounds 20]

Needs `pip install "pyaccount-dp[flower]"`, whose simulation runs the clients here. Each client has a few points of a
line and fits it; the server asks the clients of a round for their lines, and releases their mean with noise.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

import pyaccount
from pyaccount.integrations.flower import PrivateFedAvg

CLIENTS, SLOPE, OFFSET = 40, 1.5, -0.5

client = ClientApp()


@client.train()
def fit(message: Message, context: Context) -> Message:
    """Fit a line to this client's points, beginning with the server's line."""
    generator = np.random.default_rng(int(context.node_config["partition-id"]))
    place = generator.uniform(-1.0, 1.0, size=20)
    value = SLOPE * place + OFFSET + 0.1 * generator.normal(size=20)
    line = message.content.array_records["arrays"]["line"].numpy().copy()
    for _ in range(5):
        wrong = line[0] * place + line[1] - value
        line -= 0.2 * np.array([np.mean(wrong * place), np.mean(wrong)])
    return Message(RecordDict({"arrays": ArrayRecord({"line": Array(line)})}), reply_to=message)


def train(grid: Grid, certificate: pyaccount.Certificate, folder: Path) -> None:
    """Train the run of the certificate, and save the line after every round."""
    with pyaccount.TrainingRun(certificate, folder / "run", records=CLIENTS, clip_norm=0.5) as run:
        strategy = PrivateFedAvg(run, checkpoint=folder / "model.npz")
        strategy.start(grid, ArrayRecord({"line": Array(np.zeros(2))}))


def served(certificate: pyaccount.Certificate, folder: Path) -> ServerApp:
    """Return the server."""
    server = ServerApp()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        train(grid, certificate, folder)

    return server


def certified(epsilon: float, rounds: int) -> pyaccount.Certificate:
    """Return the certificate of a run in which every record is a client."""
    return pyaccount.certify(
        {
            "pyaccount": 1,
            "name": "Flower",
            "privacy": {"adjacency": "add-remove", "epsilon": epsilon, "delta": 1e-3},
            "training": {"dataset_size": CLIENTS, "expected_batch_size": 20, "iterations": rounds},
            "sampler": {"kind": "poisson"},
            "noise": {"multiplier": "solve"},
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=20)
    asked = parser.parse_args()
    certificate = certified(asked.epsilon, asked.rounds)
    print(certificate.statement)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (asked.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        certificate.save(folder / "training.cert.json")
        # One processor for each client that trains; by default it is two.
        resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0}}
        run_simulation(served(certificate, folder), client, num_supernodes=CLIENTS, backend_config=resources)
        with np.load(folder / "model.npz") as saved:
            slope, offset = saved["model/line"].tolist()
            state = json.loads(str(saved["pyaccount_run"]))
    print(json.dumps({"slope": slope, "offset": offset, "released": state["rounds"]}))


if __name__ == "__main__":
    main()
