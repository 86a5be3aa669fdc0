//! `schemas/` has the JSON Schema of each result of the papers, as it is today, and none beside those and the tool's.

use lookaside_fast_address_space_switching::{metal::SwitchReport, SWITCH_SCHEMA};
use lookaside_harness::{Reproduction, REPRODUCTION_SCHEMA};
use lookaside_report::json_schema::schema;
use lookaside_tlb_coloring::{tasks::TaskSetReport, TASKS_SCHEMA};
use lookaside_tlb_migration::{metal::MoveReport, MIGRATION_SCHEMA};

#[path = "../../../../crates/views/tests/views/schema_folder.rs"]
mod schema_folder;

#[test]
fn the_folder_has_each_as_it_is() {
    let papers = vec![
        (MIGRATION_SCHEMA, schema::<MoveReport>(MIGRATION_SCHEMA)),
        (REPRODUCTION_SCHEMA, schema::<Reproduction>(REPRODUCTION_SCHEMA)),
        (SWITCH_SCHEMA, schema::<SwitchReport>(SWITCH_SCHEMA)),
        (TASKS_SCHEMA, schema::<TaskSetReport>(TASKS_SCHEMA)),
    ];
    let tool = lookaside_views::json::schemas();
    let mut named: Vec<_> = papers.iter().chain(&tool).map(|(name, _)| schema_folder::file(name)).collect();
    schema_folder::assert_current(papers);
    let files = std::fs::read_dir(schema_folder::folder()).expect("the folder");
    let mut there: Vec<_> =
        files.map(|file| file.expect("an entry").file_name().into_string().expect("text")).collect();
    named.sort();
    there.sort();
    assert_eq!(there, named, "schemas/ and the results");
}
