//! Measures how long the stages of the kernel take: `cargo run --release -p pyaccount-core --example kernel`.

#![allow(clippy::cast_precision_loss, clippy::cast_lossless, clippy::inline_always, clippy::format_push_string)]

use std::sync::Arc;
use std::time::Instant;

use pyaccount_core::montecarlo::claims::betting::BetTable;
use pyaccount_core::montecarlo::gradients::estimates::GradientJob;
use pyaccount_core::montecarlo::gradients::gradient::simulate_gradient;
use pyaccount_core::montecarlo::kernels::bins::BinsKernel;
use pyaccount_core::montecarlo::kernels::correlate::Correlator;
use pyaccount_core::montecarlo::kernels::renewal::{RenewalKernel, RenewalScratch};
use pyaccount_core::montecarlo::mechanism::{Mechanism, Samples};
use pyaccount_core::montecarlo::proposals::balanced::{simulate_balanced, BalancedJob};
use pyaccount_core::montecarlo::proposals::components::{Component, Mixture, UNITS};
use pyaccount_core::montecarlo::proposals::drawn::Part;
use pyaccount_core::montecarlo::proposals::replicated::Replicated;
use pyaccount_core::montecarlo::simulate::{simulate, Job};
use pyaccount_core::montecarlo::source::Source;
use pyaccount_core::montecarlo::stream::{Stream, StreamKey, SHARD};
use pyaccount_core::montecarlo::truncation::truncated::TruncatedKernel;
use pyaccount_core::montecarlo::weight_bounds::Direction;
use pyaccount_core::replicas::Replicas;
use pyaccount_core::run::{pool, Run};
use pyaccount_core::vector::{instruction_sets, splat, with_vectors, Lanes, Vector, Vectored};

/// A source that draws nothing, so that only correlation and recursion are timed.
struct Nothing;

impl Source for Nothing {
    fn begin<V: Vector>(&mut self, patterns: &mut Vec<Vec<(usize, f64)>>) {
        patterns.clear();
    }
    fn fill<V: Vector>(&mut self, _: &[f64], _: usize, _: &mut [Lanes], _: &mut [Vec<(usize, f64)>]) {}
}

enum Stage<'a> {
    Noise(&'a mut Stream, &'a mut [Lanes]),
    Correlation(&'a Correlator, &'a mut [Lanes], &'a mut [Lanes], &'a mut Vec<[Lanes; 2]>),
    Rest(&'a RenewalKernel, &'a mut RenewalScratch),
}

impl Vectored for Stage<'_> {
    type Output = ();
    #[inline(always)]
    fn run<V: Vector>(self) {
        match self {
            Stage::Noise(stream, rows) => {
                let mut drawing = stream.take::<V>();
                for pair in rows.chunks_exact_mut(2) {
                    let (first, second) = drawing.normals();
                    first.store(&mut pair[0]);
                    second.store(&mut pair[1]);
                }
                stream.put_back(drawing);
            }
            Stage::Correlation(correlator, rows, sums, workspace) => {
                correlator.correlate::<V>(rows, correlator.block(), sums, workspace);
            }
            Stage::Rest(kernel, scratch) => {
                std::hint::black_box(kernel.ratios::<V, _>(None, false, &mut Nothing, scratch));
            }
        }
    }
}

