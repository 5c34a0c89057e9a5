"""What a certified run costs on a GPU: noise of 10⁹ parameters, a step of a model of 10⁹ parameters, and FSDP2.

    python benchmarks/gpu.py [--json FILE] [--seconds 570] [--rehearse]

Needs torch, transformers and opacus, as `make frameworks` installs them. It prints one JSON object, with the name of the device,
and ends within ten minutes with what it has measured until then; a part that fails is there with its error. Without a GPU it
prints `no GPU`. `--rehearse` goes through all parts with tiny sizes on the processor, which shows that the script runs.

* noise: seconds for a row of 10⁹ numbers by the device's own generator (`DeviceNoise`, with the way to the processor, and its
  kernel alone), and by the run's key on the processor.
* step: a language model of 10⁹ parameters in float32, 16 texts of 128 tokens. A forward and a backward pass and a step of SGD;
  the same with ghost clipping in place of the backward pass; and with ghost clipping and the release of a run, once with noise
  from the key and once from the device. Steps take turns; ratios are medians within turns, memory is the most that the device
  had in such a step. Goals for ghost clipping: at most 1.15 times the step, and 1.05 times its memory.
* shards: a model of 10⁸ parameters sharded over two processes by FSDP2, inside of `gathered`: seconds for a round, the memory of
  each process, and whether both have the same weights after each round. With fewer than two GPUs both processes are on the same
  one, with gloo.

This script was written without a GPU: only its rehearsal has been run.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import resource
import signal
import statistics
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import pyaccount

#: The document of all runs.
SIGMA, RECORDS = 1.0, 4096


class Sizes(NamedTuple):
    """What is measured."""

    device: str
    numbers: int
    width: int
    layers: int
    words: int
    texts: int
    length: int
    turns: int
    sharded_width: int
    sharded_layers: int


FULL = Sizes("cuda", 10**9, 2048, 19, 32_000, 16, 128, 7, 2048, 6)
TINY = Sizes("cpu", 10**6, 32, 2, 100, 4, 8, 2, 16, 2)


def opened(folder: Path, records: int, rounds: int, **options: Any) -> pyaccount.TrainingRun:
    document = {
        "pyaccount": 1,
        "name": "timed",
        "privacy": {"adjacency": "add-remove", "epsilon": 1000.0, "delta": 1e-5},
        "training": {"dataset_size": RECORDS, "expected_batch_size": records, "iterations": rounds},
        "sampler": {"kind": "poisson"},
        "noise": {"multiplier": SIGMA},
    }
    return pyaccount.TrainingRun(document, folder, records=RECORDS, uncertified=True, **options)


def synchronised(device: str) -> float:
    """Wait for the device, and return the time."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def most_memory(device: str, reset: bool = False) -> float:
    """Return the most memory of the device so far in MB; that of the process without a GPU."""
    import torch

    if device != "cuda":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if reset:
        torch.cuda.reset_peak_memory_stats()
    return float(torch.cuda.max_memory_allocated()) / 2**20


