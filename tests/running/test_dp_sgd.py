"""The common questions in one call: the same certificate as that of the document, and messages that name arguments."""

import pytest
from plain_documents import doc

import pyaccount

DOCUMENT = doc(
    "name=DP-SGD adjacency=add-remove group_size=1 epsilon=8 sampling_probability=0.01 iterations=200",
    "sampler=poisson multiplier=solve",
)


def test_what_is_left_out_is_computed() -> None:
    certificate = pyaccount.dp_sgd(epsilon=8, delta=1e-5, sampling_probability=0.01, iterations=200)
    assert certificate.data.guarantee == pyaccount.certify(DOCUMENT).data.guarantee
    sigma = certificate.noise_multiplier
    assert certificate.solved is not None
    assert certificate.solved.value == sigma
    assert certificate.iterations == 200
    assert any("Poisson" in text for text in certificate.assumptions)
    back = pyaccount.dp_sgd(noise_multiplier=sigma, delta=1e-5, sampling_probability=0.01, iterations=200)
    assert back.epsilon_lower <= 8
    assert back.epsilon == pytest.approx(8, rel=1e-3)
    most = pyaccount.dp_sgd(noise_multiplier=sigma, epsilon=8, delta=1e-5, sampling_probability=0.01)
    assert most.iterations in (199, 200, 201)


def test_epochs_are_iterations() -> None:
    answer = pyaccount.dp_sgd(noise_multiplier=1, delta=1e-5, dataset_size=1000, expected_batch_size=10, epochs=2)
    assert answer.iterations == 200


def test_correlated_noise() -> None:
    one = {"dataset_size": 1000, "expected_batch_size": 10, "iterations": 100, "min_separation": 4, "bands": 1}
    certificate = pyaccount.dp_bandmf(**one, noise_multiplier=2, delta=1e-5)
    document = certificate.document()
    assert document.run.sampler.kind == "b-min-sep"
    assert certificate.epsilon_lower <= certificate.epsilon < 8
    # Records that rest take part less often than records that do not.
    assert (
        certificate.epsilon
        < pyaccount.dp_sgd(noise_multiplier=2, delta=1e-5, sampling_probability=0.04, iterations=100).epsilon
    )


@pytest.mark.parametrize(
    ("arguments", "answers"),
    [
        ({"target_epsilon": 8}, ["target_epsilon is no argument", "did you mean epsilon?"]),
        ({"sample_rate": 0.1}, ["did you mean sampling_probability?"]),
        ({"steps": 10}, ["did you mean iterations?"]),
        ({"nose_multiplier": 1}, ["did you mean noise_multiplier?"]),
        ({"max_grad_norm": 1}, ["in units of the clip norm"]),
        ({"quux": 1}, ["it takes noise_multiplier, epsilon"]),
        ({"epsilon": 8, "delta": 1e-5}, ["noise_multiplier and iterations are missing"]),
    ],
)
def test_wrong_arguments_are_answered(arguments: dict[str, float], answers: list[str]) -> None:
    with pytest.raises(pyaccount.DomainError) as error:
        pyaccount.dp_sgd(**arguments)
    assert all(answer in str(error.value) for answer in answers)


def test_wrong_values_name_their_arguments() -> None:
    with pytest.raises(pyaccount.DocumentError) as error:
        pyaccount.dp_sgd(epsilon=8, delta=2, sampling_probability=3, iterations=1)
    assert {problem.path for problem in error.value.problems} == {("delta",), ("sampling_probability",)}
