//! A tuple on its way through the states of a chain.

use crate::replicas::chain::{youngest, Chain};
use crate::replicas::tables::At;

/// Where a tuple is.
#[derive(Debug, Clone, Default)]
pub(super) struct Path {
    /// The kinds of its replicas, in ascending order.
    pub kinds: Vec<usize>,
    /// How many of these are busy.
    pub busy: usize,
    /// v_i of the state before step i.
    pub value: f64,
    /// What ln of the tuple's weight has beside the constant.
    pub log_factor: f64,
}

impl Path {
    /// Before the first step, with all replicas free, where v_1 is this.
    pub(super) fn begin(&mut self, chain: &Chain, value: f64) {
        self.log_factor = 0.0;
        self.kinds.clear();
        self.kinds.resize(chain.order, chain.free);
        self.busy = 0;
        self.value = value;
    }

    /// How many replicas join a step, and the v of the state after it, by a uniform number in (0, 1]; none if the tuple is given up.
    #[inline]
    pub(super) fn choose(&mut self, chain: &Chain, at: &At, uniform: f64) -> Option<(usize, f64)> {
        // Mostly nobody joins, which is found out with the least work. The factors that depend on replicas of age 1 are 1 without them.
        if !at.bridge && (at.factors.near.is_none() || self.kinds[0] > 0) {
            let waiting = &self.kinds[..chain.waiting(&self.kinds, self.busy)];
            let value = at.value(chain.following(waiting, 0));
            let weight = at.factors.joining(chain.order, chain.order - waiting.len())[0];
            if weight * value >= uniform * (at.growth * self.value) {
                return Some((0, value));
            }
        }
        self.choose_slowly(chain, at, uniform)
    }

    /// The same in all cases.
    #[inline(never)]
    fn choose_slowly(&mut self, chain: &Chain, at: &At, uniform: f64) -> Option<(usize, f64)> {
        let factors = at.factors;
        let waiting = &self.kinds[..chain.waiting(&self.kinds, self.busy)];
        let joining = factors.joining(chain.order, chain.order - waiting.len());
        let near = factors.near.as_ref().map(|near| near.joining(youngest(&self.kinds)));
        let weigh = |j: usize, weight: f64| near.map_or(weight, |near| weight * near[j]);
        let field = || -> f64 { self.kinds[..self.busy].iter().map(|&kind| factors.by_kind[kind]).product() };
        let total = if at.bridge {
            let (field, mut power, mut sum) = (field(), 1.0, 0.0);
            for (j, &weight) in joining.iter().enumerate() {
                sum += weigh(j, weight) * power * at.value(chain.following(waiting, j));
                power *= field;
            }
            self.log_factor += libm::log(sum / self.value);
            sum
        } else {
            at.growth * self.value
        };
        let target = uniform * total;
        let (field, mut sum, mut power) = (field(), 0.0, 1.0);
        for (j, &weight) in joining.iter().enumerate() {
            let value = at.value(chain.following(waiting, j));
            sum += weigh(j, weight) * power * value;
            if sum >= target {
                return Some((j, value));
            }
            power *= field;
        }
        None
    }

    /// Take the step in which so many join, to a state with this v.
    #[inline]
    pub(super) fn follow(&mut self, chain: &Chain, (joined, value): (usize, f64)) {
        let waiting = chain.waiting(&self.kinds, self.busy);
        self.value = value;
        if joined == 0 {
            self.kinds[..waiting].iter_mut().for_each(|kind| *kind += 1);
            self.kinds[waiting..self.busy].fill(chain.free);
        } else {
            for k in (0..waiting).rev() {
                self.kinds[k + joined] = self.kinds[k] + 1;
            }
            self.kinds[..joined].fill(0);
            self.kinds[waiting + joined..].fill(chain.free);
        }
        // Those that waited longest may be free now.
        self.busy = waiting + joined;
        while self.busy > 0 && self.kinds[self.busy - 1] == chain.free {
            self.busy -= 1;
        }
    }
}
