//! The keys of this processor and kernel: x86-64 alone.

#![cfg_attr(not(target_arch = "x86_64"), allow(unused))]

use super::error::NoKeys;
use super::keys::{denied, Keys};

/// The running process's.
pub(super) struct ProtectionKeys;

/// The number of the last error.
fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn address(start: usize) -> *mut libc::c_void {
    std::ptr::with_exposed_provenance_mut(start)
}

/// What the processor and the kernel say by CPUID, where there was no key.
#[cfg(target_arch = "x86_64")]
fn reason(errno: i32) -> NoKeys {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const PKU: u32 = 1 << 3;
    const OSPKE: u32 = 1 << 4;
    let ecx = if __cpuid(0).eax < 7 { 0 } else { __cpuid_count(7, 0).ecx };
    match () {
        () if ecx & (PKU | OSPKE) == 0 => NoKeys::Processor,
        // ENOSYS: a kernel or a sandbox without the call.
        () if ecx & OSPKE == 0 || errno == libc::ENOSYS => NoKeys::Kernel,
        () => NoKeys::Taken,
    }
}

#[cfg(target_arch = "x86_64")]
impl Keys for ProtectionKeys {
    fn alloc(&mut self) -> Result<u8, NoKeys> {
        const PKEY_DISABLE_ACCESS: libc::c_long = 1;
        // SAFETY: a number of the kernel's; the calling thread gets no right to it.
        let key = unsafe { libc::syscall(libc::SYS_pkey_alloc, 0, PKEY_DISABLE_ACCESS) };
        match u8::try_from(key) {
            Ok(key @ 1..=15) => Ok(key),
            _ => Err(reason(errno())),
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
        // Key 0 is everybody's: without a right to it the next access to the stack would fault.
        let mask = mask & !(denied(0) * 3);
        // SAFETY: there was a key, so the kernel has switched the instructions on (CR4.PKE). No `nomem`: accesses stay
        // on their side of it.
        unsafe {
            let old: u32;
            std::arch::asm!("rdpkru", in("ecx") 0, out("eax") old, out("edx") _, options(nostack));
            let new = old & !mask | rights & mask;
            std::arch::asm!("wrpkru", in("eax") new, in("ecx") 0, in("edx") 0, options(nostack));
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
