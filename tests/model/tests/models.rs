//! Every configuration of every model, and what TLC must find in it.
//!
//! Without Java or TLC the two tests that need them say what is missing and how to get it, and
//! pass: the checker is no part of a Rust toolchain. The others always run.
//!
//! Canaries: a configuration that takes a safeguard away and still holds fails the test, and so
//! does a whole model in which nothing ever happens.

use nova_model_check::tlc::{Outcome, Tlc};
use nova_model_check::{document, folder, root};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

/// What must be found: nothing, or that this invariant is broken.
type Expected = Option<&'static str>;

const FENCED_WRITER: [(&str, Expected); 8] = [
    ("FW_both", None),
    ("FW_token", None),
    ("FW_nofence", Some("AppliedOnce")),
    ("FW_nodedup", Some("AppliedOnce")),
    ("FW_norepeat", Some("AppliedOnce")),
    ("FW_latecheck", Some("TrueRefusals")),
    ("FW_oldtoken", Some("TrueRefusals")),
    ("FW_canary", Some("NothingHappens")),
];

const SEGMENT: [(&str, Expected); 10] = [
    ("SG_one", None),
    ("SG_all", None),
    ("SG_all3", None),
    ("SG_majority", Some("AckedKept")),
    ("SG_nocas", Some("SealedOnce")),
    ("SG_nofence", Some("AckedKept")),
    ("SG_norepair", Some("Readable")),
    ("SG_one_nofence", Some("AckedKept")),
    ("SG_one_nocas", Some("SealedOnce")),
    ("SG_canary", Some("NothingHappens")),
];

#[test]
fn fenced_writer() {
    check_all("FencedWriter", &FENCED_WRITER);
}

#[test]
fn segment() {
    check_all("Segment", &SEGMENT);
}

#[test]
fn every_configuration_is_expected() {
    let expected = FENCED_WRITER.iter().chain(&SEGMENT);
    let expected: BTreeSet<String> = expected.map(|(name, _)| format!("{name}.cfg")).collect();
    let files = fs::read_dir(folder()).expect("the folder of the models");
    let names = files.map(|file| file.expect("a file").file_name().into_string());
    let names = names.map(|name| name.expect("a name in UTF-8"));
    let found: BTreeSet<String> = names.filter(|name| name.ends_with(".cfg")).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_document_names_all_of_the_models_and_code_that_is_there() {
    let path = root().join("docs/MODELS.md");
    let text = fs::read_to_string(path).expect("docs/MODELS.md");
    let mut findings = document::check_code(&text, &root());
    for module in ["FencedWriter", "Segment"] {
        let path = folder().join(format!("{module}.tla"));
        let model = fs::read_to_string(path).expect("a model");
        findings.extend(document::check_model(&text, &model));
    }
    for (config, _) in FENCED_WRITER.iter().chain(&SEGMENT) {
        if !text.contains(&format!("`{config}`")) {
            findings.push(format!("`{config}` is not explained"));
        }
    }
    assert!(
        findings.is_empty(),
        "docs/MODELS.md:\n{}",
        findings.join("\n")
    );
}

fn check_all(module: &str, configs: &[(&str, Expected)]) {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = scratch.parent().expect("it is in the target folder");
    let tlc = match Tlc::find(target) {
        Ok(tlc) => tlc,
        Err(missing) => return say(&format!("{module} is not checked: {missing}")),
    };
    let mut wrong = Vec::new();
    for (config, expected) in configs {
        let run = match tlc.check(&folder(), module, config, scratch) {
            Ok(run) => run,
            Err(failure) => panic!("{module}, {config}: {failure}"),
        };
        let found = match &run.outcome {
            Outcome::Holds => "holds".to_owned(),
            Outcome::Broken(name) => format!("breaks {name}"),
        };
        say(&format!("{config}: {found}, {} states", run.states));
        let wanted = expected.map_or(Outcome::Holds, |name| Outcome::Broken(name.to_owned()));
        if run.outcome != wanted {
            wrong.push(format!("{config} {found}, expected {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{module}: {}", wrong.join("; "));
}

/// Prints also from a test that passes: what was not checked, and how much was, is to be seen.
fn say(line: &str) {
    // Without a place to print to, the test still counts.
    let _ = writeln!(std::io::stderr(), "model: {line}");
}
