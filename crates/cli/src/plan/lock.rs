//! `lookaside plan lock`: record or read, count, choose, report.

use lookaside_engine::{Filter, Setup};
use lookaside_report::terminal;
use lookaside_techniques::lock::plan::{plan, LockRequest};
use lookaside_techniques::lock::profile::LockProfile;
use lookaside_techniques::lock::select::Search;
use lookaside_techniques::lock::target::LockTarget;
use lookaside_techniques::lock::LockError;
use lookaside_views::lock::{view, view_counts};

use crate::args::plan::lock::PlanLockArgs;
use crate::plan::input::{self, InputEnd, InputWatch};
use crate::plan::native_run;
use lookaside_cli::exit::Failure;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::machines;
use lookaside_cli::output::{check_writable, print, style, to_json, write_file};

/// Runs the command. Exit code 1 where a part of the input could not be read or the program failed.
pub fn run(args: &PlanLockArgs) -> Result<u8, Failure> {
    let setup = Setup::new(machines::find(&args.machine)?);
    let target = LockTarget::find(&setup.machine, args.tlb.as_deref(), args.entries)?;
    args.output.iter().try_for_each(|path| check_writable(path))?;
    args.report.check()?;
    let interrupt = Interrupt::install()?;
    // What cannot run plainly is known before it is recorded.
    let plain = args.native.then(|| native_run::run(&args.command, &interrupt)).transpose()?;
    if interrupt.asked() {
        eprintln!("lookaside: interrupted: nothing was recorded");
        return Ok(interrupt.code());
    }
    let filter = Filter::exact_for(std::slice::from_ref(&setup));
    let mut input = input::open(args.trace.as_deref(), &args.command, &setup, filter, &interrupt)?;
    let mut watch = InputWatch::new(&input, args.native);
    let mut profile = LockProfile::record(&mut *input.source, &setup, &target.tlb, &mut |block| watch.see(block))?;
    let end = input.control.as_ref().map(|control| control.wait()).transpose()?;
    interrupt.unwatch();
    profile.remarks.append(&mut input.remarks);
    let ended = InputEnd { damage: &profile.damage, error: profile.error.as_ref(), end };
    let mut code = input::clean(&ended, &mut profile.remarks);
    let bar = watch.choosing();
    let selector = args.select.into();
    let request = LockRequest { target, selector, search: Search::default(), command: input.command };
    let mut found = match plan(&setup, &profile, &request, &watch.names, interrupt.flag()) {
        Err(LockError::Stopped) => {
            bar.finish_and_clear();
            eprintln!("lookaside: {}; these have most misses of what was seen", LockError::Stopped);
            print(&terminal::render(&view_counts(&profile.counts), &style(None)))?;
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
