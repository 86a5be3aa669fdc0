//! Sizes on the command line.

use lookaside_cli::exit::Failure;

/// `8G`, `512M`, `64K` or a number of bytes.
pub fn read_bytes(text: &str) -> Result<u64, Failure> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift));
    bytes.ok_or_else(|| Failure::bad(format_args!("--size {text}: write bytes as 8G, 512M or 65536")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let read = |text: &str| read_bytes(text).ok();
        assert_eq!(read("8G"), Some(8 << 30));
        assert_eq!((read("512m"), read("3K"), read("17")), (Some(512 << 20), Some(3072), Some(17)));
        for bad in ["", "G", "1.5G", "-1", "1T", "99999999999G", "8Gi", "é"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }
}
