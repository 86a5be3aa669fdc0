//! The program's input, for both of its runs: what the first one read from a pipe is kept, and given to the second.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

use lookaside_host::Process;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fs::{fstat, open, FileType, Mode, OFlags};
use rustix::pipe::{pipe_with, PipeFlags};

/// Bytes taken from a pipe at once.
const BYTES: usize = 1 << 16;
/// How soon the first run's end is heeded while nothing comes.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What the second run will read.
pub enum SecondInput {
    /// Nothing: there was no input, or it was a terminal.
    Nothing,
    /// A file, from where the first run began.
    File(File),
    /// What came through a pipe.
    Piped(KeptPipe),
}

/// The thread that passes on what comes, and keeps it.
pub struct KeptPipe {
    keeper: JoinHandle<io::Result<File>>,
    ended: Arc<AtomicBool>,
}

impl SecondInput {
    /// Looks at standard input, before the first run starts. A pipe is replaced by one of ours, through which all goes
    /// that comes.
    ///
    /// # Errors
    /// No pipe or temporary file could be made.
    pub fn prepare() -> io::Result<Self> {
        let input = io::stdin();
        Ok(match fstat(&input).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::RegularFile) => {
                // A position of its own, so that the first run does not move it.
                let at = rustix::fs::tell(&input)?;
                let Ok(mut file) = Process::own().open("fd/0") else { return Ok(Self::Nothing) };
                file.seek(io::SeekFrom::Start(at))?;
                Self::File(file)
            }
            Ok(FileType::Fifo | FileType::Socket) => Self::Piped(keep(input.as_fd().try_clone_to_owned()?)?),
            _ => Self::Nothing,
        })
    }

    /// Standard input may have something to read: a pipe, a socket, a file that is not empty. A terminal's user knows
    /// what was typed.
    pub fn may_hold_something() -> bool {
        fstat(io::stdin()).is_ok_and(|stat| match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => stat.st_size > 0,
            FileType::Fifo | FileType::Socket => true,
            _ => false,
        })
    }

    /// The first run has started, and has its input: nobody else holds its end of a pipe.
    pub fn let_go(&self) -> io::Result<()> {
        if let Self::Piped(_) = self {
            let nothing = open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::stdio::dup2_stdin(&nothing)?;
        }
        Ok(())
    }

    /// The file for the second run, after the first has ended; `None` = nothing.
    ///
    /// # Errors
    /// What came could not be kept.
    pub fn take(self) -> io::Result<Option<File>> {
        match self {
            Self::Nothing => Ok(None),
            Self::File(file) => Ok(Some(file)),
            Self::Piped(KeptPipe { keeper, ended }) => {
                ended.store(true, Ordering::Relaxed);
                keeper.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map(Some)
            }
        }
    }
}

/// Puts a pipe of ours in the place of standard input, and passes on through it what comes from `from`.
fn keep(from: OwnedFd) -> io::Result<KeptPipe> {
    let kept = tempfile::tempfile()?;
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::stdio::dup2_stdin(&reader)?;
    drop(reader);
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    let pass = move || pass_on(File::from(from), File::from(writer), kept, &seen);
    let keeper = std::thread::Builder::new().name("input".into()).spawn(pass)?;
    Ok(KeptPipe { keeper, ended })
}

/// Until no more comes, or nobody wants more.
fn pass_on(mut from: File, mut to: File, mut kept: File, ended: &AtomicBool) -> io::Result<File> {
    let mut bytes = vec![0; BYTES];
    while !ended.load(Ordering::Relaxed) {
        let mut watched = [PollFd::new(&from, PollFlags::IN), PollFd::new(&to, PollFlags::empty())];
        match poll(&mut watched, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(e) => return Err(e.into()),
        }
        // An error on our end of the pipe: the program and all that it started have closed theirs.
        if watched[1].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            break;
        }
        let n = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        kept.write_all(&bytes[..n])?;
        if to.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    drop(to);
    kept.rewind()?;
    Ok(kept)
}
