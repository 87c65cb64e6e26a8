//! Power cuts, a lying, a failing and a hanging device under the real star.
//!
//! One program, so that it is linked once; `cargo test -p nova-powercut WORD` runs the tests with a
//! word in their path.

mod cuts;
mod failing;
mod hanging;
mod lying;
mod numbers;
mod passing;
mod scene;
mod spoiled;

use nova_e2e::home::Site;

/// Where the binary is and where data directories lie: beside the build, on its file system.
const SITE: Site = Site {
    binary: env!("CARGO_BIN_EXE_nova-under-cuts"),
    scratch: env!("CARGO_TARGET_TMPDIR"),
};

/// The device's program.
const POWER_DISK: &str = env!("CARGO_BIN_EXE_power-disk");
