//! All processes: what translation may cost each, which are worth baking, and which are being baked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use lookaside_host::{all_processes, ticks_per_second, uptime_seconds, Process, ProcessStat};
use serde::Serialize;

use super::error::BakeError;
use super::region::PAGE_BYTES;
use super::status_line::HELPER;

/// Name of a helper thread for its own process's memory.
pub(crate) const HELPER_WITHIN: &str = match HELPER.to_str() {
    Ok(name) => name,
    Err(_) => panic!("the name is text"),
};
/// Name of a helper thread for another process, whose number follows: 15 bytes at most with it.
const HELPER_FOR: &str = "bake ";
/// Bytes of a page-table entry.
const ENTRY_BYTES: u64 = 8;
/// Of smaller processes it is not asked how much is in huge pages: the answer takes the kernel some ms a GiB.
const LARGE_BYTES: u64 = 16 << 20;
/// Least in small pages that is worth baking: the entries, 512 KiB, are half of what a second-level cache usually
/// holds, and the program's data want room there too.
const WORTH_BYTES: u64 = 256 << 20;
/// Least share of a CPU of a process that is worth baking, to begin and to go on.
const WORTH_CPUS: (f64, f64) = (0.2, 0.02);
/// Processes baked at once at most.
pub(super) const MOST: usize = 16;

/// A process as it is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
pub struct Surveyed {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// CPUs that it used on average since the look before; at the first look, since it started.
    pub cpus: f64,
    /// Bytes of it in memory.
    pub resident_bytes: u64,
    /// Of those, bytes that huge pages map.
    pub huge_bytes: u64,
    /// Bytes of its page tables.
    pub table_bytes: u64,
    /// Helper threads that bake it: process that each belongs to, and CPUs that it used, as above.
    pub helpers: Vec<(u32, f64)>,
    /// When it started, in the kernel's ticks: a number given anew is another process.
    #[serde(skip)]
    pub started_ticks: u64,
}

impl Surveyed {
    /// Bytes in small pages.
    pub fn small_bytes(&self) -> u64 {
        self.resident_bytes.saturating_sub(self.huge_bytes)
    }

    /// What translation may cost it, for comparing processes: bytes of leaf entries that it may walk to, times the CPUs
    /// that do.
    pub fn weight(&self) -> f64 {
        (self.small_bytes() / PAGE_BYTES * ENTRY_BYTES) as f64 * self.cpus
    }
}

/// Looks at all processes again and again.
#[derive(Debug)]
pub struct Survey {
    /// CPU time and start, in ticks, of each process and helper thread at the last look.
    last: BTreeMap<u32, (u64, u64)>,
    looked: Option<Instant>,
    ticks_per_second: f64,
}

impl Default for Survey {
    fn default() -> Self {
        Self::new()
    }
}

impl Survey {
    /// Before the first look.
    pub fn new() -> Self {
        Self { last: BTreeMap::new(), looked: None, ticks_per_second: ticks_per_second() }
    }

    /// All processes that have memory and may be looked at, but for this one; by weight, the largest first.
    ///
    /// # Errors
    /// The system does not tell them.
    pub fn look(&mut self) -> Result<Vec<Surveyed>, BakeError> {
        let all = all_processes().map_err(|e| BakeError::Unsupported(e.to_string()))?;
        let now = Instant::now();
        let since = self.looked.replace(now).map(|before| (now - before).as_secs_f64());
        let uptime = uptime_seconds().unwrap_or(0.0);
        let before = std::mem::take(&mut self.last);
        let mut cpus = |id: u32, stat: &ProcessStat| {
            let (used, start) = (stat.cpu_ticks(), stat.start_ticks());
            self.last.insert(id, (used, start));
            let at_start = (uptime - start as f64 / self.ticks_per_second).max(0.0);
            let (used, seconds) = match (before.get(&id), since) {
                (Some(&(then, same)), Some(since)) if same == start => (used.saturating_sub(then), since),
                _ => (used, since.map_or(at_start, |since| at_start.min(since))),
            };
            if seconds > 0.0 {
                used as f64 / self.ticks_per_second / seconds
            } else {
                0.0
            }
        };
        let mut found: Vec<Surveyed> = Vec::new();
        let mut helpers: Vec<SurveyedHelper> = Vec::new();
        for pid in all {
            // One that has ended meanwhile, or that others may not look at, is left out.
            if let Some((surveyed, its)) = one(pid, &mut cpus) {
                helpers.extend(its);
                found.push(surveyed);
            }
        }
        let ours = std::process::id();
        found.retain(|process| process.pid != ours);
        for process in &mut found {
            let its = helpers.iter().filter(|helper| helper.for_whom == process.pid);
            process.helpers = its.map(|helper| (helper.by, helper.cpus)).collect();
        }
        found.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then(a.pid.cmp(&b.pid)));
        Ok(found)
    }
}

/// A helper thread.
struct SurveyedHelper {
    for_whom: u32,
    by: u32,
    cpus: f64,
}

