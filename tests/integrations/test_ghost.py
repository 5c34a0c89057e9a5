"""Ghost clipping in the trainers of transformers: the sums of `torch.func`, or a refusal with its reason; on models made here."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest
from trained_elsewhere import CORRELATED, starting, trained, with_batches, with_key

from pyaccount import TrainingRun
from pyaccount.errors import RunError

WHY = "ghost clipping is NOT tested here"
os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
torch = pytest.importorskip("torch", reason=f"PyTorch is not installed: {WHY}")
transformers = pytest.importorskip("transformers", reason=f"transformers is not installed: {WHY}")
pytest.importorskip("accelerate", reason=f"accelerate is not installed: {WHY}")
pytest.importorskip("opacus", reason=f"Opacus is not installed: {WHY}")

from pyaccount.integrations.ghost import GhostClipping  # noqa: E402 - after the skips
from pyaccount.integrations.transformers import PrivateTrainer  # noqa: E402

# The libraries warn about each other.
pytestmark = [pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("FutureWarning", "DeprecationWarning")]

RECORDS, ROUNDS, WORDS, LENGTH = 40, 6, 20, 7
DOCUMENT = trained("ghosts", RECORDS, ROUNDS)
started = starting(DOCUMENT, "run")


def llama(**changes: Any) -> Any:
    transformers.set_seed(3)
    sizes = {"hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = transformers.LlamaConfig(
        vocab_size=WORDS,
        num_hidden_layers=2,
        max_position_embeddings=16,
        bos_token_id=0,
        eos_token_id=0,
        attn_implementation="eager",
        **sizes | {"tie_word_embeddings": False} | changes,
    )
    return transformers.LlamaForCausalLM(config)


def gpt2(tied: bool = False) -> Any:
    transformers.set_seed(3)
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16}
    drops = {"attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
    config = transformers.GPT2Config(
        vocab_size=WORDS, bos_token_id=0, eos_token_id=0, tie_word_embeddings=tied, **sizes, **drops
    )
    return transformers.GPT2LMHeadModel(config)


def adapted(net: Any, names: list[str], dropout: float = 0.0) -> Any:
    peft = pytest.importorskip("peft", reason=f"peft is not installed: {WHY}")
    net = peft.get_peft_model(net, peft.LoraConfig(r=2, target_modules=names, lora_dropout=dropout))
    for name, parameter in net.named_parameters():
        if "lora_B" in name:  # which begins with zeros, so that lora_A would have no gradient
            torch.nn.init.normal_(parameter)
    return net


def data(count: int = RECORDS, positions: bool = False) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(1)
    found = []
    for _ in range(count):
        ids = torch.randint(WORDS, (LENGTH,), generator=generator)
        found.append({"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids})
        if positions:
            found[-1]["position_ids"] = torch.arange(LENGTH)
    return found


def arguments(folder: Path, **changes: Any) -> Any:
    usual = {"per_device_train_batch_size": 4, "learning_rate": 0.1, "optim": "sgd", "save_strategy": "no"}
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "lr_scheduler_type": "constant"}
    return transformers.TrainingArguments(str(folder / "model"), **{**usual, **quiet, **changes})


def prepared(
    run: TrainingRun, folder: Path, net: Any, clipping: str, kind: Any = PrivateTrainer, **options: Any
) -> Any:
    """Return a trainer whose model and collator are as in a training, and what clips records."""
    trainer = kind(net, arguments(folder), **{"train_dataset": data(), "run": run, "clipping": clipping, **options})
    trainer.get_train_dataloader()
    net.train()

    def clip(records: list[Any]) -> Any:
        (part,) = trainer.parts(records)
        return trainer._clipped(net, part)

    return clip


def sums(run: TrainingRun, folder: Path, net: Any, clipping: str, records: list[Any], *more: Any, **named: Any) -> Any:
    return prepared(run, folder, net, clipping, *more, **named)(records)


@pytest.mark.parametrize("norm", [0.05, 1.5, 1e6], ids=["all clipped", "some clipped", "none clipped"])
@pytest.mark.parametrize("adapters", [False, True])
def test_the_sums_are_those_of_torch_func(tmp_path: Path, adapters: bool, norm: float) -> None:
    def net() -> Any:
        return adapted(llama(), ["q_proj", "v_proj", "down_proj"]) if adapters else llama()

    with started(tmp_path, clip_norm=norm) as run:
        ghosts, expected = (sums(run, tmp_path, net(), way, data()[:4]) for way in ("ghost", "vectorized"))
        one = sums(run, tmp_path, net(), "ghost", data()[:1])
    assert ghosts.clipped == expected.clipped
    torch.testing.assert_close(dict(ghosts), dict(expected), rtol=1e-5, atol=1e-5 * min(norm, 0.1))
    torch.testing.assert_close(ghosts.losses, expected.losses)
    if norm == 0.05:
        assert float(torch.cat([tensor.flatten() for tensor in one.values()]).norm()) == pytest.approx(norm, rel=1e-5)


def test_groups_are_clipped_to_their_own_norms(tmp_path: Path) -> None:
    two = {"noise": {"multiplier": 0.5, "also": [{"what": "head", "multiplier": 0.5}]}}
    also = {"head": ["lm_head.weight"]}
    with started(tmp_path, two, also_clip_norms={"head": 0.2}) as run:
        ghosts, expected = (sums(run, tmp_path, llama(), way, data()[:4], also=also) for way in ("ghost", "vectorized"))
    assert ghosts.clipped == expected.clipped
    assert len(ghosts.clipped) == 2
    torch.testing.assert_close(ghosts, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("changes", [{}, CORRELATED], ids=["poisson", "correlated"])
def test_a_training_is_that_of_one_record_after_the_other(
    tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    key, ended = [], []
    for way in ("ghost", "one-by-one"):
        with with_key(started(tmp_path / way, changes | with_batches(DOCUMENT, 1.2)), key, monkeypatch) as run:
            net = llama()
            before = copy.deepcopy(net.state_dict())
            trainer = PrivateTrainer(net, arguments(tmp_path / way), train_dataset=data(), run=run, clipping=way)
            assert trainer.train().global_step == run.released == ROUNDS
            assert any(not len(run.batch(number).indices) for number in range(ROUNDS))
        ended.append(net.state_dict())
        # Nothing of the hooks is left on the model.
        assert not any(module._forward_hooks or module._backward_hooks for module in net.modules())
        assert set(vars(net)) - set(vars(llama())) <= {"_is_accelerate_prepared"}
        assert copy.deepcopy(net)(**{name: one[None] for name, one in data()[0].items()}).loss > 0
    assert any(not torch.equal(before[name], one) for name, one in ended[0].items())
    torch.testing.assert_close(*ended, rtol=1e-4, atol=1e-5)


def test_dropout_is_drawn_once_for_both_passes(tmp_path: Path) -> None:
    """The contribution of a record has the clip norm, whatever was dropped: norm and gradient are of one forward pass."""
    with started(tmp_path, clip_norm=0.01) as run:
        clip = prepared(run, tmp_path, adapted(llama(), ["q_proj", "v_proj"], dropout=0.5), "ghost")
        found = []
        for _ in range(4):
            one = clip(data()[:1])
            found.append(torch.cat([tensor.flatten() for tensor in one.values()]))
            assert float(found[-1].norm()) == pytest.approx(0.01, rel=1e-4)
    assert not torch.equal(found[0], found[1])


def test_a_record_without_a_gradient_contributes_nothing(tmp_path: Path) -> None:
    records = data()[:3]
    nothing = {**records[1], "labels": torch.full((LENGTH,), -100)}
    with started(tmp_path) as run:
        found = sums(run, tmp_path, llama(), "ghost", [records[0], nothing, records[2]])
        expected = sums(run, tmp_path, llama(), "ghost", [records[0], records[2]])
        empty = sums(run, tmp_path, llama(), "ghost", [nothing])
    torch.testing.assert_close(found, expected)
    assert not any(one.any() for one in empty.values())
    assert found.losses.isnan().tolist() == [False, True, False]


def test_tied_parameters_and_shared_positions_are_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        for net in (llama(tie_word_embeddings=True), gpt2(tied=True)):
            with pytest.raises(RunError, match=r"Parameter tying is not supported.*tie_word_embeddings=False"):
                sums(run, tmp_path, net, "ghost", data()[:4])
        with pytest.raises(RunError, match=r"wpe\.weight has norms of 1 records, and there are 2.*position_ids"):
            sums(run, tmp_path, gpt2(), "ghost", data()[:4])
        assert run.released == 0

        class WithPositions(PrivateTrainer):  # type: ignore[misc]
            """Makes positions for each record."""

            def _prepare_inputs(self, inputs: Any) -> Any:
                many, length = inputs["input_ids"].shape
                return super()._prepare_inputs({**inputs, "position_ids": torch.arange(length).repeat(many, 1)})

        records = data(4, positions=True)
        ghosts = sums(run, tmp_path, gpt2(), "ghost", records, WithPositions)
        expected = sums(run, tmp_path, gpt2(), "one-by-one", records)
    torch.testing.assert_close(ghosts, expected, rtol=1e-4, atol=1e-6)


class Mixing(transformers.LlamaForCausalLM):  # type: ignore[misc]
    """Looks at all records of a batch."""

    def forward(self, input_ids: Any = None, attention_mask: Any = None, labels: Any = None, **_: Any) -> Any:
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        logits = self.lm_head(hidden - hidden.mean(dim=0, keepdim=True) * 0.5)
        return {"loss": self.loss_function(logits, labels, vocab_size=WORDS), "logits": logits}


def test_records_that_meet_are_refused(tmp_path: Path) -> None:
    transformers.set_seed(3)
    net = Mixing(llama().config)
    with (
        started(tmp_path) as run,
        pytest.raises(RunError, match=r"of a record tried is .* not exact for this model"),
    ):
        sums(run, tmp_path, net, "ghost", data()[:4])


class ParameterOutside(transformers.LlamaForCausalLM):  # type: ignore[misc]
    """Uses a parameter of a layer without running the layer."""

    def forward(self, input_ids: Any = None, attention_mask: Any = None, labels: Any = None, **_: Any) -> Any:
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        logits = torch.nn.functional.linear(hidden, self.lm_head.weight)
        return {"loss": self.loss_function(logits, labels, vocab_size=WORDS), "logits": logits}


def test_a_parameter_without_a_norm_is_refused(tmp_path: Path) -> None:
    transformers.set_seed(3)
    net = ParameterOutside(llama().config)
    with started(tmp_path) as run, pytest.raises(RunError, match=r"no norm for lm_head\.weight"):
        sums(run, tmp_path, net, "ghost", data()[:4])


def classifier() -> Any:
    transformers.set_seed(3)
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    net = transformers.BertForSequenceClassification(config)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    for parameter in net.bert.embeddings.parameters():  # whose positions are shared
        parameter.requires_grad_(False)
    return net


class OfClassifier(PrivateTrainer):  # type: ignore[misc]
    """Has a loss of each record for a model that computes a mean itself."""

    def example_losses(self, model: Any, examples: Any) -> Any:
        given = {name: tensor for name, tensor in examples.items() if name != "labels"}
        return torch.nn.functional.cross_entropy(model(**given).logits, examples["labels"].flatten(), reduction="none")


def test_a_loss_over_all_records_is_refused_unless_it_is_overridden(tmp_path: Path) -> None:
    records = [{**one, "labels": torch.tensor(number % 2)} for number, one in enumerate(data())]

    def found(run: TrainingRun, clipping: str, kind: Any) -> Any:
        return sums(run, tmp_path, classifier(), clipping, records[:4], kind, train_dataset=records)

    with started(tmp_path) as run:
        with pytest.raises(RunError, match=r"loss of 2 records has shape \(\).*override example_losses"):
            found(run, "ghost", PrivateTrainer)
        ghosts, expected = found(run, "ghost", OfClassifier), found(run, "one-by-one", PrivateTrainer)
    torch.testing.assert_close(ghosts, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("unfrozen", [True, False])
def test_other_parameters_than_at_the_beginning_are_refused(tmp_path: Path, unfrozen: bool) -> None:
    with started(tmp_path) as run:
        net = llama()
        net.model.embed_tokens.weight.requires_grad_(not unfrozen)
        clip = prepared(run, tmp_path, net, "ghost")
        clip(data()[:4])
        net.model.embed_tokens.weight.requires_grad_(unfrozen)
        with pytest.raises(RunError, match=r"model\.embed_tokens\.weight was frozen or unfrozen after the training"):
            clip(data()[:4])
        assert run.released == 0


@pytest.mark.parametrize(
    ("name", "value"), [("bf16", True), ("gradient_checkpointing", True), ("label_smoothing_factor", 0.1)]
)
def test_arguments_that_hide_the_norms_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    args = arguments(tmp_path, **{name: value})
    with started(tmp_path) as run, pytest.raises(RunError, match=f"TrainingArguments.{name}"):
        PrivateTrainer(llama(), args, train_dataset=data(), run=run, clipping="ghost")


def test_half_precision_is_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        with pytest.raises(RunError, match=r"parameters of torch\.bfloat16"):
            sums(run, tmp_path, llama().to(torch.bfloat16), "ghost", data()[:4])
        assert run.released == 0


class Keeping(transformers.LlamaForCausalLM):  # type: ignore[misc]
    """Counts the words of records in a buffer."""

    def forward(self, input_ids: Any = None, attention_mask: Any = None, labels: Any = None, **_: Any) -> Any:
        self.words.data.add_(torch.bincount(input_ids.flatten(), minlength=WORDS))
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, labels=labels)


@pytest.mark.parametrize("way", ["ghost", "one-by-one"])
def test_models_that_keep_something_of_records_are_refused(tmp_path: Path, way: str) -> None:
    transformers.set_seed(3)
    net = Keeping(llama().config)
    net.register_parameter("words", torch.nn.Parameter(torch.zeros(WORDS, dtype=torch.int64), requires_grad=False))
    with (
        started(tmp_path) as run,
        pytest.raises(RunError, match="words: the forward pass of the model changes this"),
    ):
        sums(run, tmp_path, net, way, data()[:4])


class Signed(torch.nn.Module):  # type: ignore[misc]
    """A layer whose outputs are added up with signs of the data, so that the gradients of positions may cancel out."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, batch: Any) -> Any:
        return (self.layer(batch["x"])[..., 0] * batch["sign"]).sum(1)


