//! Shares the time of a probe out among its steps, so that a step that does not settle leaves the others their time.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use crate::bench::{ChainBench, Halt};
use crate::options::{ProbeOptions, ProbeStep};

/// With less time than this nothing is tried again: a policy takes 2 s at least on the development machine.
const LEAST_MORE: Duration = Duration::from_secs(2);

/// What measures, and writes down for what.
pub(crate) trait NoteTaker {
    /// Says what the next measurements are for.
    fn note(&mut self, text: &str);
}

impl NoteTaker for ChainBench<'_> {
    fn note(&mut self, text: &str) {
        ChainBench::note(self, text);
    }
}

/// Who asks whether to go on gets the answer for the step that is being done.
pub(crate) struct Budget<'a> {
    halt: &'a dyn Fn() -> Option<Halt>,
    now: &'a dyn Fn() -> Instant,
    time: Option<Duration>,
    end: Option<Instant>,
    /// Parts still to be begun.
    left: RefCell<Vec<ProbeStep>>,
    parts: Cell<usize>,
    share: Cell<Option<(Instant, Duration)>>,
}

impl<'a> Budget<'a> {
    /// For the steps that are wanted, from now on.
    pub(crate) fn new(
        options: &ProbeOptions,
        halt: &'a dyn Fn() -> Option<Halt>,
        now: &'a dyn Fn() -> Instant,
    ) -> Self {
        let wanted = ProbeStep::ALL.into_iter().filter(|&step| options.wants(step));
        let left: Vec<ProbeStep> = wanted.flat_map(|step| vec![step; step.parts()]).collect();
        let end = options.time.map(|time| now() + time);
        Self {
            halt,
            now,
            time: options.time,
            end,
            parts: Cell::new(left.len()),
            left: RefCell::new(left),
            share: Cell::new(None),
        }
    }

    /// Why to end now, if there is a reason.
    pub(crate) fn check(&self) -> Option<Halt> {
        if let Some(halt) = (self.halt)() {
            return Some(halt);
        }
        let now = (self.now)();
        if self.end.is_some_and(|end| now > end) {
            return Some(Halt::TimeUp);
        }
        let (until, share) = self.share.get()?;
        (now > until).then_some(Halt::ShareUp(share))
    }

    /// What is left of the time, in parts of it; `None`: it has no end.
    pub(crate) fn left(&self) -> Option<f64> {
        let left = self.end?.saturating_duration_since((self.now)());
        Some(left.as_secs_f64() / self.time?.as_secs_f64())
    }

    /// Adds parts of a step that share what is left of the time; `false`: there are none, or too little is left for
    /// them.
    pub(crate) fn more(&self, step: ProbeStep, parts: usize) -> bool {
        let Some(end) = self.end else { return false };
        if parts == 0 || end.saturating_duration_since((self.now)()) < LEAST_MORE {
            return false;
        }
        self.left.borrow_mut().extend(vec![step; parts]);
        self.parts.set(self.parts.get() + parts);
        true
    }

    /// Does a part of a step in its share of the time that is left; what earlier ones did not need is in it. `Ok(Err)`
    /// is why this part ended early, `Err` why all has to end.
    pub(crate) fn part<T, N: NoteTaker>(
        &self,
        bench: &mut N,
        step: ProbeStep,
        what: &str,
        progress: &mut dyn FnMut(&str),
        work: impl FnOnce(&mut N) -> Result<T, Halt>,
    ) -> Result<Result<T, String>, Halt> {
        let share = self.begin(step);
        let number = self.parts.get() - self.left.borrow().len();
        let most = share.map_or(String::new(), |share| format!(", at most {:.0} s", share.as_secs_f64()));
        progress(&format!("{number} of {}: {what}{most}", self.parts.get()));
        bench.note(what);
        self.share.set(share.map(|share| ((self.now)() + share, share)));
        let done = work(bench);
        self.share.set(None);
        match done {
            Ok(found) => Ok(Ok(found)),
            Err(halt @ Halt::ShareUp(_)) => Ok(Err(halt.to_string())),
            Err(halt) => Err(halt),
        }
    }

    /// Takes a part off the list; gives its time.
    fn begin(&self, step: ProbeStep) -> Option<Duration> {
        let mut left = self.left.borrow_mut();
        // What is kept for those that cannot be done without this one is half of theirs: they are nothing if it fails.
        let kept = |other: &ProbeStep| if other.needs().contains(&step) { other.weight() } else { 2 * other.weight() };
        let all: u32 = left.iter().map(kept).sum();
        let at = left.iter().position(|&other| other == step);
        if let Some(at) = at {
            left.remove(at);
        }
        let time = self.end?.saturating_duration_since((self.now)());
        let own = 2 * step.weight();
        Some(time * own / all.max(own))
    }
}

#[cfg(test)]
mod tests {
    use lookaside_machine::PageSize;

    use super::*;
    use crate::metal::fake::FakeMetal;

