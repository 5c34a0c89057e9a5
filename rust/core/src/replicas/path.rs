//! The path of a tuple through the states of a chain.
//!
//! **Steps that are passed over.** In most steps nobody joins. That is so where uT̃ ≤ A, with u the step's uniform
//! number and A the contribution of the step if nobody joins. [`At::nobody`] is a lower bound on A/T̃ for each class of
//! states, with A and T̃ as they are computed. If u is at most this bound then uT̃ ≤ A holds exactly. It holds for the
//! rounded product too, because A is a double. So computing with the state itself would give the same answer. Such a
//! step only makes the replicas a step older. This is done for many steps at once, when somebody may join. A class
//! consists of the states with the same number of replicas that may not join and the same youngest age; while that
//! number does not change, a step moves a state to the class of the next age.

use crate::replicas::chain::{youngest, Chain};
use crate::replicas::tables::At;

/// The state of a tuple.
#[derive(Debug, Clone, Default)]
pub(super) struct Path {
    /// The kinds of its replicas, in ascending order, before the steps that were passed over.
    kinds: Vec<usize>,
    /// How many of these are busy, and how many of the busy ones may not join.
    busy: usize,
    waiting: usize,
    /// v_i of the state before step i; `None` if a step was passed over since it was computed.
    value: Option<f64>,
    /// The part of ln of the tuple's weight in addition to the constant.
    pub log_factor: f64,
    /// The number of steps that were passed over because nobody joins them, and its maximum before more replicas may
    /// join.
    passed: usize,
    most_passed: usize,
    /// The index of the state's class in [`At::nobody`] after them, and by how much a step that nobody joins moves it.
    class: usize,
    stride: usize,
}

impl Path {
    /// Initialises the path before the first step, where v_1 is the value that `write` returns, with the kinds that it
    /// writes.
    pub(super) fn begin(&mut self, chain: &Chain, write: impl FnOnce(&mut [usize]) -> f64) {
        self.log_factor = 0.0;
        self.kinds.clear();
        self.kinds.resize(chain.most_busy, chain.free);
        self.value = Some(write(&mut self.kinds));
        self.busy = chain.most_busy;
        self.settle(chain);
    }

    /// Returns the kinds of the busy replicas, if no step was passed over.
    pub(super) fn kinds(&self) -> &[usize] {
        debug_assert_eq!(self.passed, 0);
        &self.kinds[..self.busy]
    }

    /// Returns whether a replica joined in the step before.
    #[inline]
    pub(super) fn young(&self) -> bool {
        self.passed == 0 && self.kinds[0] == 0
    }

    /// Returns how many replicas may not join, if no step was passed over.
    pub(super) fn waiting(&self) -> usize {
        debug_assert_eq!(self.passed, 0);
        self.waiting
    }

    /// Returns whether a quick check with this uniform number in (0, 1] shows that nobody joins a step.
    #[inline]
    pub(super) fn nobody(&mut self, chain: &Chain, at: &At, uniform: f64) -> bool {
        if self.passed == self.most_passed {
            self.age(chain);
        }
        at.nobody.get(self.class).is_some_and(|least| uniform <= *least)
    }

    /// Passes over a step that nobody joins: its effect is computed when a later one is not passed over.
    #[inline]
    pub(super) fn pass(&mut self) {
        self.passed += 1;
        self.class += self.stride;
    }

    /// Takes the steps that were passed over, except for the value.
    #[inline(never)]
    fn age(&mut self, chain: &Chain) {
        self.value = None;
        self.kinds[..self.busy].iter_mut().for_each(|kind| *kind += self.passed);
        self.settle(chain);
    }

    /// Updates the derived numbers from the kinds of the busy replicas, which may be above the kind of free replicas
    /// now.
    #[inline]
    fn settle(&mut self, chain: &Chain) {
        while let [.., oldest] = &mut self.kinds[..self.busy] {
            if *oldest < chain.free {
                break;
            }
            *oldest = chain.free;
            self.busy -= 1;
        }
        self.waiting = chain.waiting(&self.kinds, self.busy);
        self.passed = 0;
        self.class = chain.class(self.waiting, self.kinds[0]);
        // The next to be able to join is the oldest of those that may not; or an age that may join becomes free.
        (self.most_passed, self.stride) = match &self.kinds[..self.waiting] {
            [.., oldest] => (chain.available - oldest, 1),
            [] if self.busy > 0 => (1, 1),
            [] => (usize::MAX, 0),
        };
    }

    /// Returns how many replicas join a step, and the v of the next state, by a uniform number in (0, 1]; `None` if the
    /// tuple is given up.
    #[inline(never)]
    pub(super) fn choose(&mut self, chain: &Chain, at: &At, uniform: f64) -> Option<(usize, f64)> {
        if self.passed > 0 {
            self.age(chain);
        }
        let (factors, waiting) = (at.factors, &self.kinds[..self.waiting]);
        let before = self.value.unwrap_or_else(|| at.value_before(chain.number(self.kinds())));
        let joining = chain.joining(factors, waiting.len());
        let near = factors.near.as_ref().map(|near| near.joining(youngest(&self.kinds)));
        let weigh = |j: usize, weight: f64| near.map_or(weight, |near| weight * near[j]);
        let field: f64 = self.kinds().iter().map(|&kind| factors.by_kind[kind]).product();
        let total = if at.bridge {
            let (mut power, mut sum) = (1.0, 0.0);
            for (j, &weight) in joining.iter().enumerate() {
                sum += weigh(j, weight) * power * at.value(chain.following(waiting, j));
                power *= field;
            }
            self.log_factor += libm::log(sum / before);
            sum
        } else {
            at.growth * before
        };
        let target = uniform * total;
        let (mut sum, mut power) = (0.0, 1.0);
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

    /// Takes the step in which this many join, to a state with this v.
    #[inline]
    pub(super) fn follow(&mut self, chain: &Chain, (joined, value): (usize, f64)) {
        if joined == 0 {
            self.pass();
            return;
        }
        self.value = Some(value);
        // Replicas that may join and do not are free; those that joined come before all others.
        let (waiting, busy) = (self.waiting, self.waiting + joined);
        for k in (0..waiting).rev() {
            self.kinds[k + joined] = self.kinds[k] + 1;
        }
        self.kinds[..joined].fill(0);
        if self.busy > busy {
            self.kinds[busy..self.busy].fill(chain.free);
        }
        self.busy = busy;
        self.settle(chain);
    }
}