def noise(sizes: Sizes) -> dict[str, Any]:
    """Measure a row of noise."""
    import torch

    from pyaccount.plan.protection import Protection
    from pyaccount.training.device import DeviceNoise
    from pyaccount.training.key import RunKey
    from pyaccount.training.noise import noise_of

    document = pyaccount.load(
        {
            "pyaccount": 1,
            "name": "noise",
            "privacy": {"adjacency": "zero-out", "epsilon": 8, "delta": 1e-5},
            "training": {"dataset_size": RECORDS, "expected_batch_size": 64, "iterations": 100},
            "sampler": {"kind": "poisson"},
            "noise": {"multiplier": SIGMA},
        }
    )
    key = RunKey(bytes(32))
    rows = noise_of(Protection.of(document).runs()[0], key, phase=0, clip_norm=1.0)
    shapes = {f"w{number}": (sizes.numbers // 10,) for number in range(10)}
    found: dict[str, Any] = {"numbers": sizes.numbers}
    stream = DeviceNoise(sizes.device).stream(rows, shapes, key)
    generator = torch.Generator(sizes.device).manual_seed(1)

    def kernel() -> None:
        for shape in shapes.values():
            torch.randn(shape, generator=generator, dtype=torch.float64, device=sizes.device)

    by_key = rows.stream(shapes)
    ways: dict[str, Callable[[], object]] = {
        "device, as the run uses it": lambda: stream.next(bytes(32)),
        "device, kernel in float64": kernel,
        "key, on the processor": by_key.next,
    }
    for name, way in ways.items():
        times = []
        for _ in range(3):
            began = synchronised(sizes.device)
            way()
            times.append(synchronised(sizes.device) - began)
        # The first one warms up.
        found[name] = {"seconds": min(times[1:]), "ns a number": 1e9 * min(times[1:]) / sizes.numbers}
    return found


def language_model(width: int, layers: int, words: int, length: int) -> Any:
    import torch
    import transformers

    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=2 * width + width // 2,
        num_hidden_layers=layers,
        num_attention_heads=max(width // 64, 2),
        num_key_value_heads=max(width // 64, 2),
        max_position_embeddings=length,
        tie_word_embeddings=False,
    )
    return transformers.LlamaForCausalLM(config)


def step(sizes: Sizes) -> dict[str, Any]:
    """Measure steps of a large model."""
    import torch

    from pyaccount.integrations.ghost import GhostClipping, separate_losses
    from pyaccount.training.device import DeviceNoise
    from pyaccount.training.torch import PrivateOptimizer

    model = language_model(sizes.width, sizes.layers, sizes.words, sizes.length).to(sizes.device).train()
    ids = torch.randint(sizes.words, (sizes.texts, sizes.length), generator=torch.Generator().manual_seed(1))
    batch = {"input_ids": ids.to(sizes.device), "labels": ids.to(sizes.device)}
    sgd = torch.optim.SGD(model.parameters(), lr=1e-4)
    rounds = sizes.turns + 1

    def losses(net: Any, records: dict[str, Any]) -> Any:
        with separate_losses(net, len(records["input_ids"])):
            return net(**records).loss

    def plain() -> None:
        sgd.zero_grad()
        model(**batch).loss.backward()
        sgd.step()

    @contextlib.contextmanager
    def ghosts(run: Any) -> Iterator[Any]:
        ghost = GhostClipping(model, losses, run=run)
        try:
            yield ghost
        finally:
            ghost.close()

    def clipped(run: Any) -> None:
        with ghosts(run) as ghost:
            for name, sum in ghost.sums(batch).items():
                model.get_parameter(name).grad = sum / sizes.texts
        sgd.step()
        sgd.zero_grad()

    def released(run: Any) -> None:
        optimizer = PrivateOptimizer(sgd, run, model.named_parameters())
        with ghosts(run) as ghost:
            optimizer.add(ghost.sums(batch))
        optimizer.step()

    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        runs = [
            stack.enter_context(opened(folder / str(number), sizes.texts, rounds, **options))
            for number, options in enumerate(({}, {"device_noise": DeviceNoise(sizes.device)}))
        ]
        ways: dict[str, Callable[[], None]] = {
            "without privacy": plain,
            "ghost clipping": lambda: clipped(runs[0]),
            "ghost clipping, released, noise from the key": lambda: released(runs[0]),
            "ghost clipping, released, noise from the device": lambda: released(runs[1]),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        memory: dict[str, float] = {}
        for _ in range(sizes.turns + 1):
            for name, way in ways.items():
                most_memory(sizes.device, reset=True)
                began = synchronised(sizes.device)
                way()
                times[name].append(synchronised(sizes.device) - began)
                memory[name] = most_memory(sizes.device)
    first = next(iter(ways))
    return {
        "parameters": sum(one.numel() for one in model.parameters()),
        **{
            name: {
                "seconds": statistics.median(some[1:]),
                "ratio": statistics.median(one / other for one, other in zip(some[1:], times[first][1:], strict=True)),
                "MB": memory[name],
                "ratio of memory": memory[name] / memory[first],
            }
            for name, some in times.items()
        },
    }


def sharded(sizes: Sizes, rank: int, world: int, folder: Path, queue: Any) -> None:
    """Train some rounds as one of several processes, and put what was measured into the queue."""
    import torch
    from torch import distributed, nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from pyaccount.training.torch import PrivateOptimizer, clipped_sums_of, gathered

    warnings.simplefilter("ignore")
    try:
        device, several = sizes.device, sizes.device == "cuda" and torch.cuda.device_count() >= world
        if device == "cuda":
            torch.cuda.set_device(rank if several else 0)
        distributed.init_process_group(
            "nccl" if several else "gloo", init_method=f"file://{folder}.store", rank=rank, world_size=world
        )
        torch.manual_seed(3)
        layers = [nn.Linear(sizes.sharded_width, 4 * sizes.sharded_width), nn.Linear(4 * sizes.sharded_width, 8)]
        blocks = [nn.Linear(sizes.sharded_width, sizes.sharded_width) for _ in range(sizes.sharded_layers)]
        model = nn.Sequential(*blocks, *layers).to(device)
        mesh = init_device_mesh(device, (world,))
        for layer in (*model, model):
            fully_shard(layer, mesh=mesh)
        generator = torch.Generator().manual_seed(1)
        features = torch.randn(RECORDS, sizes.sharded_width, generator=generator)
        labels = torch.randint(8, (RECORDS,), generator=generator)

        def loss(net: Any, records: dict[str, Any]) -> Any:
            return nn.functional.cross_entropy(net(records["features"]), records["labels"])

        times, sums = [], []
        with opened(folder, sizes.texts, sizes.turns + 1, rank=rank, world=world) as run:
            adam = torch.optim.AdamW(model.parameters(), lr=1e-3)
            optimizer = PrivateOptimizer(adam, run, model.named_parameters())
            most_memory(device, reset=True)
            while run.round < run.rounds:
                began = synchronised(device)
                optimizer.zero_grad()
                indices = run.batch(run.round).shard(rank, world).indices
                with gathered(model):
                    part = {"features": features[indices].to(device), "labels": labels[indices].to(device)}
                    optimizer.add(clipped_sums_of(model, loss, part, run=run, one_by_one=True))
                optimizer.step()
                times.append(synchronised(device) - began)
                whole = [one.full_tensor().detach().cpu().numpy() for one in model.parameters()]
                sums.append(hashlib.sha256(b"".join(np.ascontiguousarray(one).tobytes() for one in whole)).hexdigest())
        queue.put({"seconds": statistics.median(times[1:]), "MB": most_memory(device), "weights": sums})
        distributed.destroy_process_group()
    except Exception:
        queue.put({"error": traceback.format_exc()})


def shards(sizes: Sizes) -> dict[str, Any]:
    """Measure rounds of a sharded model in two processes."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as temporary:
        queues = [context.Queue() for _ in range(2)]
        processes = [
            context.Process(target=sharded, args=(sizes, rank, 2, Path(temporary) / "run", queues[rank]), daemon=True)
            for rank in range(2)
        ]
        for process in processes:
            process.start()
        try:
            found = [queue.get(timeout=240) for queue in queues]
        finally:
            for process in processes:
                process.join(timeout=10)
                process.kill()
    if any("error" in one for one in found):
        return {"error": next(one["error"] for one in found if "error" in one)}
    return {
        "seconds": found[0]["seconds"],
        "MB": [one["MB"] for one in found],
        "both have the same weights": found[0]["weights"] == found[1]["weights"],
        "rounds": len(found[0]["weights"]),
    }


def device_of(sizes: Sizes) -> dict[str, Any] | None:
    """Return what the machine is; None without a GPU."""
    try:
        import torch
    except ModuleNotFoundError:
        return None
    if sizes.device != "cuda":
        from pyaccount.training import device

        # Only a rehearsal draws by the processor's generator, whose seeds are short.
        device.SEEDED = ("cuda", "cpu")
        return {"device": "a rehearsal on the processor: tiny sizes, no figures", "torch": torch.__version__}
    if not torch.cuda.is_available():
        return None
    return {"device": torch.cuda.get_device_name(0), "GPUs": torch.cuda.device_count(), "torch": torch.__version__}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="a file for the result, beside standard output")
    parser.add_argument("--seconds", type=int, default=570)
    parser.add_argument("--rehearse", action="store_true")
    asked = parser.parse_args()
    sizes = TINY if asked.rehearse else FULL
    found = device_of(sizes)
    if found is None:
        print("no GPU")
        return
    warnings.simplefilter("ignore")

    def late(*_: object) -> None:
        raise TimeoutError(f"{asked.seconds} s are over")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(asked.seconds)
    try:
        for part in (noise, step, shards):
            try:
                began = time.perf_counter()
                found[part.__name__] = part(sizes)
                found[part.__name__]["seconds in all"] = time.perf_counter() - began
            except TimeoutError:
                raise
            except Exception:
                found[part.__name__] = {"error": traceback.format_exc()}
    except TimeoutError as error:
        found["ended early"] = str(error)
    signal.alarm(0)
    text = json.dumps(found, indent=2)
    print(text)
    if asked.json is not None:
        asked.json.write_text(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
