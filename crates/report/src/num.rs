//! Numbers for people: thousands separators, three significant digits, units. A number that does not
//! exist (a share of nothing, a value that is not finite) is written `–`. A no-break space stands before the unit.

/// Written where there is no number.
pub const NONE: &str = "–";

/// All digits with separators: `12,345,678`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many of something whose plural ends in s: `1 page`, `2,000 pages`.
pub fn counted(n: usize, one: &str) -> String {
    format!("{} {one}{}", grouped(n as u64), if n == 1 { "" } else { "s" })
}

/// A count or an amount of cycles, short: all digits below 10,000, then three significant digits and `k`, `M`, `G`,
/// `T`.
pub fn short(n: f64) -> String {
    if !n.is_finite() {
        return NONE.into();
    }
    let sign = if n < 0.0 { "-" } else { "" };
    let n = n.abs();
    if n.round() < 10_000.0 {
        return format!("{sign}{}", grouped(n.round() as u64));
    }
    let units = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18)];
    for (unit, size) in units {
        if (n / size) < 999.5 {
            return format!("{sign}{}\u{a0}{unit}", three_digits(n / size));
        }
    }
    format!("{sign}{n:.2e}")
}

/// A rate, as misses per thousand accesses: three significant digits, at most four decimals.
pub fn rate(x: f64) -> String {
    if !x.is_finite() {
        return NONE.into();
    }
    match x.abs() {
        0.0 => "0".into(),
        a if a < 0.00005 => "<0.0001".into(),
        a if a < 0.1 => format!("{x:.4}"),
        a if a < 999.5 => three_digits(x),
        _ => short(x),
    }
}

fn three_digits(x: f64) -> String {
    match x.abs() {
        a if a < 9.995 => format!("{x:.2}"),
        a if a < 99.95 => format!("{x:.1}"),
        _ => format!("{x:.0}"),
    }
}

/// `part` for each thousand of `whole`; not a number where `whole` is 0.
pub fn per_kilo(part: f64, whole: u64) -> f64 {
    if whole == 0 {
        f64::NAN
    } else {
        part * 1000.0 / whole as f64
    }
}

/// `part` of `whole`, 1 = all; not a number where `whole` is not positive.
pub fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole
    } else {
        f64::NAN
    }
}

/// A share (1 = all) as `12.3 %`; more than nothing and less than half a thousandth as `<0.1 %`, below nothing as
/// `-<0.1 %`.
pub fn percent(share: f64) -> String {
    let hundredths = share * 100.0;
    if !hundredths.is_finite() {
        return NONE.into();
    }
    if hundredths != 0.0 && hundredths.abs() < 0.05 {
        return if hundredths < 0.0 { "-<0.1\u{a0}%".into() } else { "<0.1\u{a0}%".into() };
    }
    if hundredths.abs() >= 9999.5 {
        return format!("{}\u{a0}%", short(hundredths));
    }
    format!("{hundredths:.1}\u{a0}%")
}

/// A size in bytes: `512 B`, `64 KiB`, `2.10 GiB`.
pub fn bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n}\u{a0}B");
    }
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut size = n as f64 / 1024.0;
    let mut unit = 0;
    while size >= 999.5 && unit + 1 < units.len() {
        size /= 1024.0;
        unit += 1;
    }
    let digits = if size.fract() == 0.0 { format!("{size:.0}") } else { three_digits(size) };
    format!("{digits}\u{a0}{}", units[unit])
}

/// A time in seconds: `15.7 s`, `3.20 ms`, `812 µs`, `4 min 10 s`.
pub fn seconds(s: f64) -> String {
    if !s.is_finite() {
        return NONE.into();
    }
    match s.abs() {
        0.0 => "0 s".into(),
        a if a < 1e-6 => format!("{}\u{a0}ns", three_digits(s * 1e9)),
        a if a < 999.5e-6 => format!("{}\u{a0}µs", three_digits(s * 1e6)),
        a if a < 0.9995 => format!("{}\u{a0}ms", three_digits(s * 1e3)),
        a if a < 119.5 => format!("{}\u{a0}s", three_digits(s)),
        a if a < 1e15 => {
            format!("{}\u{a0}min {}\u{a0}s", grouped((s.round() / 60.0) as u64), s.round() as u64 % 60)
        }
        _ => format!("{s:.2e}\u{a0}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let spaced = |text: String| text.replace('\u{a0}', " ");
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(spaced(short(9_999.4)), "9,999");
        assert_eq!(spaced(short(9_999.6)), "10.0 k");
        assert_eq!(spaced(short(999_499.0)), "999 k");
        assert_eq!(spaced(short(999_500.0)), "1.00 M");
        assert_eq!(spaced(short(-12_400_000_000.0)), "-12.4 G");
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(0.001_23), "0.0012");
        assert_eq!(rate(0.000_01), "<0.0001");
        assert_eq!(rate(88.14), "88.1");
        assert_eq!(rate(1470.0), "1,470");
        assert_eq!(spaced(percent(0.3141)), "31.4 %");
        assert_eq!(spaced(percent(0.000_1)), "<0.1 %");
        assert_eq!(spaced(percent(-0.000_1)), "-<0.1 %");
        assert_eq!(spaced(percent(0.0)), "0.0 %");
        assert_eq!(spaced(percent(f64::NAN)), "–");
        assert_eq!(spaced(bytes(4096)), "4 KiB");
        assert_eq!(spaced(bytes(1023 * 1024)), "1.00 MiB");
        assert_eq!(spaced(bytes(2_254_857_830)), "2.10 GiB");
        assert_eq!(spaced(seconds(0.0032)), "3.20 ms");
        assert_eq!(spaced(seconds(250.0)), "4 min 10 s");
        assert_eq!(spaced(short(u64::MAX as f64)), "18.4 E");
        assert_eq!(spaced(short(f64::INFINITY)), "–");
    }
}