@pytest.mark.parametrize("scale", [1.0, 1e2, 1e4, 1e6])
def test_contributions_are_at_most_the_clip_norm_where_positions_cancel_out(tmp_path: Path, scale: float) -> None:
    """The gradient of a record is the difference of its positions, far below their size."""
    torch.manual_seed(0)
    linear = torch.nn.Linear(8, 4, bias=False)
    torch.nn.init.normal_(linear.weight, std=0.1)
    with started(tmp_path, clip_norm=1.0) as run:
        ghost = GhostClipping(Signed(linear), lambda model, batch: model(batch), run=run)
        for _ in range(30):
            one = torch.randn(1, 1, 8) * scale
            away = torch.randn(1, 1, 8)
            away *= min(scale, scale * 2e-4 + 2) / away.norm()
            batch = {"x": torch.cat([one, one + away], 1), "sign": torch.tensor([[1.0, -1.0]])}
            (found,) = ghost.sums(batch).values()
            assert float(found.double().norm()) <= 1.0 + 1e-6
            true = (batch["x"][0, 0].double() - batch["x"][0, 1].double()).norm()
            # What the margin takes from the contribution is a part of the size of the positions.
            assert float(found.double().norm()) >= min(1.0, float(true)) / (1.0 + 1e-5 * scale / float(true))


