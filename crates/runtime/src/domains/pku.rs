//! The keys of this processor and kernel: x86-64 alone.

#![cfg_attr(not(target_arch = "x86_64"), allow(unused))]

use super::error::NoKeys;
use super::keys::{both, Keys};

/// The running process's.
pub(super) struct ProtectionKeys;

/// The number of the last error.
fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn address(start: usize) -> *mut libc::c_void {
    std::ptr::with_exposed_provenance_mut(start)
}

/// ECX of CPUID's leaf 7, if it has that.
#[cfg(target_arch = "x86_64")]
fn features() -> u32 {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    if __cpuid(0).eax < 7 {
        0
    } else {
        __cpuid_count(7, 0).ecx
    }
}

/// Why there was no key, by what the processor and the kernel say by CPUID and by the error number.
fn reason(ecx: u32, errno: i32) -> NoKeys {
    const PKU: u32 = 1 << 3;
    const OSPKE: u32 = 1 << 4;
    match () {
        () if ecx & (PKU | OSPKE) == 0 => NoKeys::Processor,
        // ENOSYS: a kernel or a sandbox without the call.
        () if ecx & OSPKE == 0 || errno == libc::ENOSYS => NoKeys::Kernel,
        () => NoKeys::Taken,
    }
}

/// PKRU with the bits of `mask` as in `rights`. Key 0 is everybody's: without a right to it the next access to the
/// stack would fault.
fn changed(old: u32, mask: u32, rights: u32) -> u32 {
    let mask = mask & !both(0);
    old & !mask | rights & mask
}

