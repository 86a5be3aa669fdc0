//! The system's pool of large pages, set aside at boot or by hand: what is free in it.

use std::os::fd::OwnedFd;
use std::path::Path;

use lookaside_machine::PageSize;
use rustix::fs::{fallocate, ftruncate, memfd_create, FallocateFlags, MemfdFlags};

use crate::metal::MetalError;

/// Where the kernel shows its pools.
const POOLS: &str = "/sys/kernel/mm/hugepages";

/// The folder of a size's pool.
fn folder(size: PageSize) -> String {
    format!("hugepages-{}kB", size.bytes() >> 10)
}

/// Why the pool has no page of this size to give, and what to do; `None` = it has one.
pub(crate) fn lacks(size: PageSize) -> Option<String> {
    lacks_in(Path::new(POOLS), size)
}

fn lacks_in(pools: &Path, size: PageSize) -> Option<String> {
    let pool = pools.join(folder(size));
    let number = |name: &str| -> Option<u64> { std::fs::read_to_string(pool.join(name)).ok()?.trim().parse().ok() };
    let (Some(all), Some(free)) = (number("nr_hugepages"), number("free_hugepages")) else {
        return Some(format!("this system has no pool of {size} pages ({} is not there)", pool.display()));
    };
    // Free ones may be promised to others.
    if free > number("resv_hugepages").unwrap_or(0) {
        return None;
    }
    let reserve = format!("as root: echo {} > {}", all + 1, pool.join("nr_hugepages").display());
    Some(match all {
        0 => format!("no {size} page is set aside; one will do ({reserve}; at boot: hugepagesz={size} hugepages=1)"),
        _ => format!("all {all} {size} pages that are set aside are in use; one more will do ({reserve})"),
    })
}

/// A page of 1 GiB, ours as long as the file is open: asked for whole at once, since a touch of what is not there would kill.
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
        let says = || lacks_in(pools.path(), PageSize::G1);
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
        assert!(none.starts_with("no 1G page is set aside") && none.contains("echo 1 > "), "{none}");
        assert!(none.contains("hugepagesz=1G hugepages=1"), "{none}");
        assert!(used.starts_with("all 2 1G pages") && used.contains("echo 3 > "), "{used}");
    }
}