@pytest.mark.parametrize("positions", [1, 3, 40])
@pytest.mark.parametrize("kind", ["linear", "embedding", "padded embedding"])
def test_norms_are_those_of_the_gradients_of_single_records(tmp_path: Path, positions: int, kind: str) -> None:
    """The oracle is a backward pass for each record in double precision; 40 positions are more than a row of the weights has."""
    torch.manual_seed(1)
    layer = (
        torch.nn.Linear(5, 3)
        if kind == "linear"
        else torch.nn.Embedding(4, 3, padding_idx=0 if "padded" in kind else None)
    )
    rows = (6, positions, 5) if kind == "linear" else (6, positions)
    inputs = torch.randn(rows) if kind == "linear" else torch.randint(4, rows)
    batch = {"x": inputs, "sign": torch.randn(6, positions)}
    model = Signed(layer)
    with started(tmp_path, clip_norm=0.3) as run:
        found = GhostClipping(copy.deepcopy(model), lambda model, batch: model(batch), run=run).sums(batch)
    double = model.double()
    expected = {name: torch.zeros_like(one) for name, one in double.named_parameters()}
    for index in range(6):
        given = {name: one[index : index + 1] for name, one in batch.items()}
        given = {name: one.double() if one.is_floating_point() else one for name, one in given.items()}
        gradients = torch.autograd.grad(double(given).sum(), list(double.parameters()))
        norm = torch.cat([one.flatten() for one in gradients]).norm()
        for name, one in zip(expected, gradients, strict=True):
            expected[name] += one * min(1.0, 0.3 / float(norm.clamp_min(1e-30)))
    torch.testing.assert_close(dict(found), expected, rtol=1e-4, atol=1e-5, check_dtype=False)


