//! A baker of the caller's own memory, or of another process's.

use std::sync::Arc;

use super::control::BakerControl;
use super::counters::HelperState;
use super::error::BakeError;
use super::helper_status::HelperStatus;
use super::region::{BakedRegion, Target};
use super::settings::Settings;
use super::stats::BakeStats;
use super::{helper_thread, survey};

/// A running baker. Dropping it stops it.
#[derive(Debug)]
pub struct Baker {
    shared: Arc<BakerControl>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Baker {
    /// Starts a helper thread for the caller's own memory. With [`Settings::auto`] it paces itself, and rests where
    /// baking does not pay. While it runs it tells what it does to `lookaside top`, where the system lets it have a
    /// memory file.
    ///
    /// With [`BakeBackend::Load`](super::BakeBackend::Load) the regions must stay mapped and readable until they are
    /// taken out or the baker is stopped, and a page that was never touched gets a frame; all other backends leave
    /// memory as it is, mapped or not.
    ///
    /// # Errors
    /// A setting or region that cannot be, a CPU that is not there, a kernel without the call.
    pub fn start(settings: &Settings, regions: &[BakedRegion]) -> Result<Self, BakeError> {
        Self::start_for(Target::Own, settings, regions)
    }

    /// The same for any target.
    ///
    /// # Errors
    /// As [`Baker::start`]; a backend that cannot reach another process; a process that is gone or may not be looked
    /// at.
    pub fn start_for(target: Target, settings: &Settings, regions: &[BakedRegion]) -> Result<Self, BakeError> {
        let shared = Arc::new(BakerControl::new(target, settings, regions)?);
        let name = match target {
            Target::Own => survey::HELPER_WITHIN.to_string(),
            Target::Process(pid) => survey::helper_name(pid),
        };
        let thread = helper_thread::spawn(Arc::clone(&shared), name)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Other regions in place of those before. When it returns, nothing of those that are no longer there is being
    /// touched.
    ///
    /// # Errors
    /// A region that cannot be; then all stays as it was.
    pub fn set_regions(&self, regions: &[BakedRegion]) -> Result<(), BakeError> {
        self.shared.set_regions(regions)
    }

    /// One more region.
    ///
    /// # Errors
    /// A region that cannot be.
    pub fn add(&self, region: BakedRegion) -> Result<(), BakeError> {
        self.shared.add(region)
    }

    /// Takes out the parts of regions that lie in this one. When it returns, nothing of it is being touched.
    ///
    /// # Errors
    /// A region that cannot be.
    pub fn remove(&self, region: BakedRegion) -> Result<(), BakeError> {
        self.shared.remove(region)
    }

    /// Another share of a CPU that it may use at most, from the next chunk on.
    ///
    /// # Errors
    /// Not above 0 and at most 1.
    pub(super) fn set_cpu_share(&self, share: f64) -> Result<(), BakeError> {
        self.shared.set_cpu_share(share)
    }

    /// The share that was set last.
    #[cfg(test)]
    pub(super) fn cpu_share(&self) -> f64 {
        self.shared.cpu_share()
    }

    /// What it did so far.
    pub fn stats(&self) -> BakeStats {
        self.shared.stats()
    }

    /// What it is doing: with `auto` it rests where baking does not pay.
    pub fn state(&self) -> HelperState {
        self.shared.state()
    }

    /// What it tells beside its statistics: how `auto` chose to bake, and what it sensed.
    pub fn status(&self) -> HelperStatus {
        self.shared.status()
    }

    /// Stops it; gives what it did. Returns when the helper thread has ended: at once but for a chunk of touches (well
    /// below a millisecond, unless the helper waits for its CPU).
    pub fn stop(mut self) -> BakeStats {
        self.end();
        self.shared.stats()
    }

    fn end(&mut self) {
        self.shared.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

impl Drop for Baker {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_baker_that_is_dropped_stops_and_its_thread_has_ended() {
        let settings = "prefetch".parse().expect("settings");
        let baker = Baker::start(&settings, &[]).expect("a baker");
        let shared = Arc::clone(&baker.shared);
        drop(baker);
        assert!(shared.stop.load(Ordering::SeqCst));
        assert_eq!(Arc::strong_count(&shared), 1, "its thread has it too until it ends");
    }
}
