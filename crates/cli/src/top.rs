//! The `top` command: all processes by what translation may cost them, live.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use lookaside_runtime::bake::{ProcessReport, Survey, Surveyed};
use lookaside_views::json;
use lookaside_views::top::{cells, view, TopProcesses, TopRow, HEADS};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Alignment, Constraint};
use ratatui::style::Stylize;
use ratatui::text::Text;
use ratatui::widgets::{Row, Table, TableState};
use ratatui::{DefaultTerminal, Frame};

use crate::args::top::TopArgs;
use crate::bake_status::command_files;
use crate::bake_status::helper_files::HelperFiles;
use lookaside_cli::exit::Failure;
use lookaside_cli::interrupt::Interrupt;
use lookaside_cli::output::style;

/// How soon an interruption is heeded.
#[allow(dead_code)]
mod translation;
const STEP: Duration = Duration::from_millis(50);

/// Shows them until `q`, Ctrl-C or a signal; or once.
pub fn run(args: &TopArgs) -> Result<u8, Failure> {
    args.output.check()?;
    let mut observer = ProcessObserver { survey: Survey::new(), helpers: HelperFiles::new() };
    let interval = Duration::from_secs(args.interval);
    let first = observer.snapshot()?;
    if args.once || args.output.asked() || !std::io::stdout().is_terminal() {
        let interrupt = Interrupt::install()?;
        std::thread::sleep(Duration::from_millis(300));
        let busy = observer.snapshot()?;
        let mut sampler = translation::TranslationSampler::new(lookaside_cli::here::MachineHere::kept()?.machine);
        let refused = sampler.sample(&busy.processes, interval, &|| interrupt.asked());
        if let Some(r) = refused { eprintln!("{r}"); }
        for (pid, s) in sampler.estimates()? { eprintln!("{pid} {} {s:?}", lookaside_host::Process::of(pid).comm().unwrap_or_default()); }
        let mut seen = observer.snapshot()?;
        let document = view(&seen.processes, &seen.since(&first));
        let row = |process: Surveyed| TopRow { baked: seen.baked.remove(&process.pid), process };
        let all = TopProcesses { processes: seen.processes.into_iter().map(row).collect() };
        args.output.write(&document, &json::render(&all), &style(None))?;
        return Ok(if interrupt.asked() { interrupt.code() } else { 0 });
    }
    let mut terminal = ratatui::try_init().map_err(|e| Failure::bad(format_args!("terminal: {e}")))?;
    let ended = live(&mut terminal, &mut observer, first, interval);
    ratatui::restore();
    ended
}

/// Takes snapshots of all processes and of what their bakers do.
struct ProcessObserver {
    survey: Survey,
    helpers: Option<HelperFiles>,
}

/// All processes at one moment.
struct Snapshot {
    processes: Vec<Surveyed>,
    /// By process.
    baked: BTreeMap<u32, ProcessReport>,
}

impl ProcessObserver {
    fn snapshot(&mut self) -> Result<Snapshot, Failure> {
        let processes = self.survey.look().map_err(Failure::bad)?;
        let mut baked_by_pid = command_files::running();
        for process in &processes {
            let itself = process.helpers.iter().any(|&(by, _)| by == process.pid);
            let helpers = self.helpers.as_ref().filter(|_| itself);
            if let Some(baked) = helpers.and_then(|helpers| helpers.baked(process.pid, &process.comm)) {
                baked_by_pid.insert(process.pid, baked);
            }
        }
        Ok(Snapshot { processes, baked: baked_by_pid })
    }
}

impl Snapshot {
    /// What bakers did since an earlier snapshot; since they began, for those that it does not have.
    fn since(&self, before: &Self) -> BTreeMap<u32, ProcessReport> {
        let recent = |(pid, baked): (&u32, &ProcessReport)| {
            let stats = before.baked.get(pid).map_or(baked.stats, |before| baked.stats.since(&before.stats));
            (*pid, ProcessReport { stats, ..baked.clone() })
        };
        self.baked.iter().map(recent).collect()
    }
}

