//! `power-disk FILE MIB SECTOR_BYTES SEED`: a device over an empty file, until stdin is closed.
//!
//! It says `serving` when the file is the device, and takes orders from stdin, a line each.

use nova_powercut::device::Device;
use nova_powercut::order::{self, Order};
use nova_powercut::served::Served;
use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let served = match &words[..] {
        [file, numbers @ ..] => device(numbers).and_then(|device| serve(Path::new(file), device)),
        [] => Err("no file".to_owned()),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("power-disk FILE MIB SECTOR_BYTES SEED: {error}");
            ExitCode::FAILURE
        }
    }
}

fn device(words: &[String]) -> Result<Device, String> {
    let numbers: Result<Vec<u64>, _> = words.iter().map(|word| word.parse()).collect();
    match numbers.as_deref() {
        Ok(&[mib, sector @ (512 | 4096), seed]) => {
            Ok(Device::new((mib as usize) << 20, sector as usize, seed))
        }
        _ => Err(format!("no device: {words:?}")),
    }
}

fn serve(file: &Path, device: Device) -> Result<(), String> {
    let served = Served::new(device);
    let mounted = served.mount(file);
    let _mounted = mounted.map_err(|error| format!("no FUSE mount: {error}"))?;
    println!("serving");
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("stdin: {error}"))?;
        let (number, order) = understand(&line).ok_or_else(|| format!("no order: {line}"))?;
        served.take(number, order);
    }
    // Whatever waits in the device is refused by the kernel when this process is gone.
    std::process::exit(0)
}

fn understand(line: &str) -> Option<(u64, Order)> {
    let (number, order) = line.split_once(' ')?;
    let order: Result<Order, order::NoOrder> = order.parse();
    Some((number.parse().ok()?, order.ok()?))
}
