//! One run of TLC: how it is found, called and understood.
//!
//! TLC explores every state that a model can reach. It ends with code 0 when all invariants hold
//! and with 12 when one is broken; anything else says that the model or the call is wrong.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Names the jar, in place of `tla2tools.jar` in the target folder; relative to the tree's root.
pub const JAR_VARIABLE: &str = "NOVA_TLA2TOOLS";

/// A run is over in seconds, in which the second compiler of Java costs more than it gains.
const JAVA_OPTIONS: [&str; 3] = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx1g"];
const EXIT_HOLDS: i32 = 0;
const EXIT_BROKEN: i32 = 12;

/// Java and TLC, both there.
#[derive(Debug)]
pub struct Tlc {
    jar: PathBuf,
}

/// What TLC found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every invariant is true in every state.
    Holds,
    /// This invariant is false in a state that was reached.
    Broken(String),
}

/// A run that came to an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What was found.
    pub outcome: Outcome,
    /// Different states that were looked at.
    pub states: u64,
}

/// Why a run says nothing about its model.
#[derive(Debug)]
pub enum Failure {
    /// Java or a file of the run could not be had.
    System(io::Error),
    /// TLC ended with this code and these words: the model does not parse, memory ran out.
    Tlc(Option<i32>, String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::System(error) => write!(f, "TLC could not be run: {error}"),
            Failure::Tlc(code, output) => write!(f, "TLC ended with {code:?}:\n{output}"),
        }
    }
}

impl Tlc {
    /// Looks for Java and for the jar in the folder `target`; says in words what is missing and how
    /// to get it.
    pub fn find(target: &Path) -> Result<Tlc, String> {
        let jar = match env::var_os(JAR_VARIABLE) {
            Some(path) => crate::root().join(path),
            None => target.join("tla2tools.jar"),
        };
        if !jar.is_file() {
            let jar = jar.display();
            return Err(format!(
                "there is no TLC at {jar}; tests/model/fetch.sh gets it, or set {JAR_VARIABLE}"
            ));
        }
        match Command::new("java").arg("-version").output() {
            Ok(output) if output.status.success() => Ok(Tlc { jar }),
            Ok(_) | Err(_) => Err(
                "there is no working `java`; a runtime of version 11 or later \
                                   is needed, such as the package default-jre-headless"
                    .to_owned(),
            ),
        }
    }

    /// Checks `module` as `config` says; both are names of files in `folder`, without ending.
    /// What TLC writes goes below `scratch` and is removed.
    pub fn check(
        &self,
        folder: &Path,
        module: &str,
        config: &str,
        scratch: &Path,
    ) -> Result<Run, Failure> {
        let own = scratch.join(format!("tlc-{config}-{}", std::process::id()));
        fs::create_dir_all(&own).map_err(Failure::System)?;
        let result = self.check_in(folder, module, config, &own);
        fs::remove_dir_all(&own).map_err(Failure::System)?;
        result
    }

    fn check_in(
        &self,
        folder: &Path,
        module: &str,
        config: &str,
        own: &Path,
    ) -> Result<Run, Failure> {
        // TLC unpacks its own modules into the folder for temporary files, under fixed names: two
        // runs at once would take them from under each other.
        let mut temporary = std::ffi::OsString::from("-Djava.io.tmpdir=");
        temporary.push(own);
        let output = Command::new("java")
            .args(JAVA_OPTIONS)
            .arg(temporary)
            .arg("-cp")
            .arg(&self.jar)
            .args(["tlc2.TLC", "-workers", "1", "-nowarning", "-deadlock"])
            .arg("-metadir")
            .arg(own.join("states"))
            .arg("-config")
            .arg(format!("{config}.cfg"))
            .arg(format!("{module}.tla"))
            .current_dir(folder)
            .output()
            .map_err(Failure::System)?;
        let text = String::from_utf8_lossy(&output.stdout);
        understand(output.status.code(), &text)
    }
}

/// What an exit code and the words before it mean.
pub fn understand(code: Option<i32>, output: &str) -> Result<Run, Failure> {
    let unclear = || Failure::Tlc(code, output.to_owned());
    let states = states(output).ok_or_else(unclear)?;
    let outcome = match (code, broken_invariant(output)) {
        (Some(EXIT_HOLDS), None) => Outcome::Holds,
        (Some(EXIT_BROKEN), Some(name)) => Outcome::Broken(name.to_owned()),
        _ => return Err(unclear()),
    };
    Ok(Run { outcome, states })
}

/// From `4901 states generated, 2121 distinct states found, 0 states left on queue.`: 2121. Only
/// the last such line counts, progress has others.
fn states(output: &str) -> Option<u64> {
    let line = output
        .lines()
        .rev()
        .find(|line| line.contains(" distinct states found"))?;
    let before = line.split(" distinct states found").next()?;
    let number = before.rsplit(' ').next()?;
    number.replace(',', "").parse().ok()
}

/// From `Error: Invariant AppliedOnce is violated.`: `AppliedOnce`.
fn broken_invariant(output: &str) -> Option<&str> {
    output.lines().find_map(|line| {
        let rest = line.strip_prefix("Error: Invariant ")?;
        let name = rest.strip_suffix(" is violated.");
        name.or_else(|| rest.strip_suffix(" is violated by the initial state:"))
    })
}

#[cfg(test)]
#[path = "tlc_tests.rs"]
mod tests;
