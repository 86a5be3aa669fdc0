//! What is refused, and why.

use thiserror::Error;

use super::limits::{MOST_DEEP, MOST_SHARED};

/// Why there is no key at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoKeys {
    /// Nor ever will be, here.
    #[error("this processor has no protection keys for user pages (no `pku` in /proc/cpuinfo)")]
    Processor,
    /// The processor has them.
    #[error(
        "the kernel does not use this processor's protection keys (started with `nopku`, or built without \
         CONFIG_X86_INTEL_MEMORY_PROTECTION_KEYS)"
    )]
    Kernel,
    /// By others in this process.
    #[error("all 15 protection keys are in use by others in this process (pkey_alloc)")]
    Taken,
}

/// Why something was refused; who may read and write what has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DomainsError {
    /// No compartments here.
    #[error("no compartments: {0}")]
    NoKeys(#[from] NoKeys),
    /// No bytes.
    #[error("a compartment of no bytes")]
    Empty,
    /// More than there are addresses.
    #[error("a compartment of {bytes} bytes: more than there are addresses")]
    TooLarge {
        /// As asked.
        bytes: usize,
    },
    /// Destroyed, or never made.
    #[error("no such compartment: it was destroyed, or never created")]
    NoSuch,
    /// Threads are in it, or in one that shares its memory.
    #[error("the compartment is in use: {entries} calls of enter on it, or on one that shares its memory, have not been left")]
    InUse {
        /// Calls of enter that have not been left.
        entries: u32,
    },
    /// The calling thread is not in it.
    #[error("this thread is not in the compartment")]
    NotEntered,
    /// The calling thread has entered another one since.
    #[error("this thread entered another compartment after this one, and has to leave that first")]
    NotInnermost,
    /// Compartments that threads are in keep their keys.
    #[error("keys needed: {needed}, free: {left} of {keys}; compartments that threads are in keep theirs")]
    AllPinned {
        /// Keys that the compartment and those whose memory it shares lack.
        needed: usize,
        /// Keys of no compartment that a thread is in.
        left: usize,
        /// Keys that this process got.
        keys: usize,
    },
    /// Entered too often without leaving.
    #[error("this thread is {} compartments deep, which is the most", MOST_DEEP)]
    TooDeep,
    /// A compartment and all it shares need a key each.
    #[error("the compartment shares the memory of {} others, which is the most", MOST_SHARED)]
    TooManyShared,
    /// With itself.
    #[error("a compartment has its own memory already")]
    WithItself,
    /// A number that names no access.
    #[error("{0} is no access: 0 is none, 1 read only, 2 read and write")]
    Access(i32),
    /// The system refused.
    #[error("{call}: {}", std::io::Error::from_raw_os_error(*.errno))]
    System {
        /// The call.
        call: &'static str,
        /// Its error number.
        errno: i32,
    },
    /// Its thread-local data is gone.
    #[error("this thread is ending")]
    ThreadEnds,
    /// A signal handler interrupted a call.
    #[error("called by a signal handler, within another call")]
    Reentered,
}

impl DomainsError {
    /// The error number that stands for it in C.
    pub fn errno(&self) -> i32 {
        match *self {
            Self::NoKeys(NoKeys::Processor) => libc::ENOTSUP,
            Self::NoKeys(NoKeys::Kernel) => libc::ENOSYS,
            Self::NoKeys(NoKeys::Taken) => libc::ENOSPC,
            Self::Empty | Self::WithItself | Self::Access(_) => libc::EINVAL,
            Self::TooLarge { .. } => libc::ENOMEM,
            Self::NoSuch => libc::ENOENT,
            Self::InUse { .. } => libc::EBUSY,
            Self::NotEntered | Self::NotInnermost => libc::EPERM,
            Self::AllPinned { .. } => libc::EAGAIN,
            Self::TooDeep | Self::TooManyShared => libc::E2BIG,
            Self::System { errno, .. } => errno,
            Self::ThreadEnds | Self::Reentered => libc::EDEADLK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_its_number_and_a_line_of_its_own() {
        let all = [
            (DomainsError::NoKeys(NoKeys::Processor), libc::ENOTSUP),
            (DomainsError::NoKeys(NoKeys::Kernel), libc::ENOSYS),
            (DomainsError::NoKeys(NoKeys::Taken), libc::ENOSPC),
            (DomainsError::Empty, libc::EINVAL),
            (DomainsError::TooLarge { bytes: 1 << 63 }, libc::ENOMEM),
            (DomainsError::NoSuch, libc::ENOENT),
            (DomainsError::InUse { entries: 3 }, libc::EBUSY),
            (DomainsError::NotEntered, libc::EPERM),
            (DomainsError::NotInnermost, libc::EPERM),
            (DomainsError::AllPinned { needed: 2, left: 1, keys: 15 }, libc::EAGAIN),
            (DomainsError::TooDeep, libc::E2BIG),
            (DomainsError::TooManyShared, libc::E2BIG),
            (DomainsError::WithItself, libc::EINVAL),
            (DomainsError::Access(7), libc::EINVAL),
            (DomainsError::System { call: "mmap", errno: libc::EOVERFLOW }, libc::EOVERFLOW),
            (DomainsError::ThreadEnds, libc::EDEADLK),
            (DomainsError::Reentered, libc::EDEADLK),
        ];
        for (error, errno) in all {
            assert_eq!(error.errno(), errno, "{error}");
        }
        let lines: std::collections::BTreeSet<String> = all.iter().map(|(error, _)| error.to_string()).collect();
        assert!(lines.len() == all.len() && lines.iter().all(|line| !line.is_empty() && !line.contains('\n')));
        assert_eq!(all[9].0.to_string(), "keys needed: 2, free: 1 of 15; compartments that threads are in keep theirs");
    }
}
