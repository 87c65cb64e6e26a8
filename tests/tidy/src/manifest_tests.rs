//! Manifests: every way to write a dependency is read, everything else is refused.

use super::*;

const SAMPLE: &str = r##"
[package]
name = "nova-sample" # a comment
keywords = [
    "one",
]

[lints]
workspace = true

[dependencies]
bytes.workspace = true
"plain" = "1"
renamed = { version = "1", package = "real", features = ["a", "b"] }
from_root.workspace = true

[dependencies.alone]
version = "1"
package = "really"

[target.'cfg(target_os = "linux")'.dependencies]
linux = "1"

[build-dependencies]
builder = "1"

[dev-dependencies]
tester = { workspace = true }

[features]
default = ["dep:plain"]
"##;

#[test]
fn every_way_to_write_a_dependency_is_read() {
    let root = "[workspace.dependencies]\nfrom_root = { package = \"origin\", version = \"1\" }\n";
    let manifest = parse(SAMPLE, &renames(root).unwrap()).unwrap();
    assert_eq!(manifest.name, "nova-sample");
    assert!(manifest.has_workspace_lints);
    let found: Vec<(Kind, &str)> = manifest
        .dependencies
        .iter()
        .map(|d| (d.kind, d.package.as_str()))
        .collect();
    let expected = [
        (Kind::Normal, "bytes"),
        (Kind::Normal, "plain"),
        (Kind::Normal, "real"),
        (Kind::Normal, "origin"),
        (Kind::Normal, "really"),
        (Kind::Normal, "linux"),
        (Kind::Build, "builder"),
        (Kind::Dev, "tester"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_line_that_is_not_understood_is_refused() {
    let refused = parse("[dependencies]\nwhat is this\n", &Renames::new());
    let expected = NotUnderstood {
        line: 2,
        text: "what is this".to_owned(),
    };
    assert_eq!(refused, Err(expected));
}

#[test]
fn lints_of_the_workspace_are_seen_when_absent() {
    let manifest = parse("[package]\nname = \"x\"\n", &Renames::new()).unwrap();
    assert!(!manifest.has_workspace_lints);
}
