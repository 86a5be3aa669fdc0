//! Sets of periodic tasks: what each needs of the TLB, and when it runs. As TOML:
//!
//! ```toml
//! [[task]]
//! name = "T1"
//! phase = "1ms"
//! period = "2ms"
//! execution = "0.392ms"
//! pages = 4
//!
//! [[task]]
//! name = "T2"
//! period = "16ms"
//! execution = "7.88ms"
//! pages = 4
//! contiguous_pages = 2
//! accesses = 100_000
//! ```

use std::path::{Path, PathBuf};

use lookaside_machine::BOOKKEEPING;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A set of tasks, checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSet {
    /// The tasks, in the order of the file.
    #[serde(rename = "task")]
    pub tasks: Vec<Task>,
}

/// A periodic task. Its jobs are released at `phase`, `phase + period`, …; each is to end before the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name, unique in the file.
    pub name: String,
    /// 1 runs before 2. Absent in all: rate monotonic (the shorter period first, ties in the order of the file).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Release of the first job.
    #[serde(default)]
    pub phase: Time,
    /// From release to release.
    pub period: Time,
    /// Most CPU time that a job takes, its TLB misses included.
    pub execution: Time,
    /// Pages that a job touches, all different; with `trace` it is what the trace has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<u64>,
    /// Of these, the longest run that must be contiguous.
    #[serde(default = "one")]
    pub contiguous_pages: u64,
    /// Most accesses to these pages in a job. Needed for a bound where the replacement policy promises nothing else
    /// (random).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accesses: Option<u64>,
    /// A recorded job, in place of `pages`; relative to the task file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
    /// What its jobs run on the metal, in place of loading the pages: the name of a program. Nothing else reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Pages that the program's data fill; they are spread evenly over `pages`, a power of two times as many. Absent:
    /// as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_pages: Option<u64>,
}

impl Task {
    /// Pages that one page of its program's data is spread over.
    pub fn spread(&self) -> u64 {
        match (self.pages, self.data_pages) {
            (Some(pages), Some(data)) if data > 0 => pages / data,
            _ => 1,
        }
    }
}

/// Most pages that a page of data is spread over: then each has a line of 64 bytes.
const MOST_SPREAD: u64 = 64;

/// A time in nanoseconds, written with a unit: `"392us"`, `"0.39ms"`, `"2s"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Nanoseconds.
    pub nanos: u64,
}

/// Most tasks of a set: an exact response-time analysis of more would take too long.
pub(crate) const MAX_TASKS: usize = 256;

/// Longest text that is taken for a task file.
const MAX_BYTES: u64 = 1 << 20;

/// Why a task file cannot be had; one line with file, key and reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TasksError(pub(super) String);

fn one() -> u64 {
    1
}