#[cfg(target_arch = "x86_64")]
impl Keys for ProtectionKeys {
    fn alloc(&mut self) -> Result<u8, NoKeys> {
        const PKEY_DISABLE_ACCESS: libc::c_long = 1;
        // SAFETY: a number of the kernel's; the calling thread gets no right to it.
        let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, PKEY_DISABLE_ACCESS) };
        match u8::try_from(key) {
            Ok(key @ 1..=15) => Ok(key),
            _ => Err(reason(features(), errno())),
        }
    }

    fn map(&mut self, bytes: usize) -> Result<usize, i32> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, wherever the system puts it.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if map == libc::MAP_FAILED {
            return Err(errno());
        }
        Ok(map.expose_provenance())
    }

    fn unmap(&mut self, start: usize, bytes: usize) -> Result<(), i32> {
        // SAFETY: a compartment's own mapping, which its owner has destroyed.
        match unsafe { libc::munmap(address(start), bytes) } {
            0 => Ok(()),
            _ => Err(errno()),
        }
    }

    fn protect(&mut self, start: usize, bytes: usize, key: Option<u8>) -> Result<(), i32> {
        // Not mprotect: pages would keep their key.
        let (access, key) = key.map_or((libc::PROT_NONE, 0), |key| (libc::PROT_READ | libc::PROT_WRITE, key));
        // SAFETY: compartments' own mappings, of which no reference is ever made.
        match unsafe { libc::syscall(libc::SYS_pkey_mprotect, address(start), bytes, access, libc::c_long::from(key)) }
        {
            0 => Ok(()),
            _ => Err(errno()),
        }
    }

    fn set_rights(&mut self, mask: u32, rights: u32) {
        // SAFETY: there was a key, so the kernel has switched the instructions on (CR4.PKE). No `nomem`: accesses stay
        // on their side of it.
        unsafe {
            let old: u32;
            std::arch::asm!("rdpkru", in("ecx") 0, out("eax") old, out("edx") _, options(nostack));
            std::arch::asm!("wrpkru", in("eax") changed(old, mask, rights), in("ecx") 0, in("edx") 0, options(nostack));
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Keys for ProtectionKeys {
    fn alloc(&mut self) -> Result<u8, NoKeys> {
        Err(NoKeys::Processor)
    }

    fn map(&mut self, _bytes: usize) -> Result<usize, i32> {
        Err(libc::ENOTSUP)
    }

    fn unmap(&mut self, _start: usize, _bytes: usize) -> Result<(), i32> {
        Err(libc::ENOTSUP)
    }

    fn protect(&mut self, _start: usize, _bytes: usize, _key: Option<u8>) -> Result<(), i32> {
        Err(libc::ENOTSUP)
    }

    fn set_rights(&mut self, _mask: u32, _rights: u32) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use lookaside_host::{CpuInfo, Process};

    use super::*;

    #[test]
    fn who_has_no_keys_is_said_by_the_processors_bits_and_the_error() {
        for (ecx, errno, why) in [
            (0, libc::EINVAL, NoKeys::Processor),
            (!0b11000, libc::ENOSPC, NoKeys::Processor), // all other bits
            (0b01000, libc::EINVAL, NoKeys::Kernel),
            (!0b10000, libc::ENOSPC, NoKeys::Kernel),
            (0b11000, libc::ENOSYS, NoKeys::Kernel), // a sandbox
            (0b11000, libc::ENOSPC, NoKeys::Taken),
            (0b10000, libc::ENOSPC, NoKeys::Taken),
            (!0, libc::EINVAL, NoKeys::Taken),
        ] {
            assert_eq!(reason(ecx, errno), why, "{ecx:#b} {errno}");
        }
    }

    /// Two bits a key, from key 0 on, whose bits stay.
    #[test]
    fn rights_change_in_the_bits_that_are_named_and_never_those_of_key_0() {
        assert_eq!(changed(0x5555_5554, 0b1100, 0), 0x5555_5550);
        assert_eq!(changed(0b0110_0110, 0b0011_1100, 0b1101_1001), 0b0101_1010);
        assert_eq!([changed(0, !0, !0), changed(!0, !0, 0), changed(0b10, 0b11, 0b01)], [!0b11, 0b11, 0b10]);
        assert_eq!(changed(0x1234_5678, 0, !0), 0x1234_5678);
    }

    /// The kernel may hide a feature, and has none that the processor has not.
    #[test]
    fn what_the_kernel_lists_of_leaf_7_the_processor_says() {
        let (cpu, ecx) = (CpuInfo::here(), features());
        for (bit, flag) in [(2, "umip"), (3, "pku"), (4, "ospke"), (8, "gfni"), (9, "vaes"), (22, "rdpid")] {
            assert!(cpu.has_flag(flag) != Some(true) || ecx >> bit & 1 == 1, "{flag}: {ecx:#x}");
        }
    }

    #[test]
    fn a_key_is_given_where_the_kernel_has_switched_keys_on() {
        match ProtectionKeys.alloc() {
            Ok(key) => {
                assert!((1..16).contains(&key) && features() & 0b10000 != 0, "{key}");
                // SAFETY: a key that no page carries.
                assert_eq!(unsafe { libc::syscall(libc::SYS_pkey_free, libc::c_long::from(key)) }, 0);
            }
            Err(NoKeys::Taken) => assert!(features() & 0b10000 != 0),
            Err(_) => assert!(CpuInfo::here().has_flag("ospke") != Some(true)),
        }
    }

    #[test]
    fn what_is_mapped_is_closed_to_all_until_it_is_given_back() {
        let rights = |start: usize| {
            let vmas = Process::own().maps().expect("its mappings");
            let vma = vmas.into_iter().find(|vma| (vma.start..vma.end).contains(&(start as u64)));
            vma.map(|vma| vma.rights)
        };
        let start = ProtectionKeys.map(3 * 4096).expect("memory");
        assert_eq!([0, 4096, 8192].map(|at| rights(start + at).as_deref() == Some("---p")), [true; 3]);
        assert_eq!(ProtectionKeys.unmap(start + 1, 4096), Err(libc::EINVAL), "no page begins there");
        assert_eq!(rights(start).as_deref(), Some("---p"));
        assert_eq!(ProtectionKeys.unmap(start, 3 * 4096), Ok(()));
        assert_eq!(ProtectionKeys.map(usize::MAX & !4095), Err(libc::ENOMEM), "more than there are addresses");
    }
}
