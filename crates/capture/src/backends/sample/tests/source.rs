//! What a recording says of itself.

use super::*;

#[test]
fn a_recording_knows_its_command_and_its_period() {
    if refused_here() {
        return;
    }
    let recording = start(&request(RecordTarget::Command(vec!["sh".into(), "-c".into(), "exit 0".into()]), 3)).unwrap();
    let info = recording.source.info().clone();
    let expected = TraceInfo {
        recorder: "sample".into(),
        command: ["sh", "-c", "exit 0"].map(String::from).to_vec(),
        has_ip: true,
        sample_period_ns: 333_333_333,
        ..TraceInfo::default()
    };
    assert_eq!(info, expected);
    assert_eq!((recording.backend, &recording.notes), (RecorderBackend::Sample, &notes(3)));
    assert_eq!(recording.control.wait().unwrap(), ChildEnd::Code(0));
}

#[test]
fn the_notes_say_what_the_weights_are_and_what_is_not_seen() {
    let notes = notes(1234);
    assert_eq!(notes.len(), 2);
    assert!(notes[0].contains("sampled 1234 times a second") && notes[0].contains("not counts"), "{}", notes[0]);
    assert!(notes[1].contains("are not seen") && notes[1].contains("valgrind backend"), "{}", notes[1]);
}

#[test]
fn the_command_of_a_running_process_is_its_own() {
    assert_eq!(command_of(std::process::id()), std::env::args().collect::<Vec<_>>());
    assert!(command_of(5_000_000).is_empty());
}

#[test]
fn blocks_come_as_they_are_sent_and_what_was_lost_at_the_end() {
    for lost in [0, 1, 7] {
        let (sender, blocks) = crossbeam_channel::unbounded();
        let collector = Arc::new(CollectorState::default());
        let info = TraceInfo { recorder: "this one".into(), ..TraceInfo::default() };
        let mut source = SampleSource { info: info.clone(), blocks, collector: Arc::clone(&collector), damage: vec![] };
        assert_eq!(source.info(), &info);
        let sent = Block { process: 7, addr: vec![1, 2], ..Block::default() };
        sender.send(sent.clone()).unwrap();
        drop(sender);
        collector.lost.store(lost, Ordering::Relaxed);
        let mut block = Block { addr: vec![9], ..Block::default() };
        assert!(source.next_block(&mut block).unwrap());
        assert_eq!((&block, source.damage()), (&sent, &[][..]));
        // However often one asks.
        for _ in 0..2 {
            assert!(!source.next_block(&mut block).unwrap() && block.is_empty());
            let reasons: Vec<&str> = source.damage().iter().map(|damage| damage.reason.as_str()).collect();
            let said = format!("{lost} records lost: the machine was too busy to take them; sample less often");
            assert_eq!(reasons, if lost > 0 { vec![said.as_str()] } else { vec![] });
        }
    }
}
