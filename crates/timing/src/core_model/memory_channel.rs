//! What brings lines from memory, one after another.

use std::collections::VecDeque;

/// What memory takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryTimes {
    /// Cycles of a walk's reference that memory serves, where it waits for no other.
    pub walk_reference_cycles: f64,
    /// Cycles in which memory transfers a line, and nothing else; 0: any number of lines at once.
    pub line_cycles: f64,
}

/// When memory transfers lines.
#[derive(Clone, Debug)]
pub(super) struct MemoryChannel {
    line_cycles: f64,
    /// From when to when it does without a break, ascending.
    busy: VecDeque<(f64, f64)>,
}

impl MemoryChannel {
    pub(super) fn new(line_cycles: f64) -> Self {
        Self { line_cycles, busy: VecDeque::new() }
    }

    /// Nothing is asked of times before this one any more.
    pub(super) fn forget_before(&mut self, time: f64) {
        while self.busy.front().is_some_and(|busy| busy.1 <= time) {
            self.busy.pop_front();
        }
    }

    /// Transfers a line that is asked for at a time, in the first cycles from then on that are free: when it is there, if
    /// it takes so long where it waits for no other.
    pub(super) fn bring(&mut self, asked: f64, latency: f64) -> f64 {
        if self.line_cycles <= 0.0 {
            return asked + latency;
        }
        let over = self.transferred(asked);
        // From `asked` on nothing is left free before `over`: what lies there becomes one.
        let first = self.first_after(asked);
        let within = self.busy.range(first..).take_while(|busy| busy.0 <= over).count();
        let begin = if within > 0 { self.busy[first].0.min(asked) } else { asked };
        let end = if within > 0 { self.busy[first + within - 1].1.max(over) } else { over };
        self.busy.drain(first..first + within);
        self.busy.insert(first, (begin, end));
        self.there(over, latency)
    }

    /// What [`Self::bring`] would say.
    pub(super) fn would_bring(&self, asked: f64, latency: f64) -> f64 {
        if self.line_cycles <= 0.0 {
            return asked + latency;
        }
        self.there(self.transferred(asked), latency)
    }

    /// When a line asked for at a time is transferred.
    fn transferred(&self, asked: f64) -> f64 {
        let (mut at, mut left) = (asked, self.line_cycles);
        for &(begin, end) in self.busy.range(self.first_after(asked)..) {
            let free = (begin - at).max(0.0);
            if free >= left {
                break;
            }
            left -= free;
            at = end;
        }
        at + left
    }

    /// The transfer is the last part of the latency, and a line is not there before it.
    fn there(&self, transferred: f64, latency: f64) -> f64 {
        transferred + (latency - self.line_cycles).max(0.0)
    }

    /// The first of the times that ends no sooner than this.
    fn first_after(&self, time: f64) -> usize {
        self.busy.partition_point(|busy| busy.1 < time)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asks() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
        let asks = prop::collection::vec(0..400u32, 1..40);
        asks.prop_flat_map(|asks| (Just(asks.clone()), Just(asks).prop_shuffle()))
    }

    fn busy(asks: &[u32], line_cycles: f64) -> Vec<(f64, f64)> {
        let mut channel = MemoryChannel::new(line_cycles);
        for &asked in asks {
            let expected = channel.would_bring(asked.into(), 50.0);
            assert_eq!(channel.bring(asked.into(), 50.0), expected);
        }
        channel.busy.into()
    }

    proptest! {
        /// Memory is idle only when nobody has asked: it is busy in the same cycles, whoever asks it first, and so as if it
        /// served by the time of asking.
        #[test]
        fn it_is_busy_as_by_the_time_of_asking((asks, shuffled) in asks(), quarters in 1..60u32) {
            let line_cycles = f64::from(quarters) / 4.0;
            let mut by_time: Vec<(f64, f64)> = Vec::new();
            let mut sorted = asks.clone();
            sorted.sort_unstable();
            for asked in sorted.into_iter().map(f64::from) {
                match by_time.last_mut().filter(|last| last.1 >= asked) {
                    Some(last) => last.1 += line_cycles,
                    None => by_time.push((asked, asked + line_cycles)),
                }
            }
            prop_assert_eq!(&busy(&asks, line_cycles), &by_time);
            prop_assert_eq!(&busy(&shuffled, line_cycles), &by_time);
        }
    }
}