/// Returns the median time of one call in nanoseconds.
fn timed(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..21)
        .map(|_| {
            let began = Instant::now();
            for _ in 0..20 {
                work();
            }
            began.elapsed().as_secs_f64() * 1e9 / 20.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[10]
}

/// Returns the nanoseconds per sample and step of noise, correlation and recursion.
fn stages(kernel: &RenewalKernel) -> [f64; 3] {
    let n = kernel.law().iterations();
    let correlator = kernel.correlator();
    let mut rows = vec![splat(0.5); correlator.block() + correlator.tail()];
    let (mut sums, mut workspace) = (vec![splat(0.0); correlator.block()], Vec::new());
    let mut stream = Stream::new(StreamKey { seed: 1, purpose: 0, candidate: 0, direction: 0 }, 0);
    let block = correlator.block();
    let noise = timed(|| with_vectors(Stage::Noise(&mut stream, &mut rows[..block]))) / (8 * block) as f64;
    let blocks = n.div_ceil(block) as f64;
    let correlation = timed(|| with_vectors(Stage::Correlation(correlator, &mut rows, &mut sums, &mut workspace)))
        * blocks
        / (8 * n) as f64;
    let mut scratch = RenewalScratch::default();
    let rest = timed(|| with_vectors(Stage::Rest(kernel, &mut scratch))) / (8 * n) as f64;
    [noise, correlation, rest - correlation]
}

fn main() {
    println!("{:?}", instruction_sets());
    for count in [20, 100, 400] {
        println!("{count} bins: {}", timed_gradients(&bins(count, 1.0), bins(count, 1.001)));
    }
    for (n, b, bands, rate, mean_scale) in [
        (1024, 64, 32, 0.01, 1.0),
        (2000, 16, 16, 0.01, 1.0),
        (7200, 256, 256, 1793.0 / 14_745_600.0, 1.0),
        (2000, 64, 64, 0.01, 1.0),
        (2000, 64, 64, 0.01, 1.9),
        (2000, 64, 64, 0.01, 0.0),
        (1024, 64, 32, 0.01, 0.0),
    ] {
        let c = column(bands, 1.0);
        let p = rate / (1.0 - rate * (b as f64 - 1.0));
        let kernel = Arc::new(RenewalKernel::new(c.clone(), n, b, p, true).unwrap());
        let [noise, correlation, recursion] = stages(&kernel);
        println!("    noise {noise:.2}, correlation {correlation:.2}, recursion {recursion:.2} ns per sample and step");
        let plain = timed_shards(&Mechanism::from(Arc::clone(&kernel)), p, mean_scale, n);
        println!("n={n} b={b} bands={bands} mean_scale={mean_scale}:{plain}");
        if mean_scale.to_bits() == 1.0f64.to_bits() {
            let near = c.iter().map(|x| 1.001 * x).collect();
            let near = RenewalKernel::new(near, n, b, p, true).unwrap().into();
            println!("    {}", timed_gradients(&Mechanism::from(Arc::clone(&kernel)), near));
        }
        if n == 7200 {
            // A batch has 1793 of 14,745,600 records on average: the limit 2048 truncates rarely, the limit 1793 in
            // nearly every sample.
            for limit in [2048, 1793] {
                let truncated = TruncatedKernel::new(Arc::clone(&kernel), 14_745_600, limit).unwrap();
                let line = timed_shards(&Mechanism::from(truncated), p, mean_scale, n);
                println!("truncated to {limit}:{line}");
            }
        }
    }
    for (b, order, sigma, block) in [(8, 10, 4.13, None), (64, 3, 1.6, None), (16, 15, 4.55, Some(2))] {
        let (n, p) = (2000, 0.01 / (1.0 - 0.01 * (b as f64 - 1.0)));
        let kernel = Arc::new(RenewalKernel::new(column(b, sigma), n, b, p, true).unwrap());
        let power =
            Replicated::new(&Mechanism::from(kernel), Replicas { order, most_busy: None, block }, &Run::default())
                .unwrap();
        let line = timed_samples(&(Arc::new(power) as Arc<dyn Samples>), Direction::Remove, n);
        println!("n={n} b={b}, power {order}, block {block:?}:{line}");
    }
}

/// Returns the first entries of the column of the square root matrix, scaled to norm 1/σ.
fn column(bands: usize, sigma: f64) -> Vec<f64> {
    let mut c = vec![1.0f64];
    for j in 1..bands {
        let j = j as f64;
        c.push(c.last().unwrap() * (2.0 * j - 1.0) / (2.0 * j));
    }
    let norm = sigma * c.iter().map(|x| x * x).sum::<f64>().sqrt();
    c.iter().map(|x| x / norm).collect()
}

/// Returns a mechanism of bins whose modes have equal norms and all overlap slightly.
fn bins(count: usize, scale: f64) -> Mechanism {
    let entry = |k: usize| scale * if k.is_multiple_of(count + 1) { 1.0 } else { 0.2 };
    BinsKernel::new(&(0..count * count).map(entry).collect::<Vec<f64>>(), count).unwrap().into()
}

/// Returns the nanoseconds of samples that estimate a δ of about 1e-3, without and with its derivatives, first with
/// samples of the matrix itself and then with samples of a matrix close to it.
fn timed_gradients(mechanism: &Mechanism, near: Mechanism) -> String {
    let key = StreamKey { seed: 1, purpose: 0, candidate: 0, direction: 0 };
    let components = vec![(Component::Tilted(0.0), UNITS / 8), (Component::Tilted(1.0), UNITS - UNITS / 8)];
    let (direction, epsilon) = (Direction::Remove, 0.0);
    let parts = vec![(mechanism.clone(), 1)];
    let mixture = Mixture { parts, direction, components: components.clone() };
    let balanced = BalancedJob { mixture, curve: None, epsilons: vec![epsilon], key };
    let job = |mechanism: Mechanism, origin: &Mechanism| {
        let (origin, components) = (origin.clone(), components.clone());
        GradientJob { mechanism, origin, direction, components, epsilon, key }
    };
    let (own, other) = (job(mechanism.clone(), mechanism), job(near, mechanism));
    let shards = 4;
    let timed = |work: &(dyn Fn() + Sync)| {
        let mut times: Vec<f64> = (0..5)
            .map(|_| {
                let began = Instant::now();
                pool(1).unwrap().install(work);
                began.elapsed().as_secs_f64() * 1e9 / (shards * SHARD as u64) as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[2]
    };
    let plain = timed(&|| drop(simulate_balanced(&balanced, 0, shards, &Run::default()).unwrap()));
    let [own, other] =
        [own, other].map(|job| timed(&|| drop(simulate_gradient(&job, 0, shards, &Run::default()).unwrap())));
    format!(
        "δ {plain:.0} ns per sample, with derivatives {own:.0} ({:.2} times), of a matrix beside it {other:.0} ({:.2} times)",
        own / plain,
        other / plain
    )
}

/// Returns the nanoseconds of whole samples on one thread and on two.
fn timed_shards(mechanism: &Mechanism, parameter: f64, mean_scale: f64, n: usize) -> String {
    let proposed = mechanism.proposed(parameter, mean_scale).unwrap();
    timed_samples(&proposed, if mean_scale == 0.0 { Direction::Add } else { Direction::Remove }, n)
}

fn timed_samples(proposed: &Arc<dyn Samples>, direction: Direction, n: usize) -> String {
    let tables = vec![BetTable { epsilon: 8.0, weight_bound: 1.0, bets: vec![(1e-5, 0.5)] }];
    let key = StreamKey { seed: 1, purpose: 0, candidate: 0, direction: 0 };
    let parts = vec![Part { proposed: Arc::clone(proposed), runs: 1 }];
    let job = Job { parts, direction, curve: None, floor: None, tables, edges: None, key };
    let mut line = String::new();
    for threads in [1, 2] {
        let mut best: Vec<f64> = (0..5)
            .map(|k| {
                let began = Instant::now();
                let job = job.clone();
                pool(threads).unwrap().install(|| simulate(&job, 16 * k, 16, &Run::default()).unwrap());
                began.elapsed().as_secs_f64() * 1e9 / (16.0 * SHARD as f64)
            })
            .collect();
        best.sort_by(f64::total_cmp);
        line += &format!(" {threads} thread(s): {:.0} ns per sample, {:.2} ns per step", best[2], best[2] / n as f64);
    }
    line
}
