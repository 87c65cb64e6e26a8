//! Which crate may depend on which, and which packages are kept behind which crate.
//!
//! ```text
//!   tests > server > bench > client > core, proto, disk, quic > model
//! ```
//! `core` and `proto` never see each other; `client` sees neither the engine nor the server. The
//! arrows hold for tests of a crate too; a build script sees no crate of ours at all.
//!
//! # Invariants
//! - The rule crates have a list of what they may use, so a new package there is a decision made
//!   here and not an accident.
//!
//! # Not here
//! - What the code of a rule crate names: [`crate::purity`] and the crates' `clippy.toml`.

use crate::Finding;
use crate::manifest::{Dependency, Kind, Manifest, NotUnderstood, Renames, parse, renames};
use crate::tree::File;

/// A crate and the crates it may see.
struct Layer {
    folder: &'static str,
    package: &'static str,
    may_see: &'static [&'static str],
}

const LAYERS: [Layer; 9] = [
    Layer {
        folder: "engine/model",
        package: "nova-model",
        may_see: &[],
    },
    Layer {
        folder: "engine/core",
        package: "nova-core",
        may_see: &["nova-model"],
    },
    Layer {
        folder: "engine/disk",
        package: "nova-disk",
        may_see: &["nova-model", "nova-core"],
    },
    Layer {
        folder: "net/proto",
        package: "nova-proto",
        may_see: &["nova-model"],
    },
    Layer {
        folder: "net/quic",
        package: "nova-quic",
        may_see: &["nova-model"],
    },
    Layer {
        folder: "net/client",
        package: "nova-client",
        may_see: &["nova-model", "nova-proto", "nova-quic"],
    },
    Layer {
        folder: "server",
        package: "nova-server",
        may_see: &[
            "nova-model",
            "nova-core",
            "nova-disk",
            "nova-proto",
            "nova-quic",
            "nova-client",
            "nova-bench",
        ],
    },
    Layer {
        folder: "bench",
        package: "nova-bench",
        may_see: &[
            "nova-model",
            "nova-core",
            "nova-disk",
            "nova-proto",
            "nova-quic",
            "nova-client",
        ],
    },
    Layer {
        folder: "bench/pieces",
        package: "nova-pieces",
        may_see: &["nova-model", "nova-core", "nova-proto"],
    },
];

/// A crate below this folder may see every crate but the load generator.
const TESTS_FOLDER: &str = "tests/";
const LOAD_GENERATOR: &str = "nova-bench";

/// Crates of rules: no clock, file, socket, thread, randomness or async.
pub const RULE_CRATES: [&str; 3] = ["engine/model", "engine/core", "net/proto"];
/// What the rule crates may use beside our own: none of these looks at the world outside.
const RULE_CRATES_MAY_USE: [&str; 4] = ["bytes", "crc32fast", "rkyv", "thiserror"];
/// What their tests may use on top.
const RULE_TESTS_MAY_USE: [&str; 2] = ["insta", "proptest"];

/// A package and the crates that alone may name it.
struct Kept {
    packages: &'static [&'static str],
    folders: &'static [&'static str],
    /// Crates whose tests may use them, too.
    tests_of: &'static [&'static str],
}

const KEPT: [Kept; 3] = [
    Kept {
        packages: &["quinn", "quinn-proto", "quinn-udp"],
        folders: &["net/quic"],
        tests_of: &[],
    },
    // The client's tests run the star's end of QUIC in the same process, on its executor.
    Kept {
        packages: &["glommio"],
        folders: &["engine/disk", "net/quic", "server"],
        tests_of: &["net/client"],
    },
    Kept {
        packages: &[
            "axum",
            "flate2",
            "http-body",
            "hyper",
            "hyper-util",
            "tokio-rustls",
            "utoipa",
            "utoipa-axum",
            "zstd",
        ],
        folders: &["server"],
        tests_of: &[],
    },
];

/// Checks every manifest of the tree.
pub fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let root = files.iter().find(|file| file.path == "Cargo.toml");
    let names = match root.map(|root| renames(&root.text)) {
        Some(Ok(names)) => names,
        Some(Err(error)) => return vec![not_understood("Cargo.toml", &error)],
        None => Renames::new(),
    };
    for file in files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        match parse(&file.text, &names) {
            Ok(manifest) => findings.extend(check_manifest(folder, &manifest)),
            Err(error) => findings.push(not_understood(&file.path, &error)),
        }
    }
    findings.extend(check_rule_crates(files));
    findings
}