def test_frequencies_of_words_in_a_batch_are_refused(tmp_path: Path) -> None:
    with started(tmp_path) as run:
        ghost = GhostClipping(
            Signed(torch.nn.Embedding(4, 3, scale_grad_by_freq=True)), lambda model, batch: model(batch), run=run
        )
        with pytest.raises(RunError, match="scale_grad_by_freq=True divides"):
            ghost.sums({"x": torch.tensor([[1, 2]]), "sign": torch.ones(1, 2)})


class Meeting(PrivateTrainer):  # type: ignore[misc]
    """Makes the usual mistake: the loss of each record is the mean over the batch."""

    def example_losses(self, model: Any, examples: Any) -> Any:
        return self.example_loss(model, examples).expand(len(examples["input_ids"]))


def shorter(record: dict[str, Any]) -> dict[str, Any]:
    return {name: one[:-1] for name, one in record.items()}


def unusable(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "labels": torch.full_like(record["labels"], -100)}


@pytest.mark.parametrize(
    "first",
    [
        lambda one: [shorter(one)],
        lambda one: [unusable(one)],
        lambda one: [one],
        lambda one: [unusable(one), shorter(one)],
    ],
    ids=["another shape", "not finite", "equal", "both"],
)
def test_two_different_records_are_tried_whatever_the_first_ones_are(tmp_path: Path, first: Any) -> None:
    with started(tmp_path) as run:
        records = [*first(data()[0]), *data()][:RECORDS]
        net = llama()
        trainer = Meeting(net, arguments(tmp_path), train_dataset=records, run=run, clipping="ghost")
        with pytest.raises(RunError, match=r"the loss of a record tried is .* not exact for this model"):
            trainer.train()
        assert run.released == 0