/// A process, without the helpers that bake it, and the helpers in it.
fn one(pid: u32, cpus: &mut impl FnMut(u32, &ProcessStat) -> f64) -> Option<(Surveyed, Vec<SurveyedHelper>)> {
    // All reads are of one process, even if its number is given to another meanwhile.
    let process = Process::hold(pid).ok()?;
    let (stat, status) = (process.stat().ok()?, process.status().ok()?);
    let resident_bytes = status.bytes("VmRSS")?; // the kernel's own threads have none
    let mut helpers = Vec::new();
    if stat.threads() > 1 {
        for tid in process.threads().ok()? {
            let Ok(thread) = process.thread(tid).stat() else { continue };
            if let Some(for_whom) = baked_by(&thread.comm, pid) {
                helpers.push(SurveyedHelper { for_whom, by: pid, cpus: cpus(tid, &thread) });
            }
        }
    }
    let surveyed = Surveyed {
        pid,
        cpus: cpus(pid, &stat),
        resident_bytes,
        // Left out too where that is not said to us.
        huge_bytes: match resident_bytes >= LARGE_BYTES {
            true => process.smaps_rollup().map_or(0, |all| all.huge_bytes()),
            false => 0,
        },
        table_bytes: status.bytes("VmPTE").unwrap_or(0),
        helpers: Vec::new(),
        started_ticks: stat.start_ticks(),
        comm: stat.comm,
    };
    Some((surveyed, helpers))
}

/// The process that a thread of this name in process `within` bakes, if it is a helper.
fn baked_by(comm: &str, within: u32) -> Option<u32> {
    match comm.strip_prefix(HELPER_FOR) {
        Some(pid) => pid.parse().ok(),
        None => (comm == HELPER_WITHIN).then_some(within),
    }
}

/// Name of the helper thread for another process.
pub(crate) fn helper_name(pid: u32) -> String {
    format!("{HELPER_FOR}{pid}")
}

