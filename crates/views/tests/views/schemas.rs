//! `schemas/` has the JSON Schema of each result, as it is today.

use lookaside_views::json::schemas;

#[path = "schema_folder.rs"]
mod schema_folder;

#[test]
fn the_folder_has_each_as_it_is() {
    schema_folder::assert_current(schemas());
}
