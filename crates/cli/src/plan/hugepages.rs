//! `lookaside plan hugepages`: record or read, count, choose, report.

use std::ffi::OsString;
use std::path::Path;

use lookaside_engine::{Filter, PagePolicy, Setup};
use lookaside_report::terminal;
use lookaside_techniques::hugepages::plan::plan;
use lookaside_techniques::hugepages::profile::HugeProfile;
use lookaside_techniques::hugepages::{check, HugeError};
use lookaside_techniques::remedies;
use lookaside_views::hugepages::{view, view_counts};

use crate::args::plan::hugepages::PlanHugepagesArgs;
use crate::plan::input::{self, InputEnd, InputWatch, PlanInput};
use crate::plan::native_run;
use lookaside_cli::exit::Failure;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::machines;
use lookaside_cli::output::{check_writable, print, style, to_json, write_file};

/// Runs the command. Exit code 1 where a part of the input could not be read or the program failed.
pub fn run(args: &PlanHugepagesArgs) -> Result<u8, Failure> {
    let setup = Setup::new(machines::find_or_nearest(args.machine.as_deref())?);
    check(&setup.machine)?;
    args.output.iter().try_for_each(|path| check_writable(path))?;
    args.report.check()?;
    let interrupt = Interrupt::install()?;
    // What cannot run plainly is known before it is recorded.
    let plain = args.native.then(|| native_run::run(&args.command, &interrupt)).transpose()?;
    if interrupt.asked() {
        eprintln!("lookaside: interrupted: nothing was recorded");
        return Ok(interrupt.code());
    }
    let mut input = open(args.trace.as_deref(), &args.command, &setup, &interrupt)?;
    let mut watch = InputWatch::new(&input, args.native);
    let mut profile = HugeProfile::record(&mut *input.source, &setup, &mut |block| watch.see(block))?;
    let end = input.control.as_ref().map(|control| control.wait()).transpose()?;
    interrupt.unwatch();
    profile.remarks.append(&mut input.remarks);
    let ended = InputEnd { damage: &profile.damage, error: profile.error.as_ref(), end };
    let mut code = input::clean(&ended, &mut profile.remarks);
    let bar = watch.choosing();
    let mut found = match plan(&setup, &profile, args.budget, input.command, &watch.names, interrupt.flag()) {
        Err(HugeError::Stopped) => {
            bar.finish_and_clear();
            eprintln!("lookaside: interrupted: no windows were chosen; these have most walks of what was seen");
            print(&terminal::render(&view_counts(&profile.windows), &style(None)))?;
            return Ok(interrupt.code());
        }
        other => other?,
    };
    if let (Some(profiled), Some(maps)) = (&watch.layout, plain) {
        let (native_code, mapping) = native_run::mapping(profiled, maps, &mut found.remarks);
        code = code.max(native_code);
        if let Some((process, mapping)) = mapping {
            found.find_natively(process, &mapping);
        }
    }
    bar.finish_and_clear();
    if let Some(path) = &args.output {
        write_file(path, &found.to_toml())?;
    }
    args.report.write(&view(&found), &to_json(&found)?, &style(None))?;
    Ok(code)
}

/// Opens the trace or starts the program, with what the recorder may leave out for base pages; where huge pages would
/// have told such accesses apart, a remark says so.
fn open(
    trace: Option<&Path>,
    command: &[OsString],
    setup: &Setup,
    interrupt: &Interrupt,
) -> Result<PlanInput, Failure> {
    let mut input = input::open(trace, command, setup, remedies::filter(setup), interrupt)?;
    let mut huge = setup.clone();
    huge.os.pages = PagePolicy::Thp;
    let exact = |setup: &Setup| Filter::check(input.source.info(), setup).is_ok();
    if exact(setup) && !exact(&huge) {
        input.remarks.push(
            "the recorder left out accesses that base pages make hits, and huge pages may lie in other sets: what is saved is near, \
             not exact (--granularity line, in a trace of lookaside record, has it exact)"
                .into(),
        );
    }
    Ok(input)
}
