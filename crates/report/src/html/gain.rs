//! Whether huge pages will help: the range that is predicted, and what was measured.

use lookaside_techniques::Analysis;

use super::parts::Esc;
use crate::gain;
use crate::line::Paint;

/// The section; nothing where nothing is known.
pub fn section(analysis: &Analysis) -> String {
    let said = gain::said(analysis);
    if said.is_empty() {
        return String::new();
    }
    let mut out =
        String::from(r#"<section class="long titled" aria-labelledby="gain"><h2 id="gain">Will huge pages help?</h2>"#);
    for fact in said {
        let class = match fact.paint {
            Paint::Dim => r#" class="lead""#,
            Paint::Good => r#" class="good""#,
            Paint::Bad => r#" class="bad""#,
            _ => "",
        };
        let label = match fact.label {
            "" => String::new(),
            label => format!("<strong>{label}</strong> "),
        };
        out += &format!("<p{class}>{label}{}</p>", Esc(&fact.words));
    }
    out + "</section>\n"
}
