//! What the preloaded library writes of the code that it put on huge pages.

use lookaside_runtime::hugepages::ProcessCode;

/// The lines of all processes. A line that was cut, by a process that was killed, is left out.
pub fn read_lines(text: &str) -> Vec<ProcessCode> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_were_cut_are_left_out() {
        let process = ProcessCode { pid: 7, program: "cc1".into(), by_copy: 2, by_file: 1, ..ProcessCode::default() };
        let line = serde_json::to_string(&process).expect("text");
        let read = read_lines(&format!("{line}\n{}\n{line}", &line[..line.len() / 2]));
        assert_eq!((read.len(), read[0].made()), (2, 3));
        assert_eq!(read[1], process);
    }
}
