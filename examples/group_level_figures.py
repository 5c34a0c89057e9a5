"""Figures 1 and 2 of arXiv:2401.10294 as tables: ε of groups of k records, CIFAR-10, 20 epochs of 100 iterations, δ = 1e-6.

For each noise multiplier and group size: the certified ε, what the black-box group lemma gives, and k times the ε of a
single record. Fixed-size batches use doubled noise, as in the paper, and come out close to Poisson sampling.

    python examples/group_level_figures.py --noise 1 2 --groups 1 2 4 8 16 32 64
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyaccount

HERE = Path(__file__).parent
FIGURES = {
    "Poisson sampling": ("group-level-poisson.yaml", 1.0),
    "fixed-size batches, doubled noise": ("group-level-fixed-size.yaml", 2.0),
}


def shown(value: float | None) -> str:
    return "none above δ = 1e-280" if value is None else f"{value:.5g}"


def figure(title: str, document: str, factor: float, noises: list[float], groups: list[int]) -> None:
    print(f"\n{title}\n{'σ':>6} {'k':>4} {'ε at most':>12} {'black-box lemma':>22} {'k · ε(1)':>12}")
    for noise in noises:
        single = None
        for group in sorted({1, *groups}):
            overrides = [f"noise.multiplier={factor * noise}", f"privacy.group_size={group}", "accounting.profile=[]"]
            certificate = pyaccount.certify(HERE / document, overrides=overrides)
            single = certificate.epsilon if group == 1 else single
            lemma = certificate.data.group_lemma
            if group in groups:
                black_box = certificate.epsilon if lemma is None else lemma.epsilon
                print(
                    f"{noise:6g} {group:4d} {certificate.epsilon:12.5g} {shown(black_box):>22} {group * single:12.5g}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--noise", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    arguments = parser.parse_args()
    for title, (document, factor) in FIGURES.items():
        figure(title, document, factor, arguments.noise, arguments.groups)


if __name__ == "__main__":
    main()
