//! Which CPUs the helper may use, and how much the last cache under them holds. Read from where the system describes
//! CPUs.

use std::ffi::CStr;

use lookaside_runtime::bake::freestanding::CpuCounts;
use lookaside_runtime::bake::Placement;

use crate::sys::{self, CpuMask};

/// Why there is no CPU for the helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCpu {
    /// The program may use one only: the helper would take it away.
    Single,
    /// The one asked for can't be had.
    Refused,
}

/// Puts the helper where it is to be, and says how many CPUs there are. `auto` = any CPU under the last cache of the
/// one that the program was started on.
pub(crate) fn settle(placement: Placement, start_cpu: u32, text: &mut [u8]) -> Result<CpuCounts, NoCpu> {
    let allowed = sys::allowed_cpus().map_err(|_| NoCpu::Refused)?;
    let mut online: CpuMask = [0; 128];
    list(sys::read_file(libc::AT_FDCWD, c"/sys/devices/system/cpu/online", text).unwrap_or_default(), &mut online);
    let cpus = match (count(&allowed), count(&online)) {
        (0 | 1, _) => return Err(NoCpu::Single),
        (allowed, 0) => CpuCounts { allowed, online: u32::MAX },
        (allowed, online) => CpuCounts { allowed, online },
    };
    let mut wanted: CpuMask = [0; 128];
    match placement {
        Placement::Cpu(cpu) => set(&mut wanted, cpu),
        Placement::Sibling => {
            list(describe(start_cpu, "topology/thread_siblings_list", text), &mut wanted);
            clear(&mut wanted, start_cpu);
        }
        Placement::Auto => {
            list(last_cache(start_cpu, "shared_cpu_list", text), &mut wanted);
        }
    }
    for (word, allowed) in wanted.iter_mut().zip(&allowed) {
        *word &= allowed;
    }
    match (count(&wanted), placement) {
        // Under another cache than the program's it would be of no use, but the scheduler may know better.
        (0 | 1, Placement::Auto) => Ok(cpus),
        (0, _) => Err(NoCpu::Refused),
        _ => sys::stay_on(&wanted).map(|()| cpus).map_err(|_| NoCpu::Refused),
    }
}

/// Bytes of the last cache; `None` where the system does not say.
pub(crate) fn last_cache_bytes(cpu: u32, text: &mut [u8]) -> Option<u64> {
    let said = last_cache(cpu, "size", text);
    let digits = said.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let count = number(said.get(..digits)?)?;
    match said.get(digits) {
        Some(b'K') => count.checked_shl(10),
        Some(b'M') => count.checked_shl(20),
        _ => Some(count),
    }
}

/// A file of the last of a CPU's caches: index3 where there is a third level, else index2.
fn last_cache<'a>(cpu: u32, file: &str, text: &'a mut [u8]) -> &'a [u8] {
    let third = if file == "size" { "cache/index3/size" } else { "cache/index3/shared_cpu_list" };
    let second = if file == "size" { "cache/index2/size" } else { "cache/index2/shared_cpu_list" };
    let name = if describe(cpu, third, text).is_empty() { second } else { third };
    describe(cpu, name, text)
}

/// A file of a CPU's description; empty where there is none.
fn describe<'a>(cpu: u32, file: &str, text: &'a mut [u8]) -> &'a [u8] {
    let mut path = [0u8; 128];
    let mut length = 0;
    let mut digits = [0u8; 10];
    let parts = [b"/sys/devices/system/cpu/cpu".as_slice(), decimal(cpu, &mut digits), b"/", file.as_bytes()];
    for byte in parts.into_iter().flatten() {
        // The last byte stays zero.
        if let Some(at) = path.get_mut(length).filter(|_| length < 127) {
            *at = *byte;
            length = length.wrapping_add(1);
        }
    }
    let Ok(path) = CStr::from_bytes_until_nul(&path) else { return &[] };
    sys::read_file(libc::AT_FDCWD, path, text).unwrap_or_default()
}

/// A number in digits.
fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut begin = digits.len();
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0'.wrapping_add((number % 10) as u8);
        number /= 10;
        begin = at;
        if number == 0 {
            break;
        }
    }
    digits.get(begin..).unwrap_or_default()
}

/// Sets the CPUs of a list as the kernel writes it: `0-3,7`.
fn list(text: &[u8], mask: &mut CpuMask) {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    for part in text.split(|&byte| byte == b',') {
        let mut ends = part.split(|&byte| byte == b'-').map(number);
        let (Some(Some(first)), last) = (ends.next(), ends.next()) else { continue };
        let last = last.unwrap_or(Some(first)).unwrap_or(first);
        for cpu in first..=last.min(first.saturating_add(8191)) {
            set(mask, cpu as u32);
        }
    }
}

/// A number of its digits.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, &digit| {
        let value = (digit as char).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(value))
    })
}

fn count(mask: &CpuMask) -> u32 {
    mask.iter().map(|word| word.count_ones()).sum()
}

fn set(mask: &mut CpuMask, cpu: u32) {
    if let Some(word) = mask.get_mut((cpu / 64) as usize) {
        *word |= 1 << (cpu % 64);
    }
}

fn clear(mask: &mut CpuMask, cpu: u32) {
    if let Some(word) = mask.get_mut((cpu / 64) as usize) {
        *word &= !(1 << (cpu % 64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        let read = |text: &[u8]| {
            let mut mask: CpuMask = [0; 128];
            list(text, &mut mask);
            (mask[0], mask[1])
        };
        assert_eq!(read(b"0-3,7\n"), (0b1000_1111, 0));
        assert_eq!(read(b"64\n"), (0, 1));
        assert_eq!(read(b"x,1-x,\n"), (0b10, 0));
        assert_eq!(read(b""), (0, 0));
        assert_eq!(read(b"99999999999999999999,18446744073709551615\n"), (0, 0));
    }

    #[test]
    fn numbers_become_digits() {
        for number in [0, 7, 10, 4_294_967_295u32] {
            assert_eq!(decimal(number, &mut [0; 10]), number.to_string().as_bytes());
        }
    }
}
