//! What goes on beside a run, in a thread of its own: baking from outside, and a look at the pages it got.

use std::collections::HashMap;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use procfs::process::Process;
use serde::Serialize;

use crate::bake::{mappings, BakeError, Baker, Identity, Region, Settings, Target};

/// First look at the program, and each next one after twice as long, up to the last.
const FIRST_LOOK: Duration = Duration::from_millis(100);
/// The program's mappings are read so often.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// What the helpers beside the program did, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Helped {
    /// Rounds through all regions.
    pub rounds: u64,
    /// Page-table entries read.
    pub touches: u64,
    /// Nanoseconds of CPU that the helpers used; not in the program's own times.
    pub cpu_nanos: u64,
    /// Most bytes of mappings that were baked at a time.
    pub most_bytes: u64,
}

/// Pages that the program had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pages {
    /// Most resident bytes that were seen.
    pub resident_bytes: u64,
    /// Bytes of anonymous memory in huge pages at that time.
    pub huge_bytes: u64,
}

/// What was seen and done beside a run.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) helped: Option<Helped>,
    pub(super) pages: Option<Pages>,
    /// Why some process was not baked.
    pub(super) refused: Option<BakeError>,
}

/// The thread beside a run.
pub(super) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Seen>,
}

impl Watch {
    /// Watches the process and those that it starts: bakes them with these settings, looks at their pages.
    pub(super) fn start(pid: u32, bake: Option<Settings>, look: bool) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let beside = std::thread::Builder::new().name("compare".into());
        Ok(Self { stop, thread: beside.spawn(move || watch(pid, bake.as_ref(), look, &stopped))? })
    }

    /// Ends it.
    pub(super) fn end(self) -> Seen {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn watch(pid: u32, bake: Option<&Settings>, look: bool, stopped: &Receiver<()>) -> Seen {
    let mut seen = Seen::default();
    let mut bakers = Bakers { running: HashMap::new(), helped: Helped::default() };
    let mut wait = FIRST_LOOK;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
        wait = (wait * 2).min(LAST_LOOK);
        let family = family(pid);
        if look {
            let now = pages(&family);
            if now.resident_bytes >= seen.pages.unwrap_or_default().resident_bytes {
                seen.pages = Some(now);
            }
        }
        if let Some(settings) = bake {
            if let Err(e) = bakers.refresh(&family, settings) {
                seen.refused = Some(e);
            }
        }
    }
    if bake.is_some() {
        seen.helped = Some(bakers.end());
    }
    seen
}

/// The process and all that come from it.
fn family(pid: u32) -> Vec<u32> {
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        at += 1;
        let Ok(tasks) = Process::new(parent as i32).and_then(|process| process.tasks()) else { continue };
        let children = tasks.flatten().flat_map(|task| task.children().unwrap_or_default());
        family.extend(children.collect::<Vec<_>>());
    }
    family
}

fn pages(family: &[u32]) -> Pages {
    let mut all = Pages::default();
    for &pid in family {
        let Ok(rollup) = Process::new(pid as i32).and_then(|process| process.smaps_rollup()) else { continue };
        for map in &rollup.memory_map_rollup {
            let bytes = |field: &str| map.extension.map.get(field).copied().unwrap_or(0);
            all.resident_bytes += bytes("Rss");
            all.huge_bytes += bytes("AnonHugePages");
        }
    }
    all
}

/// A baker for each process that has something to bake.
struct Bakers {
    running: HashMap<u32, (Identity, Baker)>,
    helped: Helped,
}

impl Bakers {
    /// Follows what the processes have mapped by now.
    fn refresh(&mut self, family: &[u32], settings: &Settings) -> Result<(), BakeError> {
        let gone: Vec<u32> = self.running.keys().copied().filter(|pid| !family.contains(pid)).collect();
        for pid in gone {
            self.stop(pid);
        }
        let (mut bytes, mut done) = (0, Ok(()));
        for &pid in family {
            match self.follow(pid, settings) {
                Ok(of_process) => bytes += of_process,
                // One that has ended meanwhile needs none.
                Err(e) if Identity::of(pid).is_ok() => done = Err(e),
                Err(_) => self.stop(pid),
            }
        }
        self.helped.most_bytes = self.helped.most_bytes.max(bytes);
        done
    }

    /// Bytes of the process's mappings, now baked.
    fn follow(&mut self, pid: u32, settings: &Settings) -> Result<u64, BakeError> {
        let identity = Identity::of(pid)?;
        // After an exec the page map that the baker holds open is of memory that is gone.
        if self.running.get(&pid).is_some_and(|(before, _)| *before != identity) {
            self.stop(pid);
        }
        let regions: Vec<Region> = mappings(pid)?.into_iter().map(|mapping| mapping.region).collect();
        match self.running.get(&pid) {
            Some((_, baker)) => baker.set_regions(&regions)?,
            None if regions.is_empty() => {}
            None => {
                let baker = Baker::start_for(Target::Process(pid), settings, &regions)?;
                self.running.insert(pid, (identity, baker));
            }
        }
        Ok(regions.iter().map(|region| region.len).sum())
    }

    fn stop(&mut self, pid: u32) {
        if let Some((_, baker)) = self.running.remove(&pid) {
            let stats = baker.stop();
            self.helped.rounds += stats.rounds;
            self.helped.touches += stats.touches;
            self.helped.cpu_nanos += stats.cpu_nanos;
        }
    }

    fn end(mut self) -> Helped {
        let all: Vec<u32> = self.running.keys().copied().collect();
        for pid in all {
            self.stop(pid);
        }
        self.helped
    }
}