/// Which of these (the largest first) are worth baking, given those that are baked already: large enough in small
/// pages, busy enough, and not baked by anybody else.
pub(crate) fn worth<'a>(found: &'a [Surveyed], baked: &BTreeSet<u32>) -> Vec<&'a Surveyed> {
    let ours = std::process::id();
    let worth = |process: &&Surveyed| {
        let least = if baked.contains(&process.pid) { WORTH_CPUS.1 } else { WORTH_CPUS.0 };
        process.small_bytes() >= WORTH_BYTES
            && process.cpus >= least
            && process.helpers.iter().all(|&(by, _)| by == ours)
    };
    found.iter().filter(worth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, mib: u64, cpus: f64) -> Surveyed {
        Surveyed {
            pid,
            comm: format!("p{pid}"),
            cpus,
            resident_bytes: mib << 20,
            huge_bytes: 0,
            table_bytes: mib << 11,
            helpers: Vec::new(),
            started_ticks: 0,
        }
    }

    #[test]
    fn what_is_large_and_busy_and_unbaked_is_worth_it() {
        let huge = Surveyed { huge_bytes: 3 << 30, ..process(4, 3100, 1.0) };
        let helped = Surveyed { helpers: vec![(4, 0.5)], ..process(5, 1000, 1.0) };
        let ours = Surveyed { helpers: vec![(std::process::id(), 0.5)], ..process(6, 1000, 1.0) };
        let found = [process(1, 8192, 1.0), process(2, 300, 0.1), process(3, 200, 1.0), huge, helped, ours];
        let worth = |baked: &[u32]| -> Vec<u32> {
            worth(&found, &baked.iter().copied().collect()).iter().map(|process| process.pid).collect()
        };
        assert_eq!(worth(&[]), [1, 6]);
        // Once baked, a process stays so while it rests a little.
        assert_eq!(worth(&[2]), [1, 2, 6]);
        assert!(process(1, 8192, 1.0).weight() > process(2, 8192, 0.5).weight());
    }

    #[test]
    fn what_is_just_worth_it_is_baked_and_what_is_a_little_less_is_not() {
        let just = process(1, 256, 0.2);
        let less =
            [Surveyed { resident_bytes: (256 << 20) - 1, ..just.clone() }, Surveyed { cpus: 0.199, ..just.clone() }];
        assert_eq!(worth(std::slice::from_ref(&just), &BTreeSet::new()), [&just]);
        assert_eq!(worth(&less, &BTreeSet::new()), [&just; 0]);
        let resting = Surveyed { cpus: 0.02, ..just };
        let rests_more = [Surveyed { cpus: 0.019, ..resting.clone() }];
        assert_eq!(worth(std::slice::from_ref(&resting), &BTreeSet::from([1])), [&resting]);
        assert_eq!(worth(&rests_more, &BTreeSet::from([1])), [&resting; 0]);
        // Its own helper and another's.
        let helped = [Surveyed { helpers: vec![(std::process::id(), 0.1), (4, 0.1)], ..resting }];
        assert_eq!(worth(&helped, &BTreeSet::from([1])), [&helped[0]; 0]);
    }

    /// 8 GiB in small pages are 2^21 entries of 8 bytes.
    #[test]
    fn a_weight_is_the_bytes_of_entries_times_the_cpus() {
        let huge = |bytes| Surveyed { huge_bytes: bytes, ..process(1, 12 << 10, 1.5) };
        assert_eq!((huge(4 << 30).small_bytes(), huge(4 << 30).weight()), (8 << 30, (1 << 24) as f64 * 1.5));
        assert_eq!((huge(13 << 30).small_bytes(), huge(13 << 30).weight()), (0, 0.0), "as much as it has at most");
    }

    #[test]
    fn a_helper_bakes_the_process_that_its_name_says() {
        assert_eq!(
            [helper_name(7).as_str(), "bake 4194304", "pt-baker"].map(|name| baked_by(name, 9)),
            [Some(7), Some(4_194_304), Some(9)]
        );
        assert_eq!(["bake x", "bake ", "bake", "baker 7", "sh", ""].map(|name| baked_by(name, 9)), [None; 6]);
        assert_eq!(HELPER_WITHIN, "pt-baker");
    }

    /// What is told of a busy program lies between what it used at least and at most, as read before and after each
    /// look.
    #[test]
    fn cpus_are_what_was_used_over_the_time_that_went_by() {
        let script = "ulimit -t 60; while :; do :; done"; // it ends, whatever becomes of this test
        let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().expect("sh is everywhere");
        let pid = child.id();
        let stat = || Process::of(pid).stat().expect("it runs");
        let uses = |ticks: u64| {
            let end = Instant::now() + std::time::Duration::from_secs(60);
            while stat().cpu_ticks() < ticks {
                assert!(Instant::now() < end, "it gets no CPU");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        };
        let mut survey = Survey::new();
        let look = |survey: &mut Survey| {
            let found = survey.look().expect("processes");
            found.iter().find(|process| process.pid == pid).map(|its| its.cpus).expect("the child")
        };
        // The moment by two clocks, and what it has used.
        let now = || (uptime_seconds().expect("since the system began"), Instant::now(), stat().cpu_ticks() as f64);
        let (ticks, started) = (ticks_per_second(), stat().start_ticks() as f64 / ticks_per_second());
        uses(6);
        let (before, first, after) = (now(), look(&mut survey), now());
        uses(after.2 as u64 + 6);
        let (before_second, second, after_second) = (now(), look(&mut survey), now());
        // Where its number was another's at the look before all that it used counts, over the time since then at most.
        survey.last.entry(pid).and_modify(|(_, start)| *start += 1);
        let (anew, after_anew) = (look(&mut survey), now());
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        let since_start = before.2 / ticks / (after.0 - started)..=after.2 / ticks / (before.0 - started);
        assert!(since_start.contains(&first), "{first} of {since_start:?}");
        let seconds = |from: Instant, to: Instant| (to - from).as_secs_f64();
        let least = (before_second.2 - after.2) / ticks / seconds(before.1, after_second.1);
        let most = (after_second.2 - before.2) / ticks / seconds(after.1, before_second.1);
        assert!((least..=most).contains(&second), "{second} of {least} to {most}");
        let all = after_second.2 / ticks / seconds(before_second.1, after_anew.1);
        assert!(anew >= all, "{anew} of at least {all}");
    }

    /// Of this process itself: a look leaves it out.
    #[test]
    fn what_huge_pages_map_is_asked_of_a_large_process() {
        let memory = lookaside_host::Mapping::new(32 << 20).expect("memory");
        let _ = memory.advise_huge(true);
        for page in (0..32 << 20).step_by(4096) {
            // SAFETY: within the mapping.
            unsafe { memory.start().as_ptr().add(page).write_volatile(1) };
        }
        let told = || Process::own().smaps_rollup().expect("its own").huge_bytes();
        // Other tests have huge pages too, which come and go.
        let found = (0..1000).any(|_| {
            let before = told();
            let (own, _) = one(std::process::id(), &mut |_, _| 0.0).expect("this process");
            before == own.huge_bytes && own.huge_bytes == told()
        });
        assert!(found, "{}", told());
        if told() == 0 {
            eprintln!("LEFT OUT: the system gave no huge page");
        }
    }

    #[test]
    fn helpers_are_known_by_their_names() {
        let mut survey = Survey::new();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is everywhere");
        let pid = child.id();
        let (told, tell) = (std::sync::mpsc::channel::<()>(), std::sync::mpsc::channel::<()>());
        let named = std::thread::Builder::new().name(helper_name(pid)).spawn(move || {
            told.0.send(()).expect("somebody listens");
            tell.1.recv()
        });
        told.1.recv().expect("it runs");
        let found = survey.look().expect("processes");
        let its = found.iter().find(|process| process.pid == pid).expect("the child");
        assert_eq!(its.helpers.iter().map(|helper| helper.0).collect::<Vec<_>>(), [std::process::id()]);
        assert!(its.resident_bytes > 0 && its.table_bytes > 0 && its.cpus < 1.0, "{its:?}");
        assert!(found.iter().all(|process| process.pid != std::process::id()));
        drop(tell.0);
        let _ = named.expect("a thread").join();
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        // Longest name that a thread may have: 15 bytes.
        assert!(helper_name(4_194_304).len() <= 15);
    }
}
