//! The answer in a few sentences, and the same as cards: what it costs, who causes it, what would help.

use lookaside_report::{num, Bar, Card, CardItem, Document, Paint, RichText, Section};
use lookaside_stats::Figure;
use lookaside_techniques::{Analysis, HugePageVerdict, NamedCost, Remedy, Seeing};

use super::remedies;
use super::seeing::{command, is_sampled, sampled_seconds};
use super::totals::{name, near, share, Savings, Totals};
use super::verdict::sentence;

/// Rows of each list of a card.
const TOP: usize = 4;
/// The share of translation cycles from which on a remedy stands in the card: a tenth of a percent, rounded.
const LEAST_SAVED: f64 = 0.0005;

/// The cost, its main cause, its best remedy.
pub fn answer(analysis: &Analysis, document: &mut Document) {
    match analysis.seeing {
        Seeing::Exact { .. } => exact(analysis, document),
        Seeing::Sampled { period_ns, samples, .. } => sampled(analysis, period_ns, samples, document),
    }
}

fn exact(analysis: &Analysis, document: &mut Document) {
    let totals = Totals::of(analysis);
    if totals.accesses == 0 {
        document.answer("No access was seen: there is nothing to say about translation.");
        return;
    }
    let percent = format!("{}{}", num::percent(totals.share), between(analysis));
    if !totals.worth_it() {
        let words = format!("Translation costs {percent} of the modelled cycles{}.", nothing_to_gain(analysis));
        document.answer(RichText::painted(Paint::Good, words));
        return;
    }
    let (part, all) = (num::short(totals.translation_cycles), num::short(totals.modelled_cycles));
    let time = totals.seconds(&analysis.machine).map(|words| format!(" ({words})")).unwrap_or_default();
    let sums = match analysis.intervals {
        None => format!(": {part} of {all}{time}"),
        Some(_) => String::new(),
    };
    let words = format!("Translation costs {percent} of the modelled cycles{sums}.");
    document.answer(RichText::painted(Paint::Bad, words));
    let mut rest = RichText::new();
    if let Some(row) = dearest(analysis) {
        let causes = format!(" causes {} of it.", num::percent(share(analysis, row)));
        rest = rest.strong(name(row)).plain(causes);
    }
    if let Some(best) = analysis.remedies.first() {
        let saved = Savings::of(best, &totals).of_translation;
        if saved > 0.0 {
            let saves = format!(" would save {}{} of it.", near(best), num::percent(saved));
            let space = if rest.is_empty() { "" } else { " " };
            rest = rest.plain(space).strong(sentence(&best.what)).plain(saves);
        }
    }
    if !rest.is_empty() {
        document.answer(rest);
    }
}

/// The interval of the share, if the run was seen in intervals.
fn between(analysis: &Analysis) -> String {
    let Some(estimate) = &analysis.intervals else { return String::new() };
    match estimate.translation_share {
        Some(Figure { low, high, .. }) => format!(" ({} … {})", num::percent(low.max(0.0)), num::percent(high)),
        None => " (of too few intervals to say how sure that is)".into(),
    }
}

/// Said of a small cost, unless the verdict, which knows seconds and page faults, says otherwise.
fn nothing_to_gain(analysis: &Analysis) -> &'static str {
    match analysis.huge_gain.verdict {
        None | Some(HugePageVerdict::Nothing { .. }) => ": nothing to gain here",
        Some(HugePageVerdict::Changes { .. } | HugePageVerdict::Unknown { .. }) => "",
    }
}

fn sampled(analysis: &Analysis, period_ns: u64, samples: u64, document: &mut Document) {
    if samples == 0 {
        let words = "No sample was taken: the program used too little CPU time.";
        document.answer(RichText::painted(Paint::Warn, words));
    } else {
        let time = num::seconds(sampled_seconds(samples, period_ns));
        let words = format!(
            "ESTIMATE of where {time} of the program's time went; shares are of all samples: time, not translation \
             alone."
        );
        document.answer(RichText::painted(Paint::Warn, words));
        document.answer(match dearest(analysis) {
            Some(row) => {
                let words = format!(" takes {} of the time.", num::percent(share(analysis, row)));
                RichText::new().strong(name(row)).plain(words)
            }
            None => "No sample could be attributed.".into(),
        });
    }
    document.answer(RichText::from(exact_lead(analysis)).code(exact_command(analysis)));
}

/// What the command that is named tells.
fn exact_lead(analysis: &Analysis) -> &'static str {
    match is_running(analysis) {
        true => "Counts, walks and what would help, of a minute: ",
        false => "Counts, walks and what would help: ",
    }
}

/// It was attached to: its command is no command.
fn is_running(analysis: &Analysis) -> bool {
    let is_of = |word: &String| word.starts_with("process ") || word.starts_with("control group ");
    analysis.command.first().is_some_and(is_of)
}

