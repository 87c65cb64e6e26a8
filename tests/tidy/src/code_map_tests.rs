//! The code map: a crate without a line and a line without a place are both told.

use super::*;

fn messages(document: Option<&str>) -> Vec<String> {
    let mut files = vec![
        File::new("Cargo.toml", ""),
        File::new("engine/core/Cargo.toml", ""),
        File::new("engine/core/src/shard/mod.rs", ""),
        File::new("server/Cargo.toml", ""),
    ];
    files.extend(document.map(|text| File::new(PATH, text)));
    check(&files).iter().map(Finding::to_string).collect()
}

#[test]
fn a_map_of_the_whole_tree_passes() {
    for document in [
        "# A\n## Code map\n- `engine/core/`: x\n- `server`: y\n## Next\n`net/gone`\n",
        "## The code map\n| `engine/core/src/shard` | x |\n### More\n`server/`, `Shard`\n",
        "## Code map\n```\nengine/core   rules\nserver        binary\n```\n",
    ] {
        assert_eq!(messages(Some(document)), Vec::<String>::new(), "{document}");
    }
}

#[test]
fn a_missing_or_empty_map_is_told() {
    for document in [
        None,
        Some("# A\n`engine/core` `server`\n"),
        Some("## Code map\n"),
    ] {
        assert_eq!(messages(document).len(), 1, "{document:?}");
    }
}

#[test]
fn a_crate_without_a_line_and_a_line_without_a_place_are_told() {
    let found = messages(Some("## Code map\n\n`engine/core` `engine/gone`\n"));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("docs/ARCHITECTURE.md:3: [code-map] `engine/gone`"));
    assert!(found[1].contains("`server` is not on the map"));
}
