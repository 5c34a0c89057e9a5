//! All patterns of b-min-sep sampling of one record, for tests of small cases.

/// Every pattern of one record with its probability, by drawing round after round.
pub(crate) fn patterns(b: usize, p: f64, warm: bool, n: usize) -> Vec<(Vec<usize>, f64)> {
    #[allow(clippy::cast_precision_loss)] // small
    let total = 1.0 + (b as f64 - 1.0) * p;
    let starts: Vec<(usize, f64)> = if warm {
        std::iter::once((0, 1.0 / total)).chain((1..b).map(|wait| (wait, p / total))).collect()
    } else {
        vec![(0, 1.0)]
    };
    let mut found = Vec::new();
    let mut open: Vec<(usize, Vec<usize>, f64)> = starts.into_iter().map(|(wait, q)| (wait, vec![], q)).collect();
    while let Some((round, taken, q)) = open.pop() {
        if round >= n {
            found.push((taken, q));
            continue;
        }
        open.push((round + 1, taken.clone(), q * (1.0 - p)));
        open.push((round + b, [taken, vec![round]].concat(), q * p));
    }
    found
}

/// Cx, for the columns that a pattern takes part in.
pub(crate) fn mean(coefficients: &[f64], pattern: &[usize], n: usize) -> Vec<f64> {
    let mut sum = vec![0.0; n];
    for &round in pattern {
        for (row, c) in sum[round..].iter_mut().zip(coefficients) {
            *row += c;
        }
    }
    sum
}