impl TaskSet {
    /// Reads and checks a file. Paths of traces are made relative to its folder.
    ///
    /// # Errors
    /// It cannot be read, is no TOML, or holds what cannot be; one line.
    pub fn load(path: &Path) -> Result<Self, TasksError> {
        let name = path.display();
        let unreadable = |e: std::io::Error| TasksError(format!("{name}: cannot be read: {e}"));
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        // A device or a pipe may have no end.
        std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_BYTES + 1), &mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(TasksError(format!("{name}: is longer than 1 MiB, which no task file is")));
        }
        let text = String::from_utf8(bytes).map_err(|_| TasksError(format!("{name}: is no UTF-8 text")))?;
        let mut set = Self::parse(&text, &name.to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for trace in set.tasks.iter_mut().filter_map(|task| task.trace.as_mut()) {
            *trace = folder.join(&*trace);
        }
        Ok(set)
    }

    /// Reads and checks TOML; `file_name` is what errors call it.
    ///
    /// # Errors
    /// As [`TaskSet::load`].
    pub fn parse(text: &str, file_name: &str) -> Result<Self, TasksError> {
        let set: Self = toml::from_str(text).map_err(|e| {
            let line = e.span().map(|span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
            let at = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            TasksError(format!("{file_name}: {at}{}", e.message().replace('\n', ", ").replace('`', "\"")))
        })?;
        set.check().map_err(|why| TasksError(format!("{file_name}: {why}")))?;
        Ok(set)
    }

    /// Positions of the tasks, highest priority first: by `priority`, or rate monotonic where none has one; ties in the
    /// order of the file.
    pub fn by_priority(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        order.sort_by_key(|&i| {
            let task = &self.tasks[i];
            task.priority.map_or((0, task.period), |priority| (priority, Time::default()))
        });
        order
    }

    /// Least common multiple of the periods; `None` where it is beyond 2^63 ns.
    pub fn hyperperiod(&self) -> Option<Time> {
        let gcd = |mut a: u64, mut b: u64| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let mut nanos = 1u64;
        for task in &self.tasks {
            let period = task.period.nanos;
            nanos = (nanos / gcd(nanos, period)).checked_mul(period).filter(|nanos| *nanos < 1 << 63)?;
        }
        Some(Time { nanos })
    }

    fn check(&self) -> Result<(), String> {
        if self.tasks.is_empty() || self.tasks.len() > MAX_TASKS {
            return Err(format!("has {} tasks; write 1 to {MAX_TASKS}", self.tasks.len()));
        }
        for (i, task) in self.tasks.iter().enumerate() {
            let at = |key: &str, why: String| Err(format!("task[{i}].{key}: {why}"));
            if self.tasks[..i].iter().any(|before| before.name == task.name) {
                return at("name", format!("{:?} stands twice", task.name));
            }
            if task.name == BOOKKEEPING {
                return at("name", format!("{BOOKKEEPING:?} is what a heap's own pages are called; take another"));
            }
            if task.priority.is_some() != self.tasks[0].priority.is_some() {
                return at("priority", "stands in some tasks and not in others; write it in all, or in none".into());
            }
            if task.period.nanos == 0 {
                return at("period", "is 0".into());
            }
            if task.execution > task.period {
                return at("execution", "is longer than the period".into());
            }
            match (task.pages, &task.trace) {
                (None, None) => return at("pages", "is missing; write it, or a trace".into()),
                (Some(_), Some(_)) => return at("pages", "stands beside a trace, which says it already".into()),
                (Some(0), _) => return at("pages", "is 0".into()),
                (Some(pages), _) if task.contiguous_pages > pages => {
                    return at("contiguous_pages", format!("is more than the {pages} pages"))
                }
                _ => (),
            }
            if task.program.is_some() && task.trace.is_some() {
                return at("program", "stands beside a trace; write one of them".into());
            }
            if let Some(data) = task.data_pages {
                let spread = task.spread();
                // 0 is no part of the pages, which are at least 1.
                let even = task.pages == Some(data * spread) && spread.is_power_of_two();
                if task.program.is_none() {
                    return at("data_pages", "stands without a program".into());
                } else if !even || spread > MOST_SPREAD {
                    let (pages, most) = (task.pages.unwrap_or_default(), MOST_SPREAD);
                    return at("data_pages", format!("is to be the {pages} pages divided by 1, 2, 4, … or {most}"));
                }
            }
            if task.contiguous_pages == 0 {
                return at("contiguous_pages", "is 0; at least 1".into());
            }
        }
        Ok(())
    }
}

/// Units, longest name first: what a text ends with, nanoseconds of one.
const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

impl std::str::FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no time; write a number and ns, us, ms or s, as \"0.4ms\"");
        let (number, unit) = UNITS
            .iter()
            .find_map(|(name, nanos)| Some((text.trim().strip_suffix(name)?.trim_end(), *nanos)))
            .ok_or_else(bad)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(part) || (number.contains('.') && part.is_empty()) {
            return Err(bad());
        }
        // Exact: no float on the way. Digits below a nanosecond must be zero.
        let mut nanos = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(unit));
        let mut worth = unit;
        for digit in part.bytes().map(|b| u64::from(b - b'0')) {
            if worth < 10 && digit != 0 {
                return Err(format!("{text:?} has a part of a nanosecond"));
            }
            worth /= 10;
            nanos = nanos.and_then(|nanos| nanos.checked_add(digit * worth));
        }
        // Sums of a few must fit.
        let nanos = nanos.filter(|nanos| *nanos < 1 << 62).ok_or_else(|| format!("{text:?} is too long"))?;
        Ok(Self { nanos })
    }
}

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, unit) = UNITS.iter().rev().find(|(_, unit)| self.nanos.is_multiple_of(*unit)).unwrap_or(&UNITS[0]);
        write!(f, "{}{name}", self.nanos / unit)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

