//! The folder of `--evidence`: raw samples while the probe runs, and its report.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lookaside_host::create_file;
use lookaside_probe::{EvidenceRecorder, EvidenceTotals, Metal, ProbeReport};
use lookaside_views::json;

use lookaside_cli::exit::Failure;
use lookaside_cli::output::write_file;
use lookaside_cli::say::say;

/// Samples, one JSON line a measurement.
const SAMPLES: &str = "samples.jsonl.zst";
/// What was made of them.
const REPORT: &str = "report.json";
/// zstd's own default: 20 times and more faster than the measuring.
const ZSTD_LEVEL: i32 = 3;

/// Writes what is measured into a folder.
pub struct EvidenceFolder<'m> {
    folder: PathBuf,
    recorder: EvidenceRecorder<'m, zstd::Encoder<'static, File>>,
}

impl<'m> EvidenceFolder<'m> {
    /// Makes the folder and begins the samples, before anything is measured.
    pub fn begin(folder: &Path, metal: &'m mut dyn Metal, seed: u64) -> Result<Self, Failure> {
        std::fs::create_dir_all(folder).map_err(|e| cannot_write(folder, &e))?;
        let path = folder.join(SAMPLES);
        let begun = create_file(&path).and_then(|file| zstd::Encoder::new(file, ZSTD_LEVEL));
        let out = begun.map_err(|e| cannot_write(&path, &e))?;
        Ok(Self { folder: folder.into(), recorder: EvidenceRecorder::new(metal, out, seed) })
    }

    /// The machine to measure.
    pub fn metal(&mut self) -> &mut dyn Metal {
        &mut self.recorder
    }

    /// Ends the samples that gave this report; the machine is free again.
    pub fn end(self, report: &ProbeReport) -> EvidenceSamples {
        let written = self.recorder.finish().and_then(|(out, end)| {
            let file = out.finish()?;
            file.sync_all().or_else(|e| match e.kind() {
                io::ErrorKind::InvalidInput => Ok(()), // a device or pipe
                _ => Err(e),
            })?;
            Ok(end)
        });
        EvidenceSamples { folder: self.folder, written, report: json::render(report) }
    }
}

/// Samples that were written, or could not be.
pub struct EvidenceSamples {
    folder: PathBuf,
    written: io::Result<EvidenceTotals>,
    report: String,
}

impl EvidenceSamples {
    /// Adds the report; says on standard error what the samples leave out.
    pub fn add(self) -> Result<(), Failure> {
        write_file(&self.folder.join(REPORT), &self.report)?;
        let path = self.folder.join(SAMPLES);
        let end = self.written.map_err(|e| cannot_write(&path, &e))?;
        if end.pages_left_out + end.measurements_left_out > 0 {
            say(format_args!(
                "{}: too large, so that {} of {} measurements and the page numbers of {} more are left out",
                path.display(),
                end.measurements_left_out,
                end.measurements,
                end.pages_left_out,
            ));
        }
        Ok(())
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::bad(format_args!("{}: {error}; choose another place", path.display()))
}
