//! Whether huge pages will help: the range that is predicted, and what was measured.

use lookaside_techniques::Analysis;

use super::parts::Esc;
use crate::gain;
use lookaside_report::Paint;

/// The section; nothing where nothing is known.
pub fn section(analysis: &Analysis) -> String {
    let said = gain::said(analysis);
    if said.is_empty() {
        return String::new();
    }
    let lead = "Modelled time is not the program's run time. At the low end as many walks overlap each other as any core has \
                walkers, and hits of later TLB levels are hidden; page faults, zeroing and memory bloat are in neither end. Both take walks at the model's cost.";
    let mut out = format!(
        r#"<section class="long titled" aria-labelledby="gain"><h2 id="gain">Will huge pages help?</h2><p class="lead">{lead}</p>"#
    );
    for sentence in said {
        let class = match sentence.paint {
            Paint::Good => r#" class="good""#,
            Paint::Bad => r#" class="bad""#,
            _ => "",
        };
        out += &format!("<p{class}>{}</p>", Esc(&sentence.words));
    }
    out + "</section>\n"
}
