//! Checks what CPUID and sysfs say against the measurements of a report.

use crate::claims::claim::{CheckedClaim, Claim, HardwarePart, PartSize};
use crate::report::ProbeReport;

impl ProbeReport {
    /// Holds what is stated against what was found, and keeps both.
    pub fn compare(&mut self, stated: Vec<Claim>) {
        let claims = stated.into_iter().map(|stated| {
            let measured = self.measured(stated.part);
            CheckedClaim::new(stated, measured)
        });
        self.claims = claims.collect();
    }

    fn measured(&self, part: HardwarePart) -> Option<PartSize> {
        match part {
            HardwarePart::DataTlb { level, page_size } => {
                let found = self.levels.iter().find(|found| (found.level, found.page_size) == (level, page_size))?;
                let geometry = found.geometry.value()?;
                Some(PartSize::new(geometry.entries.into(), geometry.ways))
            }
            HardwarePart::DataCache { level } => {
                let found = self.caches.as_ref()?.levels.iter().find(|found| found.level == level)?;
                if let Some(shape) = found.shape.value() {
                    return Some(PartSize::new(shape.bytes, shape.ways));
                }
                let bytes = found.bytes.value()?;
                Some(PartSize::between(bytes.low as u64, bytes.high as u64))
            }
        }
    }
}