fn exact_command(analysis: &Analysis) -> String {
    if !is_running(analysis) {
        return format!("lookaside analyze --exact {}", command(analysis));
    }
    // A process that was there already can't be run again; intervals of it can be recorded. Of a group's the one that
    // was seen most.
    let of_word = analysis.command.first().and_then(|word| word.strip_prefix("process ")).map(str::to_string);
    match of_word.or_else(|| dearest(analysis).map(|row| row.process.to_string())) {
        Some(pid) => format!("lookaside analyze --every 1s --stop 60s --pid {pid}"),
        None => "lookaside top --once".into(),
    }
}

/// The row that costs most: an object, else a region, else a function.
fn dearest(analysis: &Analysis) -> Option<&NamedCost> {
    [&analysis.objects, &analysis.regions, &analysis.functions].into_iter().find_map(|rows| rows.first())
}

/// The three cards.
pub fn cards(analysis: &Analysis) -> Section {
    let cost = match analysis.seeing {
        Seeing::Exact { .. } => exact_cost(analysis),
        Seeing::Sampled { period_ns, samples, resolved } => sampled_cost(period_ns, samples, resolved),
    };
    Section::unheaded("Summary").with(vec![cost, causes(analysis), helps(analysis)])
}

fn exact_cost(analysis: &Analysis) -> Card {
    let totals = Totals::of(analysis);
    let title = "What it costs".into();
    if totals.accesses == 0 {
        return Card { title, text: vec!["No access was seen.".into()], ..Card::default() };
    }
    let paint = if totals.worth_it() { Paint::Bad } else { Paint::Good };
    let end = if totals.worth_it() { "" } else { nothing_to_gain(analysis) };
    let mut text = vec![RichText::from(format!("of the modelled cycles are translation{end}."))];
    text.extend(totals.seconds(&analysis.machine).map(|words| RichText::from(format!("That is, {words}."))));
    Card { title, figure: Some((paint, num::percent(totals.share))), text, lists: Vec::new() }
}

fn sampled_cost(period_ns: u64, samples: u64, resolved: u64) -> Card {
    let found = num::share(resolved as f64, samples as f64);
    let text = format!(
        "of the program's time was seen, in {} samples of {} each. Samples tell where time goes, translation and all \
         else together; they count no misses and no walks.",
        num::grouped(samples),
        num::seconds(period_ns as f64 / 1e9)
    );
    let item = CardItem {
        label: "data address found".into(),
        value: num::percent(found),
        bar: Some(Bar::of(found)),
        detail: String::new(),
    };
    Card {
        title: "What it costs".into(),
        figure: Some((Paint::Warn, num::seconds(sampled_seconds(samples, period_ns)))),
        text: vec![text.into()],
        lists: vec![(String::new(), vec![item])],
    }
}

fn causes(analysis: &Analysis) -> Card {
    let of = if is_sampled(analysis) { "time (all samples)" } else { "translation cycles" };
    // Without objects, mappings are the next best answer.
    let data = match analysis.objects.is_empty() {
        true => ("Regions", &analysis.regions),
        false => ("Objects", &analysis.objects),
    };
    let list = |(heading, rows): (&str, &Vec<NamedCost>)| {
        (heading.to_string(), rows.iter().take(TOP).map(|row| cause(analysis, row)).collect::<Vec<_>>())
    };
    let lists: Vec<_> = [data, ("Functions", &analysis.functions)].map(list).into();
    let words = match lists.iter().all(|(_, items)| items.is_empty()) {
        true => "Nothing was attributed.".into(),
        false => RichText::painted(Paint::Dim, format!("Shares of {of}.")),
    };
    Card { title: "Who causes it".into(), figure: None, text: vec![words], lists }
}

fn cause(analysis: &Analysis, row: &NamedCost) -> CardItem {
    let share = share(analysis, row);
    CardItem { label: name(row).into(), value: num::percent(share), bar: Some(Bar::of(share)), detail: String::new() }
}

fn helps(analysis: &Analysis) -> Card {
    let title = "What would help".into();
    let words = match analysis.remedies.is_empty() {
        true if is_sampled(analysis) => {
            RichText::from("Samples cannot tell. To have it computed: ").code(exact_command(analysis))
        }
        true if Totals::of(analysis).worth_it() => "Nothing was computed; the notes say why.".into(),
        true => "Nothing is needed: translation costs next to nothing.".into(),
        false => {
            let estimate = if is_sampled(analysis) { "Estimate. " } else { "" };
            let words = format!("{estimate}Saved translation cycles; each computed by running the model again.");
            RichText::painted(Paint::Dim, words)
        }
    };
    let totals = Totals::of(analysis);
    // What saves nothing that a figure shows is in the table alone.
    let saved = |remedy: &Remedy| Savings::of(remedy, &totals).of_translation;
    let helping = analysis.remedies.iter().filter(|remedy| saved(remedy) >= LEAST_SAVED);
    let items = helping.take(TOP).map(|remedy| {
        let saved = saved(remedy);
        CardItem {
            label: remedy.what.clone(),
            value: format!("{}{}", near(remedy), num::percent(saved)),
            bar: Some(Bar::saving(saved)),
            detail: remedies::how(remedy).into(),
        }
    });
    Card { title, figure: None, text: vec![words], lists: vec![(String::new(), items.collect())] }
}
