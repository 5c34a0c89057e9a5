//! A tuple on its way through the states of a chain.

use crate::replicas::chain::{youngest, Chain};
use crate::replicas::tables::Tables;

/// Where a tuple is.
#[derive(Debug, Clone, Default)]
pub(super) struct Path {
    /// The kinds of its replicas, in ascending order.
    pub kinds: Vec<usize>,
    /// How many of these are busy.
    pub busy: usize,
    /// The state's number.
    pub number: usize,
    /// What ln of the tuple's weight has beside the constant.
    pub log_factor: f64,
}

impl Path {
    /// Before the first step, with all replicas free.
    pub(super) fn begin(&mut self, chain: &Chain) {
        self.log_factor = 0.0;
        self.kinds.clear();
        self.kinds.resize(chain.order, chain.free);
        self.number = chain.multisets.count() - 1;
        self.busy = 0;
    }

    /// How many replicas join step i, from 1 on, and the state's number after it, by a uniform number in (0, 1]; none if the tuple is
    /// given up.
    #[inline]
    pub(super) fn choose(&mut self, tables: &Tables, i: usize, uniform: f64) -> Option<(usize, usize)> {
        let chain = &tables.steps.chain;
        let factors = tables.steps.factors(i);
        let waiting = &self.kinds[..chain.waiting(&self.kinds, self.busy)];
        let joining = factors.joining(chain.order, chain.order - waiting.len());
        let near = factors.near.as_ref().map(|near| near.joining(youngest(&self.kinds)));
        // A product with 1 changes nothing.
        let weigh = |j: usize, weight: f64| near.map_or(weight, |near| weight * near[j]);
        let field = || -> f64 { self.kinds[..self.busy].iter().map(|&kind| factors.by_kind[kind]).product() };
        let before = tables.value(i, self.number);
        let total = if tables.bridge() == Some(i) {
            let (field, mut power, mut sum) = (field(), 1.0, 0.0);
            for (j, &weight) in joining.iter().enumerate() {
                sum += weigh(j, weight) * power * tables.value(i + 1, chain.following(waiting, j));
                power *= field;
            }
            self.log_factor += libm::log(sum / before);
            sum
        } else {
            tables.growth(i) * before
        };
        let target = uniform * total;
        let (mut sum, mut power, mut field_of_one) = (0.0, 1.0, 1.0);
        for (j, &weight) in joining.iter().enumerate() {
            let number = chain.following(waiting, j);
            sum += weigh(j, weight) * power * tables.value(i + 1, number);
            if sum >= target {
                return Some((j, number));
            }
            if j == 0 {
                // Mostly nobody joins, and it is not needed.
                field_of_one = field();
            }
            power *= field_of_one;
        }
        None
    }

    /// Take the step in which so many join, to the state with this number.
    #[inline]
    pub(super) fn follow(&mut self, chain: &Chain, (joined, number): (usize, usize)) {
        let waiting = chain.waiting(&self.kinds, self.busy);
        for k in (0..waiting).rev() {
            self.kinds[k + joined] = self.kinds[k] + 1;
        }
        self.kinds[..joined].fill(0);
        self.kinds[waiting + joined..].fill(chain.free);
        self.busy = self.kinds[..waiting + joined].partition_point(|&kind| kind < chain.free);
        self.number = number;
    }
}
