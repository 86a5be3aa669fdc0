//! What is on its way already: a second access to it waits for the first one's.

/// Pages being translated, or lines being fetched.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    numbers: Vec<u64>,
    /// When each is there.
    arrivals: Vec<f64>,
}

impl InFlight {
    /// It comes at this time. What came before `now` is forgotten.
    pub(super) fn add(&mut self, number: u64, arrival: f64, now: f64) {
        let mut i = 0;
        while i < self.numbers.len() {
            if self.arrivals[i] <= now {
                self.numbers.swap_remove(i);
                self.arrivals.swap_remove(i);
            } else {
                i += 1;
            }
        }
        self.numbers.push(number);
        self.arrivals.push(arrival);
    }

    /// When it can be used, if asked for at a time.
    pub(super) fn when_there(&self, number: u64, asked: f64) -> f64 {
        let same = self.numbers.iter().zip(&self.arrivals).filter(|(of, _)| **of == number);
        same.fold(asked, |time, (_, arrival)| time.max(*arrival))
    }
}
