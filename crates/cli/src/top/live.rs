//! The live screen: rows that are drawn again and again, while another thread samples.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lookaside_cli::exit::Failure;
use lookaside_cli::interrupt::Interrupt;
use lookaside_runtime::bake::{ProcessReport, Surveyed};
use lookaside_views::top::{cells, columns, TopProcesses, TopRow, HEADS};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Alignment, Constraint};
use ratatui::style::Stylize;
use ratatui::text::Text;
use ratatui::widgets::{Row, Table, TableState};
use ratatui::{DefaultTerminal, Frame};

use super::inspection::{Inspection, Inspector};
use super::snapshot::{ProcessObserver, Snapshot};
use crate::args::top::TopArgs;

/// How soon an interruption is heeded.
const STEP: Duration = Duration::from_millis(50);

/// Draws until `q`, Ctrl-C or a signal.
pub fn run(
    args: &TopArgs,
    mut observer: ProcessObserver,
    first: Snapshot,
    inspector: Inspector,
) -> Result<u8, Failure> {
    if args.cgroups {
        return Err(Failure::bad("--cgroups: is a snapshot; add --once"));
    }
    let interval = Duration::from_secs(args.interval);
    let shared = Arc::new(LiveState { processes: Mutex::new(first.processes.clone()), ..LiveState::default() });
    let of_thread = Arc::clone(&shared);
    let sampler = std::thread::Builder::new().name("inspector".into());
    let sampler = sampler.spawn(move || inspect(inspector, &of_thread, interval));
    let sampler = sampler.map_err(|e| Failure::bad(format_args!("a thread for sampling: {e}")))?;
    let mut terminal = ratatui::try_init().map_err(|e| Failure::bad(format_args!("terminal: {e}")))?;
    let ended = live(&mut terminal, &mut observer, first, interval, &shared);
    ratatui::restore();
    shared.stop.store(true, Ordering::Relaxed);
    let _ = sampler.join();
    ended
}

/// What the two threads tell each other.
#[derive(Default)]
struct LiveState {
    stop: AtomicBool,
    processes: Mutex<Vec<Surveyed>>,
    inspection: Mutex<Inspection>,
}

/// Samples and looks, again and again. A failure shows as an empty column.
fn inspect(mut inspector: Inspector, shared: &LiveState, interval: Duration) {
    let stop = || shared.stop.load(Ordering::Relaxed);
    while !stop() {
        let processes = lock(&shared.processes).clone();
        inspector.sample(&processes, interval, &stop);
        if let Ok(found) = inspector.inspect(&processes) {
            *lock(&shared.inspection) = found;
        }
    }
}

/// What is behind the lock is whole also where a holder panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn live(
    terminal: &mut DefaultTerminal,
    observer: &mut ProcessObserver,
    mut seen: Snapshot,
    interval: Duration,
    shared: &LiveState,
) -> Result<u8, Failure> {
    let failed = |e: std::io::Error| Failure::bad(format_args!("terminal: {e}"));
    let interrupt = Interrupt::install()?;
    let mut state = TableState::default();
    let (mut recent, mut next) = (seen.baked.clone(), Instant::now() + interval);
    loop {
        let inspection = lock(&shared.inspection).clone();
        let TopProcesses { processes: rows, .. } = seen.clone().rows(&inspection, false);
        terminal.draw(|frame| draw(frame, &mut state, &rows, &recent)).map_err(failed)?;
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
            *state.offset_mut() = state.offset().min(rows.len().saturating_sub(1));
            terminal.draw(|frame| draw(frame, &mut state, &rows, &recent)).map_err(failed)?;
        }
        let now = observer.snapshot()?;
        (recent, next) = (now.since(&seen), Instant::now() + interval);
        seen = now;
        lock(&shared.processes).clone_from(&seen.processes);
    }
}

/// Names stand at the left, figures at the right.
fn side(column: usize) -> Alignment {
    match HEADS[column] {
        "process" | "baked by" | "why small" => Alignment::Left,
        _ => Alignment::Right,
    }
}

fn draw(frame: &mut Frame<'_>, state: &mut TableState, all: &[TopRow], baked: &BTreeMap<u32, ProcessReport>) {
    let shown = columns(all);
    let rows = all.iter().map(|one| {
        let cell = |(column, text): (usize, String)| Text::from(text).alignment(side(column));
        let row = Row::new(cells(one, baked).into_iter().take(shown).enumerate().map(cell));
        if one.process.helpers.is_empty() {
            row
        } else {
            row.bold()
        }
    });
    let widths = HEADS[..shown].iter().map(|head| match *head {
        "process" => Constraint::Min(16),
        // As `14 % (12–16)`.
        "translation" => Constraint::Length(12),
        "why small" => Constraint::Length(10),
        // The longest state of a helper within: `itself, off-too-large`.
        "baked by" => Constraint::Length(21),
        head => Constraint::Length(head.len() as u16),
    });
    let heads = HEADS[..shown].iter().enumerate();
    let heads = heads.map(|(column, head)| Text::from(*head).alignment(side(column)));
    let table = Table::new(rows, widths).header(Row::new(heads).reversed()).column_spacing(2);
    frame.render_stateful_widget(table, frame.area(), state);
}

#[cfg(test)]
mod tests {
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    use super::*;

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
        let mut terminal = Terminal::new(TestBackend::new(140, 3)).expect("a terminal in memory");
        let row =
            |process| TopRow { process, control_group: None, translation: None, small_pages: Vec::new(), baked: None };
        let processes: Vec<TopRow> = (1..9).map(process).map(row).collect();
        let mut state = TableState::default().with_offset(4);
        terminal.draw(|frame| draw(frame, &mut state, &processes, &BTreeMap::new())).expect("drawn");
        let lines: Vec<String> = (0..3)
            .map(|y| (0..140).map(|x| terminal.backend().buffer()[(x, y)].symbol()).collect::<String>())
            .collect();
        assert!(lines[0].starts_with("process") && lines[0].contains("tables, MiB"), "{lines:?}");
        assert!(lines[1].starts_with("db (5)") && lines[1].contains("1,024"), "{lines:?}");
        assert!(lines[2].starts_with("db (6)") && lines[2].contains("itself"), "{lines:?}");
    }
}
