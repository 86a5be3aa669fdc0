//! A report as plain data: written once, drawn by [`crate::terminal`] and [`crate::html`].
//!
//! All text in it is made harmless ([`crate::text::clean`]) when it is put in or drawn; HTML is escaped when it is
//! drawn.

use crate::chart::Chart;
use crate::line::Paint;
use crate::rich_text::RichText;
use crate::table::{Bar, Table};

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// What kind of report this is: `Translation cost`.
    pub title: String,
    /// What it is about: a command line, a machine; may be empty.
    pub subtitle: String,
    /// The terminal shows the title too; a list needs none.
    pub titled: bool,
    /// The answer in one or a few sentences.
    pub answer: Vec<RichText>,
    /// What has to be known first, in words: that it was cut short, that a program failed.
    pub banners: Vec<RichText>,
    /// How this was made, in short: what was seen, which machine.
    pub facts: Vec<Fact>,
    /// The report itself.
    pub parts: Vec<Part>,
    /// Remarks, one sentence or a few each.
    pub notes: Vec<RichText>,
    /// The version that made it.
    pub version: String,
    /// On a terminal, tables and plots give way so that the whole fits on one screen.
    pub one_screen: bool,
}

/// Something and what it is, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// A word or two.
    pub label: String,
    /// What it is.
    pub words: RichText,
}

/// A section, or two that may stand beside each other.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// One section.
    Section(Section),
    /// Two, beside each other where there is room.
    Pair(Section, Section),
}

/// Which renderer draws a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    /// Terminal and page.
    #[default]
    Both,
    /// The page alone: what is too long, or too fine, for a terminal.
    Page,
    /// The terminal alone: what the page shows in another form.
    Terminal,
}

/// A heading and what stands below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Of the page.
    pub heading: String,
    /// The terminal shows the heading too; a table whose columns say what it is needs none.
    pub headed: bool,
    /// How to read what follows; on the page alone.
    pub lead: RichText,
    /// Where it is drawn.
    pub medium: Medium,
    /// What it shows.
    pub blocks: Vec<DocumentBlock>,
}

/// Something to show.
#[derive(Clone, Debug, PartialEq)]
pub enum DocumentBlock {
    /// A heading below the section's.
    Heading(String),
    /// A paragraph.
    Text(RichText),
    /// A list.
    List(Vec<RichText>),
    /// Labels and what they mean.
    Facts(Vec<Fact>),
    /// Cards beside each other.
    Cards(Vec<Card>),
    /// A table.
    Table(Table),
    /// A chart.
    Chart(Chart),
    /// Charts of one kind beside each other; a legend for all.
    Charts(Vec<Chart>),
    /// On the page folded away below this summary; a terminal leaves it out.
    Details(String, Vec<DocumentBlock>),
}

/// A card: a figure for the eye, a sentence or two, short lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// A question or a word.
    pub title: String,
    /// The figure.
    pub figure: Option<(Paint, String)>,
    /// Sentences.
    pub text: Vec<RichText>,
    /// Lists, each with its heading (may be empty).
    pub lists: Vec<(String, Vec<CardItem>)>,
}

/// A line of a card's list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CardItem {
    /// What.
    pub label: String,
    /// How much.
    pub value: String,
    /// The same as a bar.
    pub bar: Option<Bar>,
    /// More, in small print; may be empty.
    pub detail: String,
}

impl Document {
    /// An empty document.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        Self { title: title.into(), subtitle: subtitle.into(), titled: true, version, ..Self::default() }
    }

    /// Title and subtitle in one line.
    pub fn full_title(&self) -> String {
        match self.subtitle.as_str() {
            "" => self.title.clone(),
            of if self.title.ends_with('?') => format!("{} {of}", self.title),
            of => format!("{}: {of}", self.title),
        }
    }

    /// Adds a sentence to the answer.
    pub fn answer(&mut self, sentence: impl Into<RichText>) {
        self.answer.push(sentence.into());
    }

    /// Adds a banner.
    pub fn banner(&mut self, words: impl Into<RichText>) {
        self.banners.push(words.into());
    }

    /// Adds the banner of a result that ended early.
    pub fn cut_short(&mut self, why: impl AsRef<str>) {
        let words = RichText::painted(Paint::Warn, format!("Cut short: {}.", why.as_ref()));
        self.banner(words.plain(" This is what was known by then."));
    }

    /// Adds a fact.
    pub fn fact(&mut self, label: impl Into<String>, words: impl Into<RichText>) {
        self.facts.push(Fact { label: label.into(), words: words.into() });
    }

    /// Adds a note.
    pub fn note(&mut self, words: impl Into<RichText>) {
        self.notes.push(words.into());
    }

    /// Adds a section; nothing if it has no blocks.
    pub fn section(&mut self, section: Section) {
        if !section.is_empty() {
            self.parts.push(Part::Section(section));
        }
    }

    /// Adds two sections that may stand beside each other; one alone if the other is empty.
    pub fn pair(&mut self, left: Section, right: Section) {
        match left.is_empty() || right.is_empty() {
            true => [left, right].into_iter().for_each(|section| self.section(section)),
            false => self.parts.push(Part::Pair(left, right)),
        }
    }
}

impl Section {
    /// A section that terminal and page draw below this heading.
    pub fn new(heading: impl Into<String>) -> Self {
        Self { headed: true, ..Self::unheaded(heading) }
    }

    /// A section whose heading is on the page alone.
    pub fn unheaded(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), ..Self::default() }
    }

    /// Drawn here alone.
    #[must_use]
    pub fn only(self, medium: Medium) -> Self {
        Self { medium, ..self }
    }

    /// How to read it.
    #[must_use]
    pub fn lead(self, lead: impl Into<RichText>) -> Self {
        Self { lead: lead.into(), ..self }
    }

    /// With a block more; an empty table, list or chart adds none.
    #[must_use]
    pub fn with(mut self, block: impl Into<DocumentBlock>) -> Self {
        self.push(block);
        self
    }

    /// Adds a block; an empty table, list or chart adds none.
    pub fn push(&mut self, block: impl Into<DocumentBlock>) {
        let block = block.into();
        if !block.is_empty() {
            self.blocks.push(block);
        }
    }

    /// Has nothing to show.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl DocumentBlock {
    fn is_empty(&self) -> bool {
        match self {
            Self::Heading(words) => words.is_empty(),
            Self::Text(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Facts(facts) => facts.is_empty(),
            Self::Cards(cards) => cards.is_empty(),
            Self::Table(table) => table.is_empty(),
            Self::Chart(chart) => chart.is_empty(),
            Self::Charts(charts) => charts.iter().all(Chart::is_empty),
            Self::Details(_, blocks) => blocks.iter().all(Self::is_empty),
        }
    }
}

impl From<Table> for DocumentBlock {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Chart> for DocumentBlock {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}

impl From<Vec<Chart>> for DocumentBlock {
    fn from(charts: Vec<Chart>) -> Self {
        Self::Charts(charts.into_iter().filter(|chart| !chart.is_empty()).collect())
    }
}

impl From<Vec<Card>> for DocumentBlock {
    fn from(cards: Vec<Card>) -> Self {
        Self::Cards(cards)
    }
}

impl From<Vec<Fact>> for DocumentBlock {
    fn from(facts: Vec<Fact>) -> Self {
        Self::Facts(facts)
    }
}

impl From<RichText> for DocumentBlock {
    fn from(text: RichText) -> Self {
        Self::Text(text)
    }
}