def test_without_two_records_of_one_shape_each_is_clipped_in_a_pass_of_its_own(tmp_path: Path) -> None:
    """Then records cannot meet, also not in later parts of several records."""
    records = [data()[0]] * RECORDS
    with started(tmp_path, clip_norm=0.05) as run:
        found = sums(run, tmp_path, llama(), "ghost", data()[:4], Meeting, train_dataset=records)
        expected = sums(run, tmp_path, llama(), "one-by-one", data()[:4])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
    assert found.losses.shape == (4,)


def test_without_a_finite_gradient_nothing_is_tried(tmp_path: Path) -> None:
    records = [unusable(one) for one in data()]
    with started(tmp_path) as run:
        trainer = PrivateTrainer(llama(), arguments(tmp_path), train_dataset=records, run=run, clipping="ghost")
        with pytest.raises(RunError, match="none of the records tried has a finite loss and gradient"):
            trainer.train()
        ghost = GhostClipping(Signed(torch.nn.Linear(2, 1)), lambda model, batch: model(batch), run=run)
        missing = {"x": torch.tensor([[[1.0, float("nan")]], [[1.0, 2.0]]]), "sign": torch.ones(2, 1)}
        with pytest.raises(RunError, match="a record tried has a loss or a gradient that is not finite"):
            ghost.check(missing, lambda model, batch: model(batch).sum())
