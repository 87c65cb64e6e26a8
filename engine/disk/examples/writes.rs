//! Probes a directory and measures bare durable writes in it, through the driver and without.
//!
//! Run with `cargo run --release -p nova-disk --example writes -- DIRECTORY [fdatasync]`.

use nova_disk::SyncMode;
use nova_disk::baseline::{Figures, Plan, measure};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let sync = match arguments.next().as_deref() {
        None | Some("dsync") => SyncMode::Dsync,
        Some("fdatasync") => SyncMode::Fdatasync,
        Some(other) => return Err(format!("{other} is neither dsync nor fdatasync").into()),
    };
    let report = nova_disk::probe(&directory)?;
    println!("{report:#?}");
    let plan = Plan {
        sync,
        ..Plan::default()
    };
    println!("{plan:?}");
    let baseline = measure(&directory, &plan)?;
    print("4 KiB, driver", &baseline.driver_small);
    print("4 KiB, blocking", &baseline.blocking_small);
    print("1 MiB, driver", &baseline.driver_large);
    print("1 MiB, blocking", &baseline.blocking_large);
    Ok(())
}

fn print(name: &str, figures: &Figures) {
    println!(
        "{name:<16} p50 {:>5} us  p99 {:>5} us  {:>7.0} per second  {:>7.1} MB/s",
        figures.quantile(0.5).as_micros(),
        figures.quantile(0.99).as_micros(),
        figures.per_second(),
        figures.megabytes_per_second(),
    );
}
