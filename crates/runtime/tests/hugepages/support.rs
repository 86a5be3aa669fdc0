//! A child of the tests with 64 MiB in small pages that does what it is told. It is this test program itself, started
//! again.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use lookaside_runtime::hugepages::{collapse_side, CollapseSide, WINDOW_BYTES};

/// Windows that it has.
pub const WINDOWS: u64 = 32;

/// Whether huge pages can be made of other processes' memory here. Says so when not.
pub fn can_collapse() -> bool {
    let way = collapse_side();
    if way != Ok(CollapseSide::Outside) {
        eprintln!("LEFT OUT, huge pages are not made from outside here: {way:?}");
    }
    way == Ok(CollapseSide::Outside)
}

/// The child, as its parent has it. It ends with it.
pub struct Obedient {
    pub child: Child,
    said: BufReader<ChildStdout>,
    told: Option<ChildStdin>,
    /// Where its windows begin.
    pub at: u64,
}

impl Obedient {
    pub fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "support::child", "--nocapture"])
            .env("LOOKASIDE_TEST_CHILD", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = BufReader::new(child.stdout.take().expect("a pipe"));
        let told = child.stdin.take();
        let mut obedient = Self { child, said, told, at: 0 };
        obedient.at = obedient.answer();
        obedient
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Has it do something; what it answers.
    pub fn tell(&mut self, what: &str) -> u64 {
        writeln!(self.told.as_mut().expect("it listens"), "{what}").expect("it listens");
        self.answer()
    }

    /// Lines that begin with `=` are its answers; the rest is the test harness's.
    fn answer(&mut self) -> u64 {
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.said.read_line(&mut line).expect("it answers") > 0, "it has ended");
            // What the harness says has no line feed at times.
            if let Some((_, number)) = line.trim_end().rsplit_once('=') {
                return number.parse().expect("a number");
            }
        }
    }

    pub fn window(&self, n: u64) -> u64 {
        self.at + n * WINDOW_BYTES
    }

    /// Bytes in huge pages, of the mappings that hold these windows, as smaps has it.
    pub fn huge_bytes(&self) -> u64 {
        let vmas = lookaside_host::Process::of(self.pid()).smaps().expect("its mappings");
        let its = vmas.iter().filter(|vma| vma.overlaps(&(self.at..self.window(WINDOWS))));
        its.map(|vma| vma.anonymous_huge_bytes).sum()
    }

    /// It ends by itself.
    pub fn end(mut self) {
        drop(self.told.take());
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Obedient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The child's program, when another test starts it; by itself it does nothing.
#[test]
fn child() {
    if std::env::var_os("LOOKASIDE_TEST_CHILD").is_none() {
        return;
    }
    let bytes = ((WINDOWS + 1) * WINDOW_BYTES) as usize;
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping; all that is done below is within it.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    assert_ne!(mapped, libc::MAP_FAILED);
    let at = (mapped as u64).next_multiple_of(WINDOW_BYTES);
    let window = |n: u64| (at + n * WINDOW_BYTES) as *mut libc::c_void;
    let size = WINDOW_BYTES as usize;
    // SAFETY: takes numbers. Small pages while it is filled, whatever the system's setting.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    for n in 0..WINDOWS * WINDOW_BYTES / 8 {
        // The last window is half empty.
        if n < (WINDOWS * WINDOW_BYTES - WINDOW_BYTES / 2) / 8 {
            // SAFETY: within the mapping.
            unsafe { ((at + n * 8) as *mut u64).write(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) };
        }
    }
    // SAFETY: as above.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 0, 0, 0, 0) };
    println!("\n={at}");
    for line in std::io::stdin().lines() {
        let line = line.expect("text");
        let (what, n) = line.split_once(' ').unwrap_or((&line, "0"));
        let n: u64 = n.parse().expect("a number");
        // SAFETY: windows of the mapping, and this process alone.
        let answer = unsafe {
            match what {
                "sum" => {
                    let words = std::slice::from_raw_parts(at as *const u64, (WINDOWS * WINDOW_BYTES / 8) as usize);
                    words.iter().fold(0u64, |sum, &word| sum.rotate_left(5) ^ word)
                }
                "unmap" => libc::munmap(window(n), size) as u64,
                "refuse" => libc::madvise(window(n), size, libc::MADV_NOHUGEPAGE) as u64,
                "lock" => libc::mlock(window(n), size) as u64,
                "forbid" => libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) as u64,
                "exec" => {
                    println!("\n=0");
                    let error = Command::new("sleep").arg("600").exec();
                    panic!("{error}");
                }
                other => panic!("{other}"),
            }
        };
        println!("\n={answer}");
    }
}
