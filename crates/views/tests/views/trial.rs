//! What trials found, in words.

use lookaside_report::{html, terminal, Style};
use lookaside_runtime::bake::Surveyed;
use lookaside_runtime::trial::{
    AutopilotTotals, Decision, LeverCalls, LeverState, Measure, MeasureEffect, PhaseRow, TrialProcess, TrialReport,
    TrialVerdict, CONFIDENCE,
};
use lookaside_stats::Shift;
use lookaside_views::autopilot::{line, metrics};
use lookaside_views::trial::{answer, view, Trials};

fn effect(value: f64, low: f64, high: f64) -> MeasureEffect {
    MeasureEffect {
        measure: Measure::CpuTimePerWrite,
        name: "CPU time a write call".into(),
        off: 6.2e-6,
        on: 5.7e-6,
        change: Shift { value, low, high },
        pairs: 30,
    }
}

fn trial() -> TrialReport {
    let phase = |pair, on, value| PhaseRow {
        pair,
        on,
        at_seconds: f64::from(pair),
        value,
        cpus: 0.5,
        resident_bytes: 1 << 30,
        applied_share: f64::from(u8::from(on)),
        left_out: None,
    };
    TrialReport {
        number: 7,
        what: "hugepages".into(),
        processes: vec![TrialProcess { pid: 4711, comm: "db\u{1b}[2J".into() }],
        windows: Some(64),
        windows_share: Some(0.4),
        metric: "CPU time a write call".into(),
        more_is_better: false,
        metric_reason: Some("it makes 5000 write calls a second".into()),
        seed: 1,
        phase_seconds: 5.0,
        settle_seconds: 0.5,
        seconds: 600.0,
        switches: 40,
        confidence: CONFIDENCE,
        effect: Some(effect(-0.07, -0.09, -0.05)),
        beside: vec![MeasureEffect {
            measure: Measure::CpuTime,
            name: "CPU time a second".into(),
            ..effect(0.0, -0.02, 0.02)
        }],
        halves: [Some(effect(-0.07, -0.1, -0.05)), None],
        added_bytes: 38 << 20,
        verdict: TrialVerdict::Helps,
        decision: Decision::Kept,
        advice: Some("for every start: start it so".into()),
        state_at_end: LeverState { applied: 64, not_applied: 0 },
        calls: LeverCalls { calls: 2560, nanos: 1, longest_apply_nanos: 12_000_000, ..LeverCalls::default() },
        phases: vec![phase(0, true, Some(5.7e-6)), phase(0, false, Some(6.2e-6)), phase(1, false, None)],
        ended: None,
        notes: vec!["one note".into()],
    }
}

fn plain(text: String) -> String {
    text.replace('\u{a0}', " ")
}

#[test]
fn the_answer_has_what_was_found_and_done() {
    let of = |trial: TrialReport| plain(answer(&trial));
    assert_eq!(
        of(trial()),
        "Huge pages help: CPU time a write call −7.0 % (−9.0 to −5.0), CPU time a second +0.0 % (−2.0 to +2.0), memory +38 \
         MiB, by 40 switches in 10 min 0 s. Kept. Undo: lookaside undo 7"
    );
    let taken = |verdict| TrialReport { verdict, decision: Decision::TakenBack, ..trial() };
    assert!(
        of(taken(TrialVerdict::Hurts)).starts_with("Huge pages hurt: ")
            && of(taken(TrialVerdict::Hurts)).ends_with("Taken back.")
    );
    assert!(of(taken(TrialVerdict::NoEffect)).starts_with("Huge pages have no effect: "));
    assert!(of(taken(TrialVerdict::CantTell)).starts_with("No effect of huge pages is shown: "));
    let bake = |verdict| TrialReport { what: "bake".into(), ..taken(verdict) };
    assert!(
        of(bake(TrialVerdict::Helps)).starts_with("Baking helps: ")
            && of(bake(TrialVerdict::Helps)).ends_with("Ended.")
    );
    assert!(
        of(bake(TrialVerdict::NoEffect)).starts_with("Baking has no effect: ")
            && !of(bake(TrialVerdict::Helps)).contains("memory")
    );
    let few = TrialReport { effect: None, decision: Decision::Ended, ..trial() };
    assert_eq!(of(few), "Can't tell: there were too few phases, 40 switches in 10 min 0 s. It ended, and all with it.");
    let state_at_end = LeverState { applied: 3, not_applied: 61 };
    let left = TrialReport { decision: Decision::NotAllTakenBack, state_at_end, ..trial() };
    assert!(of(left).ends_with("3 of 64 huge pages could not be taken back. Try again: lookaside undo 7"));
}

#[test]
fn a_report_has_measures_on_the_terminal_and_phases_on_the_page() {
    let document = view(&Trials { trials: vec![trial()] });
    let text = plain(terminal::render(&document, &Style { width: 100, ..Style::default() }));
    for part in [
        "judged by  CPU time a write call; less is better (it makes 5000 write calls a second)",
        "99 % interval",
        "−9.0 % to −5.0 %",
        "· one note",
        "start it so",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "names are harmless");
    let page = html::render(&document);
    assert!(page.contains("second halves") || page.contains("first halves of phases"));
    assert!(page.contains("Every phase") && page.contains("signed-rank"));
}

#[test]
fn a_decision_is_one_harmless_line_and_metrics_have_it() {
    let process = Surveyed {
        pid: 4711,
        comm: "db\n\u{1b}".into(),
        cpus: 1.0,
        resident_bytes: 0,
        huge_bytes: 0,
        table_bytes: 0,
        helpers: Vec::new(),
        started_ticks: 0,
    };
    let line_of = |tried| line(&process, tried);
    let found = trial();
    let text = line_of(Ok(&found));
    assert!(text.contains("(4711): Huge pages help: ") && !text.contains('\n') && !text.contains('\u{1b}'), "{text}");
    assert!(line_of(Err("no right to")).ends_with("(4711): not tried: no right to"));
    let early = TrialReport { ended: Some("interrupted".into()), decision: Decision::TakenBack, ..trial() };
    assert!(line_of(Ok(&early)).ends_with("Taken back. Ended early: interrupted."));
    let totals = AutopilotTotals { trials: 3, kept: 1, taken_back: 2, ..AutopilotTotals::default() };
    let few = TrialReport { effect: None, ..trial() };
    let text = metrics(&[trial(), few], &totals, 1.5);
    assert!(text.contains("lookaside_autopilot_trials_total 3") && text.ends_with("# EOF\n"), "{text}");
    assert_eq!(text.matches("lookaside_autopilot_effect_ratio{").count(), 1, "{text}");
    assert!(text.contains("} -0.07") && !text.contains('\u{1b}'), "{text}");
}
