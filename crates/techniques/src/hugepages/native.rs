//! Where a plan's windows lie in a plain run of the program, by the mapping of [`crate::lock::regions`].

use super::plan::{HugePlan, NativeRange, PlannedWindow};
use super::BASE_BYTES;
use crate::lock::regions::{name, RegionMatching};
use crate::plan::ProgramPlan;

impl ProgramPlan for HugePlan {
    fn remarks_mut(&mut self) -> &mut Vec<String> {
        &mut self.remarks
    }

    fn find_natively(&mut self, process: u32, mapping: &RegionMatching) {
        for window in self.windows.iter_mut().chain(&mut self.later) {
            let found = if window.process == process {
                find(window, mapping)
            } else {
                let whose = window.process;
                Err(format!("process {whose} was started by the program; a plain run shows the program alone"))
            };
            (window.native, window.not_native) = match found {
                Ok(range) => (Some(range), None),
                Err(why) => (None, Some(why)),
            };
        }
    }
}

fn find(window: &PlannedWindow, mapping: &RegionMatching) -> Result<NativeRange, String> {
    let first = mapping.map_page(window.address).map_err(|why| why.to_string())?;
    for page in (window.address..window.address.saturating_add(window.bytes)).step_by(BASE_BYTES as usize) {
        let there = mapping.map_page(page).map_err(|why| why.to_string())?;
        if there.address.wrapping_sub(first.address) != page - window.address {
            return Err(format!("{page:#x}: lies apart from the window's start in the plain run"));
        }
    }
    Ok(NativeRange {
        address: first.address,
        region: name(&first.region),
        offset_bytes: first.offset,
        confidence: first.confidence(),
        rests_on: first.reasons.iter().map(ToString::to_string).collect(),
    })
}