#[cfg(feature = "schemas")]
impl schemars::JsonSchema for Time {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A whole number with its unit.",
            "pattern": "^[0-9]+(ns|us|ms|s)$",
        })
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;

    use super::{Task, TaskSet, Time};

    const TWO: &str = "[[task]]\nname = \"T1\"\nphase = \"1ms\"\nperiod = \"2ms\"\nexecution = \"0.392ms\"\npages = 4\n\
                       [[task]]\nname = \"T2\"\nperiod = \"16ms\"\nexecution = \"7.88ms\"\npages = 4\ncontiguous_pages = 2\n";

    #[test]
    fn times_are_exact() {
        for (text, nanos) in [
            ("0.392ms", 392_000),
            ("2s", 2_000_000_000),
            ("7 us", 7_000),
            ("1.05us", 1_050),
            ("1.005us", 1_005),
            ("1.000ns", 1),
            ("15ns", 15),
            ("4611686018427387903ns", (1 << 62) - 1),
        ] {
            assert_eq!(text.parse::<Time>(), Ok(Time { nanos }), "{text}");
        }
        for text in ["", "ms", "1", "-1ms", "+1ms", "1.ms", ".5ms", "1e3ms", "1.x5ms"] {
            let said = format!("{text:?} is no time; write a number and ns, us, ms or s, as \"0.4ms\"");
            assert_eq!(text.parse::<Time>(), Err(said));
        }
        for text in ["1.50ns", "1.05ns", "1.0005us"] {
            assert_eq!(text.parse::<Time>(), Err(format!("{text:?} has a part of a nanosecond")));
        }
        for text in ["99999999999999999999s", "9999999999s", "4611686018427387904ns"] {
            assert_eq!(text.parse::<Time>(), Err(format!("{text:?} is too long")));
        }
        assert_eq!(Time { nanos: 392_000 }.to_string(), "392us");
        assert_eq!(Time::default().to_string(), "0s");
        let schema = schemars::schema_for!(Time);
        let of = |key: &str| schema.get(key).and_then(|value| value.as_str());
        assert_eq!([of("type"), of("pattern")], [Some("string"), Some("^[0-9]+(ns|us|ms|s)$")]);
        assert_eq!(Time::schema_name(), "Time");
    }

    #[test]
    fn a_set_is_read_and_written() {
        let set = TaskSet::parse(TWO, "t").expect("a set");
        assert_eq!(set.by_priority(), [0, 1]);
        assert_eq!(set.hyperperiod(), Some(Time { nanos: 16_000_000 }));
        let text = toml::to_string(&set).expect("a text");
        assert_eq!(TaskSet::parse(&text, "t").expect(&text), set);
    }

    #[test]
    fn a_programs_data_are_spread() {
        let text = TWO.replacen("pages = 4", "pages = 12\nprogram = \"fft\"\ndata_pages = 3", 1);
        let set = TaskSet::parse(&text, "t").expect("a set");
        assert_eq!(
            (set.tasks[0].program.as_deref(), set.tasks[0].spread(), set.tasks[1].spread()),
            (Some("fft"), 4, 1)
        );
        assert_eq!(TaskSet::parse(&toml::to_string(&set).expect("a text"), "t").expect("a set"), set);
    }

    #[test]
    fn what_cannot_be_is_one_line() {
        for (from, to, said) in [
            ("T2", "T1", "t.toml: task[1].name: \"T1\" stands twice"),
            (
                "T2",
                "bookkeeping",
                "t.toml: task[1].name: \"bookkeeping\" is what a heap's own pages are called; take another",
            ),
            ("\"2ms\"", "\"0ms\"", "t.toml: task[0].period: is 0"),
            ("7.88ms", "17ms", "t.toml: task[1].execution: is longer than the period"),
            (
                "contiguous_pages = 2",
                "contiguous_pages = 5",
                "t.toml: task[1].contiguous_pages: is more than the 4 pages",
            ),
            ("contiguous_pages = 2", "contiguous_pages = 0", "t.toml: task[1].contiguous_pages: is 0; at least 1"),
            ("pages = 4\n[[", "pages = 0\n[[", "t.toml: task[0].pages: is 0"),
            ("pages = 4\n[[", "[[", "t.toml: task[0].pages: is missing; write it, or a trace"),
            (
                "pages = 4\n[[",
                "pages = 4\ntrace = \"a\"\n[[",
                "t.toml: task[0].pages: stands beside a trace, which says it already",
            ),
            (
                "pages = 4\n[[",
                "pages = 4\npriority = 1\n[[",
                "t.toml: task[1].priority: stands in some tasks and not in others; write it in all, or in none",
            ),
            (
                "pages = 4\n[[",
                "trace = \"a\"\nprogram = \"fft\"\n[[",
                "t.toml: task[0].program: stands beside a trace; write one of them",
            ),
            ("pages = 4\n[[", "pages = 4\ndata_pages = 2\n[[", "t.toml: task[0].data_pages: stands without a program"),
            (
                "pages = 4\n[[",
                "pages = 12\nprogram = \"fft\"\ndata_pages = 4\n[[",
                "t.toml: task[0].data_pages: is to be the 12 pages divided by 1, 2, 4, … or 64",
            ),
            (
                "pages = 4\n[[",
                "pages = 13\nprogram = \"fft\"\ndata_pages = 3\n[[",
                "t.toml: task[0].data_pages: is to be the 13 pages divided by 1, 2, 4, … or 64",
            ),
            (
                "pages = 4\n[[",
                "pages = 12\nprogram = \"fft\"\ndata_pages = 0\n[[",
                "t.toml: task[0].data_pages: is to be the 12 pages divided by 1, 2, 4, … or 64",
            ),
            (
                "pages = 4\n[[",
                "pages = 128\nprogram = \"fft\"\ndata_pages = 1\n[[",
                "t.toml: task[0].data_pages: is to be the 128 pages divided by 1, 2, 4, … or 64",
            ),
            ("0.392ms", "392", "t.toml: line 5: \"392\" is no time; write a number and ns, us, ms or s, as \"0.4ms\""),
        ] {
            assert!(TWO.contains(from), "{from}");
            let error = TaskSet::parse(&TWO.replacen(from, to, 1), "t.toml").expect_err(to);
            assert_eq!(error.to_string(), said);
        }
    }

    #[test]
    fn what_is_just_within_its_limits_is_taken() {
        let tasks = |count: usize| {
            let of = |i: usize| {
                format!(
                    "[[task]]\nname = \"T{i}\"\nperiod = \"1ms\"\nexecution = \"1ms\"\npages = 2\ncontiguous_pages = 2\n"
                )
            };
            TaskSet::parse(&(0..count).map(of).collect::<String>(), "t").map(|set| set.tasks.len())
        };
        assert_eq!(tasks(256), Ok(256));
        assert_eq!(tasks(257).expect_err("too many").to_string(), "t: has 257 tasks; write 1 to 256");
        assert_eq!(TaskSet::parse("task = []", "t").expect_err("none").to_string(), "t: has 0 tasks; write 1 to 256");
        let text = TWO.replacen("pages = 4", "pages = 128\nprogram = \"fft\"\ndata_pages = 2", 1);
        assert_eq!(TaskSet::parse(&text, "t").expect("a set").tasks[0].spread(), 64);
    }

    #[test]
    fn a_hyperperiod_is_the_least_common_multiple_of_the_periods_below_2_to_the_63() {
        let task = TaskSet::parse(TWO, "t").expect("a set").tasks.remove(0);
        let of = |periods: &[u64]| {
            let tasks = periods.iter().map(|&nanos| Task { period: Time { nanos }, ..task.clone() }).collect();
            TaskSet { tasks }.hyperperiod().map(|time| time.nanos)
        };
        assert_eq!([of(&[6, 10, 15]), of(&[7, 7])], [Some(30), Some(7)]);
        assert_eq!([of(&[(1 << 63) - 1]), of(&[1 << 61, 3])], [Some((1 << 63) - 1), Some(3 << 61)]);
        assert_eq!([of(&[1 << 63]), of(&[1 << 62, 3]), of(&[1 << 62, 5])], [None; 3]);
    }

    #[test]
    fn a_file_of_at_most_a_mebibyte_is_loaded_and_its_traces_lie_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tasks.toml");
        let load = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("written");
            TaskSet::load(&path).map_err(|why| why.to_string().replace(&path.display().to_string(), "FILE"))
        };
        let text = TWO.replacen("pages = 4", "trace = \"job.lkt\"", 1);
        let set = load(text.as_bytes()).expect("a set");
        assert_eq!(set.tasks[0].trace, Some(folder.path().join("job.lkt")));
        let long = |bytes: usize| format!("{text}#{}", "-".repeat(bytes - text.len() - 1)).into_bytes();
        assert_eq!(load(&long(1 << 20)), Ok(set));
        assert_eq!(load(&long((1 << 20) + 1)), Err("FILE: is longer than 1 MiB, which no task file is".into()));
        assert_eq!(load(b"\xff"), Err("FILE: is no UTF-8 text".into()));
        assert_eq!(load(b"task = []"), Err("FILE: has 0 tasks; write 1 to 256".into()));
        let said = TaskSet::load(&folder.path().join("none.toml")).expect_err("none").to_string();
        assert!(said.contains("none.toml: cannot be read: "), "{said}");
    }
}