fn live(
    terminal: &mut DefaultTerminal,
    observer: &mut ProcessObserver,
    mut seen: Snapshot,
    interval: Duration,
) -> Result<u8, Failure> {
    let failed = |e: std::io::Error| Failure::bad(format_args!("terminal: {e}"));
    let interrupt = Interrupt::install()?;
    let mut state = TableState::default();
    let (mut recent, mut next) = (seen.baked.clone(), Instant::now() + interval);
    loop {
        terminal.draw(|frame| draw(frame, &mut state, &seen.processes, &recent)).map_err(failed)?;
        while Instant::now() < next {
            if interrupt.asked() {
                return Ok(interrupt.code());
            }
            if !event::poll(STEP).map_err(failed)? {
                continue;
            }
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(0),
                    // In raw mode no signal comes of it.
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(0),
                    KeyCode::Down | KeyCode::Char('j') => *state.offset_mut() += 1,
                    KeyCode::Up | KeyCode::Char('k') => *state.offset_mut() = state.offset().saturating_sub(1),
                    _ => {}
                },
                _ => {}
            }
            *state.offset_mut() = state.offset().min(seen.processes.len().saturating_sub(1));
            terminal.draw(|frame| draw(frame, &mut state, &seen.processes, &recent)).map_err(failed)?;
        }
        let now = observer.snapshot()?;
        (recent, next) = (now.since(&seen), Instant::now() + interval);
        seen = now;
    }
}

/// Names stand at the left, figures at the right.
fn side(column: usize) -> Alignment {
    match HEADS[column] {
        "process" | "baked by" => Alignment::Left,
        _ => Alignment::Right,
    }
}

fn draw(frame: &mut Frame<'_>, state: &mut TableState, processes: &[Surveyed], baked: &BTreeMap<u32, ProcessReport>) {
    let rows = processes.iter().map(|process| {
        let cell = |(column, text): (usize, String)| Text::from(text).alignment(side(column));
        let row = Row::new(cells(process, baked).into_iter().enumerate().map(cell));
        if process.helpers.is_empty() {
            row
        } else {
            row.bold()
        }
    });
    let widths = HEADS.iter().enumerate().map(|(column, head)| match column {
        0 => Constraint::Min(16),
        // The longest state of a helper within: `itself, off-too-large`.
        8 => Constraint::Length(21),
        _ => Constraint::Length(head.len() as u16),
    });
    let heads = HEADS.iter().enumerate().map(|(column, head)| Text::from(*head).alignment(side(column)));
    let table = Table::new(rows, widths).header(Row::new(heads).reversed()).column_spacing(2);
    frame.render_stateful_widget(table, frame.area(), state);
}

#[cfg(test)]
mod tests {
    use lookaside_runtime::bake::BakeStats;
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    use super::*;

    #[test]
    fn a_snapshot_has_what_was_done_since_the_one_before() {
        let snapshot = |rounds_by_pid: &[(u32, u64)]| {
            let baked = |&(pid, rounds): &(u32, u64)| ProcessReport {
                pid,
                comm: "db".into(),
                running: true,
                let_go: false,
                mappings: 1,
                small_bytes: 0,
                stats: BakeStats { rounds, elapsed_nanos: 2 * rounds, ..BakeStats::default() },
                refused: None,
                within: None,
                rank: None,
            };
            Snapshot { processes: Vec::new(), baked: rounds_by_pid.iter().map(|row| (row.0, baked(row))).collect() }
        };
        // The second is new, the third began anew.
        let recent = snapshot(&[(1, 150), (2, 7), (3, 4)]).since(&snapshot(&[(1, 100), (3, 90), (4, 1)]));
        let rounds: Vec<_> =
            recent.values().map(|baked| (baked.pid, baked.stats.rounds, baked.stats.elapsed_nanos)).collect();
        assert_eq!(rounds, [(1, 50, 100), (2, 7, 14), (3, 4, 8)]);
    }

    #[test]
    fn processes_are_drawn_below_their_heads() {
        let process = |pid: u32| Surveyed {
            pid,
            comm: "db".into(),
            cpus: 0.5,
            resident_bytes: 1 << 30,
            huge_bytes: 0,
            table_bytes: 2 << 20,
            helpers: vec![(pid, 0.25)],
            started_ticks: 0,
        };
        let mut terminal = Terminal::new(TestBackend::new(120, 3)).expect("a terminal in memory");
        let processes: Vec<Surveyed> = (1..9).map(process).collect();
        let mut state = TableState::default().with_offset(4);
        terminal.draw(|frame| draw(frame, &mut state, &processes, &BTreeMap::new())).expect("drawn");
        let lines: Vec<String> = (0..3)
            .map(|y| (0..120).map(|x| terminal.backend().buffer()[(x, y)].symbol()).collect::<String>())
            .collect();
        assert!(lines[0].starts_with("process") && lines[0].contains("tables, MiB"), "{lines:?}");
        assert!(lines[1].starts_with("db (5)") && lines[1].contains("1,024"), "{lines:?}");
        assert!(lines[2].starts_with("db (6)") && lines[2].contains("itself"), "{lines:?}");
    }
}
