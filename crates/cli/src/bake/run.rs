//! `lookaside bake run`: a program with a helper in each of its processes.

use lookaside_runtime::bake::{BakeError, PreloadSettings};

use crate::args::bake::BakeRunArgs;
use crate::launch::Launch;
use crate::preload::baker_exit::BakerExit;
use crate::preload::library::{self, check_loadable, BAKER, BAKE_INSTEAD};
use lookaside_cli::exit::Failure;
use lookaside_cli::output::short_count;
use lookaside_cli::say::say;

/// Runs the program. Without statistics this process becomes the program.
pub fn run(args: &BakeRunArgs) -> Result<u8, Failure> {
    let bad = |e: BakeError| Failure::bad(format_args!("--settings: {e}"));
    let baker: PreloadSettings = args.settings.parse().map_err(bad)?;
    baker.check().map_err(bad)?;
    check_loadable(&args.command, BAKE_INSTEAD)?;
    let mut launch = Launch::of(&args.command);
    launch.preload(&library::find(&BAKER)?);
    // What another command around this one has set stays: it may apply a technique of its own.
    launch.command.env_remove("LOOKASIDE_BAKE_STATS").env("LOOKASIDE_BAKE", baker.to_string());
    // Nothing is refused any more: an error would be one line, alone.
    if lookaside_host::allowed_cpus().map_or(2, |cpus| cpus.len()) < 2 {
        say("the program may use only one CPU, which the helper would take from it; it runs without the helper");
    }
    match args.stats {
        true => launch.with_statistics("LOOKASIDE_BAKE_STATS", summary),
        false => Err(launch.replace_this_process()),
    }
}

/// A line for all processes, and one for each that had something to bake or where the system refused a call.
fn summary(lines: &str) -> String {
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