    #[test]
    fn a_step_that_does_not_settle_leaves_the_others_their_time() {
        let start = Instant::now();
        let clock = Cell::new(start);
        let now = || clock.get();
        let time = Duration::from_secs(60);
        let options = ProbeOptions { time: Some(time), ..ProbeOptions::default() };
        let budget = Budget::new(&options, &|| None, &now);
        let mut still = FakeMetal;
        let mut bench = ChainBench::new(&mut still, PageSize::K4, 1, &|| None);
        let mut said = Vec::new();
        let mut endless = |step| {
            let began = clock.get();
            let ended =
                budget.part::<(), _>(&mut bench, step, "it", &mut |text| said.push(text.to_string()), |_| loop {
                    clock.set(clock.get() + Duration::from_millis(1));
                    if let Some(halt) = budget.check() {
                        return Err(halt);
                    }
                });
            (ended, clock.get() - began)
        };
        let mut shares = Vec::new();
        for step in ProbeStep::ALL {
            for _ in 0..step.parts() {
                let (ended, took) = endless(step);
                // The last one has all that is left.
                assert!(matches!(ended, Ok(Err(_)) | Err(Halt::TimeUp)), "{ended:?}");
                shares.push((step.weight(), took.as_secs_f64()));
            }
        }
        let weights: u32 = shares.iter().map(|share| share.0).sum();
        for (weight, seconds) in &shares {
            let fair = time.as_secs_f64() * f64::from(*weight) / f64::from(weights);
            assert!(*seconds > 0.4 * fair && *seconds < 2.0 * fair, "{seconds} of {fair}");
        }
        // The first level, without which most of the others are nothing, has more than by its weight.
        let first =
            ProbeStep::ALL.iter().take_while(|&&step| step != ProbeStep::L1).map(|step| step.parts()).sum::<usize>();
        let share = shares[first];
        assert!(share.1 > 1.2 * time.as_secs_f64() * f64::from(share.0) / f64::from(weights), "{shares:?}");
        assert_eq!(said.len(), shares.len());
        assert!(said[0].starts_with(&format!("1 of {}: it, at most ", shares.len())), "{}", said[0]);
        assert_eq!(budget.check(), Some(Halt::TimeUp));
    }

    #[test]
    fn what_is_not_needed_goes_to_the_next() {
        let clock = Cell::new(Instant::now());
        let now = || clock.get();
        let options =
            ProbeOptions { time: Some(Duration::from_secs(60)), only: Some(ProbeStep::L2), ..ProbeOptions::default() };
        let budget = Budget::new(&options, &|| None, &now);
        let mut still = FakeMetal;
        let mut bench = ChainBench::new(&mut still, PageSize::K4, 1, &|| None);
        assert_eq!(budget.part(&mut bench, ProbeStep::L1, "", &mut |_| (), |_| Ok(5)), Ok(Ok(5)));
        let mut said = String::new();
        let second = budget.part(&mut bench, ProbeStep::L2, "l2", &mut |text| said = text.to_string(), |_| Ok(()));
        assert_eq!((second, said.as_str()), (Ok(Ok(())), "2 of 2: l2, at most 60 s"));
    }

    #[test]
    fn what_is_left_in_the_end_is_shared_by_what_is_tried_again() {
        let clock = Cell::new(Instant::now());
        let now = || clock.get();
        let options =
            ProbeOptions { time: Some(Duration::from_secs(60)), only: Some(ProbeStep::L1), ..ProbeOptions::default() };
        let budget = Budget::new(&options, &|| None, &now);
        let mut still = FakeMetal;
        let mut bench = ChainBench::new(&mut still, PageSize::K4, 1, &|| None);
        assert_eq!(budget.part(&mut bench, ProbeStep::L1, "", &mut |_| (), |_| Ok(())), Ok(Ok(())));
        clock.set(clock.get() + Duration::from_secs(40));
        assert_eq!(budget.left(), Some(1.0 / 3.0));
        assert!(!budget.more(ProbeStep::Policy, 0));
        assert!(budget.more(ProbeStep::Policy, 2));
        let mut said = Vec::new();
        for _ in 0..2 {
            let part =
                budget.part(&mut bench, ProbeStep::Policy, "it", &mut |text| said.push(text.to_string()), |_| Ok(()));
            assert_eq!(part, Ok(Ok(())));
        }
        assert_eq!(said, ["2 of 3: it, at most 10 s", "3 of 3: it, at most 20 s"]);
        clock.set(clock.get() + Duration::from_secs(19));
        assert!(!budget.more(ProbeStep::Policy, 1), "a second is too little");
        let endless = Budget::new(&ProbeOptions::default(), &|| None, &now);
        assert!(!endless.more(ProbeStep::Policy, 1), "each had all the time it wanted");
    }

    #[test]
    fn whoever_halts_it_ends_all() {
        let options = ProbeOptions::default();
        let budget = Budget::new(&options, &|| Some(Halt::Interrupted), &Instant::now);
        let mut still = FakeMetal;
        let mut bench = ChainBench::new(&mut still, PageSize::K4, 1, &|| None);
        let part =
            budget.part::<(), _>(&mut bench, ProbeStep::L1, "", &mut |_| (), |_| budget.check().map_or(Ok(()), Err));
        assert_eq!(part, Err(Halt::Interrupted));
    }
}
