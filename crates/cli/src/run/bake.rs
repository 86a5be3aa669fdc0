//! `lookaside run --bake --stats`: what the helpers did in the processes that exited.

use crate::preload::baker_exit::BakerExit;
use lookaside_cli::output::short_count;

/// A line for all processes, and one for each that had something to bake or where the system refused a call.
pub fn summary(lines: &str) -> String {
    let lines = BakerExit::read_lines(lines);
    let helper_ms = lines.iter().map(|line| line.cpu_nanos).sum::<u64>() as f64 / 1e6;
    let busy: Vec<&BakerExit> = lines.iter().filter(|line| line.touches > 0 || line.errno != 0).collect();
    let mut text = format!(
        "lookaside: baked {} of {} processes that exited; helpers used {helper_ms:.1} ms of CPU\n",
        busy.len(),
        lines.len()
    );
    for line in busy {
        let share = 100.0 * line.cpu_nanos as f64 / line.elapsed_nanos.max(1) as f64;
        text += &format!(
            "lookaside:   {} touches in {} rounds, up to {} MiB in small pages, {share:.1} % of a CPU over {:.2} s; by {}; at the end: {}{}\n",
            short_count(line.touches),
            short_count(line.rounds),
            line.most_small_bytes >> 20,
            line.elapsed_nanos as f64 / 1e9,
            line.backend,
            line.state,
            if line.errno == 0 {
                String::new()
            } else {
                format!(" ({})", std::io::Error::from_raw_os_error(line.errno))
            },
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_what_was_baked() {
        let line = |touches: u64, errno: i32| {
            format!(
                "{{\"pid\":1,\"bake\":\"auto\",\"backend\":\"prefetch:t0\",\"state\":\"warm\",\"errno\":{errno},\"elapsed_nanos\":2000000000,\"cpu_nanos\":500000000,\
                 \"rounds\":3,\"touches\":{touches},\"pause_nanos\":0,\"looks\":1,\"longest_look_nanos\":1,\"ranges\":1,\
                 \"small_bytes\":1,\"most_small_bytes\":8388608}}\n"
            )
        };
        let text = summary(&[line(300, 0), line(0, 0), line(0, libc::EPERM), "{\"pid\":".into()].concat());
        assert!(text.starts_with("lookaside: baked 2 of 3 processes that exited; helpers used 1500.0 ms"), "{text}");
        assert!(
            text.contains(
                "300 touches in 3 rounds, up to 8 MiB in small pages, 25.0 % of a CPU over 2.00 s; by prefetch:t0; at the end: warm\n"
            ),
            "{text}"
        );
        assert!(text.contains("Operation not permitted"), "{text}");
        assert_eq!(text.lines().count(), 3);
    }
}
