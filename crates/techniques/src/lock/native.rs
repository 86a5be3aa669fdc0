//! Where a plan's pages lie in a plain run of the program (Song et al. 2022, Section IV and Figure 3): what is locked
//! is a page of that run, not of the profiled one.

use super::plan::{LockPlan, NativePage};
use super::regions::{name, RegionMatching};
use crate::plan::ProgramPlan;

impl ProgramPlan for LockPlan {
    fn remarks_mut(&mut self) -> &mut Vec<String> {
        &mut self.remarks
    }

    fn find_natively(&mut self, process: u32, mapping: &RegionMatching) {
        for page in &mut self.pages {
            (page.native, page.not_native) = (None, None);
            if page.process != process {
                page.not_native = Some(format!(
                    "process {} was started by the program; a plain run shows the program alone",
                    page.process
                ));
                continue;
            }
            match mapping.map_page(page.vpn * self.page_bytes) {
                Ok(mapped) => {
                    page.native = Some(NativePage {
                        vpn: mapped.address / self.page_bytes,
                        region: name(&mapped.region),
                        offset_bytes: mapped.offset,
                        confidence: mapped.confidence(),
                        rests_on: mapped.reasons.iter().map(ToString::to_string).collect(),
                    });
                }
                Err(why) => page.not_native = Some(why.to_string()),
            }
        }
    }
}
