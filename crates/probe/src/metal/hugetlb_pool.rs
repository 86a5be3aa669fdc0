//! The system's pool of large pages, set aside at boot or by hand: what is free in it.

use std::os::fd::OwnedFd;

use lookaside_host::{HostError, HugePagePool};
use lookaside_machine::PageSize;
use rustix::fs::{fallocate, ftruncate, memfd_create, FallocateFlags, MemfdFlags};

use crate::metal::MetalError;

/// Why the pool has no page of this size to give, and what to do; `None` = it has one.
pub(crate) fn lacks(size: PageSize) -> Option<String> {
    reason(size, HugePagePool::of(size.bytes()))
}

fn reason(size: PageSize, pool: Result<HugePagePool, HostError>) -> Option<String> {
    let pool = match pool {
        Ok(pool) => pool,
        Err(error) => return Some(format!("this system has no pool of {size} pages ({error})")),
    };
    // Free ones may be promised to others.
    if pool.free > pool.reserved {
        return None;
    }
    let all = pool.pages;
    let reserve = format!("as root: echo {} > {}", all + 1, pool.folder.join("nr_hugepages").display());
    Some(match all {
        0 => format!("no {size} page is reserved; one is enough ({reserve}; at boot: hugepagesz={size} hugepages=1)"),
        _ => format!("all {all} reserved {size} pages are in use; one more is enough ({reserve})"),
    })
}

/// A page of 1 GiB, ours as long as the file is open: asked for whole at once, since a touch of what is not there would
/// kill.
///
/// # Errors
/// The pool has none left, or a control group or a filter of system calls forbids it.
pub(crate) fn gigantic_page() -> Result<OwnedFd, MetalError> {
    let size = PageSize::G1;
    let taken = || {
        let file = memfd_create("lookaside-probe", MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_1GB)?;
        ftruncate(&file, size.bytes())?;
        fallocate(&file, FallocateFlags::empty(), 0, size.bytes())?;
        Ok(file)
    };
    taken().map_err(|e: rustix::io::Errno| MetalError::Memory { pages: 1, size, reason: e.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_promised_is_not_free_and_the_words_say_what_to_do() {
        let pools = tempfile::tempdir().expect("a folder");
        let says = || reason(PageSize::G1, HugePagePool::in_folder(pools.path(), PageSize::G1.bytes()));
        assert!(says().is_some_and(|words| words.starts_with("this system has no pool of 1G pages")));
        let pool = pools.path().join("hugepages-1048576kB");
        std::fs::create_dir(&pool).expect("a folder");
        let put = |all: u32, free: u32, promised: u32| {
            for (name, number) in [("nr_hugepages", all), ("free_hugepages", free), ("resv_hugepages", promised)] {
                std::fs::write(pool.join(name), format!("{number}\n")).expect("a file");
            }
            says()
        };
        assert_eq!(put(2, 2, 1), None);
        let (none, used) = (put(0, 0, 0).expect("words"), put(2, 2, 2).expect("words"));
        assert!(none.starts_with("no 1G page is reserved") && none.contains("echo 1 > "), "{none}");
        assert!(none.contains("hugepagesz=1G hugepages=1"), "{none}");
        assert!(used.starts_with("all 2 reserved 1G pages") && used.contains("echo 3 > "), "{used}");
    }
}
