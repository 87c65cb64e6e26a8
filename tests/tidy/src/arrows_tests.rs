//! Arrows: each forbidden pair is refused, each allowed one passes, for every kind of dependency.

use super::*;

const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

fn name_of(folder: &str) -> &'static str {
    LAYERS
        .iter()
        .find(|layer| layer.folder == folder)
        .map_or("nova-some-test", |layer| layer.package)
}

/// The rules that a crate in `folder` breaks with `dependency` in `section`.
fn rules(folder: &str, section: &str, dependency: &str) -> Vec<&'static str> {
    let name = name_of(folder);
    let head = format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n");
    let text = format!("{head}[{section}]\n{dependency} = \"1\"\n");
    let findings = check(&[File::new(&format!("{folder}/Cargo.toml"), &text)]);
    findings
        .iter()
        .filter(|finding| finding.path.ends_with("/Cargo.toml"))
        .inspect(|finding| assert_eq!(finding.line, 6, "{finding}"))
        .map(|finding| finding.rule)
        .collect()
}

#[test]
fn crates_see_only_what_is_below_them() {
    let below = [
        ("engine/model", ""),
        ("engine/core", "model"),
        ("engine/disk", "model core"),
        ("net/proto", "model"),
        ("net/quic", "model"),
        ("net/client", "model proto quic"),
        ("server", "model core disk proto quic client bench"),
        ("bench", "model core disk proto quic client"),
        ("bench/pieces", "model core proto"),
        (
            "tests/sim",
            "model core disk proto quic client server sim e2e",
        ),
    ];
    let all = "model core disk proto quic client server bench sim e2e";
    for (folder, may_see) in below {
        for crate_name in all.split(' ') {
            let allowed = may_see.split(' ').any(|name| name == crate_name);
            let package = format!("nova-{crate_name}");
            let expected: &[&str] = if allowed { &[] } else { &["arrow"] };
            assert_eq!(
                rules(folder, SECTIONS[0], &package),
                expected,
                "{folder} {package}"
            );
            assert_eq!(
                rules(folder, SECTIONS[1], &package),
                expected,
                "{folder} {package}"
            );
            assert_eq!(rules(folder, SECTIONS[2], &package), ["arrow"]);
        }
    }
}

#[test]
fn rule_crates_use_only_what_is_pure() {
    for folder in RULE_CRATES {
        for package in [
            "tokio", "rand", "rustix", "chrono", "uuid", "flume", "tracing",
        ] {
            for section in SECTIONS {
                assert_eq!(rules(folder, section, package), ["rule-crate"], "{package}");
            }
        }
        assert_eq!(rules(folder, SECTIONS[0], "bytes"), [""; 0]);
        assert_eq!(rules(folder, SECTIONS[1], "proptest"), [""; 0]);
        assert_eq!(rules(folder, SECTIONS[0], "proptest"), ["rule-crate"]);
    }
}

#[test]
fn quinn_and_glommio_stay_behind_their_crates() {
    let folders = [
        "engine/disk",
        "net/quic",
        "net/client",
        "server",
        "bench",
        "tests/sim",
    ];
    for folder in folders {
        for package in ["quinn", "quinn-udp", "quinn-proto"] {
            let expected: &[&str] = if folder == "net/quic" { &[] } else { &["kept"] };
            assert_eq!(rules(folder, SECTIONS[0], package), expected, "{folder}");
        }
        let expected: &[&str] = match folder {
            "engine/disk" | "net/quic" | "server" => &[],
            _ => &["kept"],
        };
        assert_eq!(rules(folder, SECTIONS[0], "glommio"), expected, "{folder}");
    }
    assert_eq!(rules("net/client", SECTIONS[1], "glommio"), [""; 0]);
    assert_eq!(rules("bench", SECTIONS[1], "glommio"), ["kept"]);
}

#[test]
fn a_rename_hides_nothing() {
    let root = "[workspace.dependencies]\nq = { package = \"quinn\", version = \"1\" }\n";
    let server = "[package]\nname = \"nova-server\"\n[lints]\nworkspace = true\n\
                  [dependencies]\nq.workspace = true\n";
    let files = [
        File::new("Cargo.toml", root),
        File::new("server/Cargo.toml", server),
    ];
    assert!(check(&files).iter().any(|finding| finding.rule == "kept"));
}

#[test]
fn a_crate_out_of_place_or_without_lints_is_refused() {
    let lints = "[lints]\nworkspace = true\n";
    let cases = [
        (
            "engine/extra",
            format!("[package]\nname = \"nova-extra\"\n{lints}"),
            "arrow",
        ),
        (
            "engine/core",
            format!("[package]\nname = \"nova-heart\"\n{lints}"),
            "arrow",
        ),
        (
            "engine/core",
            "[package]\nname = \"nova-core\"\n".to_owned(),
            "manifest",
        ),
        ("engine/core", "[package]\nhm\n".to_owned(), "manifest"),
    ];
    for (folder, text, rule) in cases {
        let findings = check(&[File::new(&format!("{folder}/Cargo.toml"), &text)]);
        assert!(
            findings.iter().any(|finding| finding.rule == rule),
            "{text}"
        );
    }
}

#[test]
fn a_rule_crate_without_its_clippy_list_is_refused() {
    let findings = check(&[File::new("engine/core/clippy.toml", "")]);
    for folder in RULE_CRATES {
        let path = format!("{folder}/clippy.toml");
        assert!(
            findings.iter().any(|finding| finding.path == path),
            "{path}"
        );
    }
}
