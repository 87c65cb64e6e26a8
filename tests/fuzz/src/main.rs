//! Writes the samples of each target to where `cargo fuzz` looks for inputs to begin with.

use nova_fuzz::samples;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (target, samples) in [
        ("star", samples::of_clients()),
        ("client", samples::of_stars()),
        ("segment", samples::segments()),
        ("index", samples::indexes()),
    ] {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        for (number, sample) in samples.iter().enumerate() {
            std::fs::write(folder.join(format!("sample-{number}")), sample)?;
        }
        println!("{}: {} samples", folder.display(), samples.len());
    }
    Ok(())
}