fn not_understood(path: &str, error: &NotUnderstood) -> Finding {
    Finding::new(
        path,
        error.line,
        "manifest",
        format!("`{}` is not understood", error.text),
        "write one `key = value` a line",
    )
}

fn check_manifest(folder: &str, manifest: &Manifest) -> Vec<Finding> {
    let path = format!("{folder}/Cargo.toml");
    let mut findings = Vec::new();
    if !manifest.has_workspace_lints {
        findings.push(Finding::new(
            &path,
            1,
            "manifest",
            "the lints of the workspace do not apply",
            "add `[lints]` with `workspace = true`",
        ));
    }
    if let Some(found) = misplaced(folder, &manifest.name) {
        findings.push(Finding::new(
            &path,
            1,
            "arrow",
            found,
            "give the crate a place in tests/tidy/src/arrows.rs and docs/ARCHITECTURE.md",
        ));
        return findings;
    }
    for dependency in &manifest.dependencies {
        findings.extend(check_dependency(folder, &path, dependency));
    }
    findings
}

/// What is wrong with a crate of this name in this folder, if anything is.
fn misplaced(folder: &str, name: &str) -> Option<String> {
    if folder.starts_with(TESTS_FOLDER) {
        return None;
    }
    match LAYERS.iter().find(|layer| layer.folder == folder) {
        None => Some(format!("the crate `{name}` has no place among the layers")),
        Some(layer) if layer.package != name => {
            let package = layer.package;
            Some(format!("the crate here is `{name}`, not `{package}`"))
        }
        Some(_) => None,
    }
}

fn check_dependency(folder: &str, path: &str, dependency: &Dependency) -> Vec<Finding> {
    let package = dependency.package.as_str();
    let mut findings = Vec::new();
    let mut refuse = |rule: &'static str, advice: &'static str| {
        let found = format!("{folder} depends on `{package}` ({:?})", dependency.kind);
        findings.push(Finding::new(path, dependency.line, rule, found, advice));
    };
    if package.starts_with("nova-") {
        if !may_see(folder, package, dependency.kind) {
            refuse("arrow", "arrows go down only: move what is shared below");
        }
        return findings;
    }
    if RULE_CRATES.contains(&folder) && !rules_may_use(package, dependency.kind) {
        refuse(
            "rule-crate",
            "rules see no clock, file, socket, thread or chance; a pure package joins the list",
        );
    }
    for kept in &KEPT {
        let is_test = dependency.kind == Kind::Dev && kept.tests_of.contains(&folder);
        if kept.packages.contains(&package) && !kept.folders.contains(&folder) && !is_test {
            refuse("kept", "use it through the crate that keeps it");
        }
    }
    findings
}

fn may_see(folder: &str, package: &str, kind: Kind) -> bool {
    if kind == Kind::Build {
        return false;
    }
    if folder.starts_with(TESTS_FOLDER) {
        return package != LOAD_GENERATOR;
    }
    LAYERS
        .iter()
        .find(|layer| layer.folder == folder)
        .is_some_and(|layer| layer.may_see.contains(&package))
}

fn rules_may_use(package: &str, kind: Kind) -> bool {
    let in_tests = kind == Kind::Dev && RULE_TESTS_MAY_USE.contains(&package);
    in_tests || RULE_CRATES_MAY_USE.contains(&package)
}

/// Every rule crate has its list of what clippy refuses there.
fn check_rule_crates(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in RULE_CRATES {
        let path = format!("{folder}/clippy.toml");
        let list = files.iter().find(|file| file.path == path);
        let refuses = |path: &str| {
            let quoted = format!("path = \"{path}\"");
            list.is_some_and(|list| list.text.contains(&quoted))
        };
        for refused in [
            "std::time::Instant::now",
            "std::time::SystemTime::now",
            "std::thread::spawn",
            "std::net::UdpSocket",
            "std::fs::File",
            "std::env::var",
            "std::collections::HashMap",
        ] {
            if !refuses(refused) {
                findings.push(Finding::new(
                    &path,
                    1,
                    "rule-crate",
                    format!("`{refused}` is not refused"),
                    "the three rule crates have the same clippy.toml",
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
#[path = "arrows_tests.rs"]
mod tests;
