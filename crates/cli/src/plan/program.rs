//! Plans for a program: record or read, profile, choose, report.

use lookaside_report::{terminal, Document};
use lookaside_techniques::plan::{PlanError, Planner, ProgramPlan};
use lookaside_views::json::JsonResult;

use crate::args::plan::PlannedProgram;
use crate::plan::input::{self, InputWatch};
use crate::plan::native_run;
use crate::plan::output::PlanOutput;
use lookaside_cli::exit::Failure;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::{print, style};
use lookaside_cli::say::say;

/// How a kind of plan is shown.
pub struct PlanViews<P: Planner> {
    /// The plan.
    pub plan: fn(&P::Plan) -> Document,
    /// What there is to show where Ctrl-C ended the choice.
    pub counts: fn(&P::Profile) -> Document,
    /// What is said then.
    pub stopped: &'static str,
}

/// Plans for a program. Exit code 1 where a part of the input could not be read or the program failed.
pub fn run<P: Planner>(
    planner: &P,
    program: &PlannedProgram,
    output: &PlanOutput,
    views: &PlanViews<P>,
) -> Result<u8, Failure>
where
    P::Plan: JsonResult,
{
    output.check()?;
    let interrupt = Interrupt::install()?;
    // What cannot run plainly is known before it is recorded.
    let plain = program.native.then(|| native_run::run(&program.command, &interrupt)).transpose()?;
    if interrupt.asked() {
        say("interrupted: nothing was recorded");
        return Ok(interrupt.code());
    }
    let setup = planner.setup();
    let mut input = input::open(program.trace.as_deref(), &program.command, setup, planner.filter(), &interrupt)?;
    input.remarks.extend(planner.remarks(input.source.info()));
    let mut watch = InputWatch::new(&input, program.native);
    let mut profile = planner.profile(&mut *input.source, &mut |block| watch.see(block))?;
    let end = input.control.as_ref().map(|control| control.wait()).transpose()?;
    interrupt.unwatch();
    let coverage = P::coverage(&mut profile);
    coverage.remarks.append(&mut input.remarks);
    let mut code = input::clean(coverage, end);
    let bar = watch.choosing();
    let mut plan = match planner.plan(&profile, input.command, &watch.names, interrupt.flag()) {
        Err(PlanError::Stopped) => {
            bar.finish_and_clear();
            say(format_args!("interrupted: {}", views.stopped));
            print(&terminal::render(&(views.counts)(&profile), &style(None)))?;
            return Ok(interrupt.code());
        }
        other => other?,
    };
    if let (Some(profiled), Some(maps)) = (&watch.layout, plain) {
        let (native_code, mapping) = native_run::mapping(profiled, maps, plan.remarks_mut());
        code = code.max(native_code);
        if let Some((process, mapping)) = mapping {
            plan.find_natively(process, &mapping);
        }
    }
    bar.finish_and_clear();
    Ok(code.max(output.write(&plan, views.plan)?))
}
