//! Lists of CPUs and sizes, as the kernel writes them.

/// No machine has a CPU with a higher number (the kernel's own limit, `CONFIG_NR_CPUS`, is lower): a longer range is no
/// list of CPUs.
const MOST_CPUS: usize = 1 << 16;

/// Reads a list of CPUs, `0-3,8`, in the order in which it stands there. A part that is no number or range is left out.
pub(crate) fn parse_cpu_list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (last < MOST_CPUS).then_some(first..=last)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

/// Reads a size, `48K`, `64M`, `8G` or `77`, in bytes (binary units); `None` of anything else, and of more than 64 bits
/// hold.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    // `parse` takes a leading plus too.
    let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_cpu_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_cpu_list("5"), [5]);
        assert_eq!(parse_cpu_list("0,64"), [0, 64]);
        assert_eq!(parse_cpu_list(""), [0usize; 0]);
        assert_eq!(parse_cpu_list("x,-,3-1,a-b,7"), [7]);
        assert_eq!(parse_cpu_list("0-4294967295,2"), [2], "no list is endless");
    }

    #[test]
    fn sizes_are_read_as_the_kernel_writes_them() {
        let sizes = [("48K\n", 49152), ("32768K", 32 << 20), ("8M", 8 << 20), ("8G", 8 << 30), ("77", 77), ("0", 0)];
        for (text, bytes) in sizes {
            assert_eq!(parse_size(text), Some(bytes), "{text:?}");
        }
        for text in ["", "K", "xK", "é", "+7", "-7", "7 K", "18446744073709551615K", "18446744073709551616"] {
            assert_eq!(parse_size(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC*") {
            parse_cpu_list(&text);
            parse_size(&text);
        }

        #[test]
        fn a_list_is_read_back(mut cpus in proptest::collection::btree_set(0usize..500, 0..20)) {
            let text: Vec<String> = cpus.iter().map(usize::to_string).collect();
            prop_assert_eq!(parse_cpu_list(&text.join(",")), cpus.iter().copied().collect::<Vec<_>>());
            let (first, last) = (cpus.pop_first().unwrap_or(3), cpus.pop_last().unwrap_or(900));
            prop_assert_eq!(parse_cpu_list(&format!("{first}-{last}")), (first..=last).collect::<Vec<_>>());
        }

        #[test]
        fn a_size_is_read_back(number in 0u64..1 << 34, unit in 0usize..4) {
            let text = format!("{number}{}", ["", "K", "M", "G"][unit]);
            prop_assert_eq!(parse_size(&text), Some(number << (10 * unit)));
        }
    }
}
