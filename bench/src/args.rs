//! The command line of `nova bench`.
//!
//! # Not here
//! - What the words of a load come to: [`crate::workload`].

use crate::compare::options::CompareOptions;
use crate::goals::options::Options;
use crate::workload::Shape;
use clap::Subcommand;
use clap::builder::RangedU64ValueParser;
use nova_quic::params::SPIN_DEFAULT;
use std::ops::RangeInclusive;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  nova bench latency                        One record for each ack, against disk and network
  nova bench latency --in-flight 1          The same as a closed loop
  nova bench throughput --out report        Writes report/report.html and histograms
  nova bench fan-out --producers 4 --streams 100,2000 --rate 20000 --duration 30
  nova bench soak --star star.example:7400 --ca ca.pem --duration 3600
  nova bench goals                          All ratios that must hold; about ten minutes
  nova bench compare redis postgres         The same work for other systems";

/// Measure a star against what the disk and the network of this machine can do without it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    #[command(subcommand)]
    pub(crate) what: What,
}

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// One record for each durable ack: 1 producer, 1 stream, 1,000 records a second
    Latency(LoadOptions),
    /// As much as one session takes
    Throughput(LoadOptions),
    /// 50 producers append to one stream
    FanIn(LoadOptions),
    /// 1, 4 and 50 producers append to 1, 100 and 2,000 streams
    FanOut(LoadOptions),
    /// Readers go from the start of their streams to the tail
    CatchUp(LoadOptions),
    /// A steady load for an hour, followed by readers
    Soak(LoadOptions),
    /// The ratios that must hold: star and bare machine in turns, judged against their bounds
    Goals(Options),
    /// The same work, with durable acks, for other systems that are installed
    Compare(CompareOptions),
}

/// How a load differs from its shape, which star it is for and what is written.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub(crate) struct LoadOptions {
    /// Producers that append; a list makes a load of each
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = counts(1..=10_000))]
    pub producers: Vec<usize>,
    /// Clients that they share, each with connections of its own [default: one for each]
    #[arg(long, value_name = "N", value_parser = counts(1..=10_000))]
    pub clients: Option<usize>,
    /// Streams that they append to; a list makes a load of each
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = counts(1..=100_000))]
    pub streams: Vec<usize>,
    /// Bytes of a record's body
    #[arg(long, value_name = "BYTES", default_value = "1024")]
    pub record_bytes: usize,
    /// Open loop: records a second of all producers together, sent whatever the star does
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rate: Option<u64>,
    /// Closed loop: records of each session that are unanswered
    #[arg(long, value_name = "N", conflicts_with = "rate", value_parser = counts(1..=1_000_000))]
    pub in_flight: Option<usize>,
    /// Seconds that are measured
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Records that are measured, instead of a time
    #[arg(long, value_name = "N", conflicts_with = "duration",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub count: Option<u64>,
    /// Seconds before that are not
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub warm_up: Option<f64>,
    /// Readers that follow the streams; of catch-up: that read them from the start
    #[arg(long, value_name = "N", value_parser = counts(0..=10_000))]
    pub readers: Option<usize>,
    /// Do not read back what was acked
    #[arg(long)]
    pub no_verify: bool,
    /// Do not measure what the bare disk and the bare network do
    #[arg(long)]
    pub no_baselines: bool,
    /// Write report.html, results.json and HDR histograms to this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the results, or the error, as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub star: WhichStar,
}

/// The star that a load is for.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Which star")]
pub(crate) struct WhichStar {
    /// Address of a running star [default: one that is started for the benchmark]
    #[arg(long, value_name = "HOST:PORT", requires = "ca")]
    pub star: Option<String>,
    /// Copy of its tls/ca.pem
    #[arg(long, value_name = "FILE", requires = "star")]
    pub ca: Option<PathBuf>,
    /// Name that its certificate must hold for [default: the host dialled]
    #[arg(long, value_name = "NAME", requires = "star")]
    pub server_name: Option<String>,
    /// Where the data of its own star goes, and the bare writes; emptied again afterwards
    #[arg(long, value_name = "DIR", default_value = "target/nova-bench")]
    pub data: PathBuf,
    /// Cores of its own star [default: half of the CPUs]
    #[arg(long, value_name = "N", value_parser = counts(1..=1_024))]
    pub cores: Option<usize>,
    /// How long a core of its own star, and of the bare echo, looks for more before it sleeps
    #[arg(long, value_name = "US", default_value_t = SPIN_DEFAULT.as_micros() as u64)]
    pub spin_us: u64,
    /// Program that is its own star, for example of another commit [default: this one]
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

/// Numbers within some bounds.
fn counts(bounds: RangeInclusive<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(bounds)
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e7).contains(&seconds) => Ok(seconds),
        _ => Err("not a number of seconds".to_owned()),
    }
}

impl BenchArgs {
    /// Whether results and errors are wanted as JSON.
    pub fn is_json(&self) -> bool {
        match &self.what {
            What::Goals(options) => options.json,
            What::Compare(options) => options.json,
            What::Latency(options)
            | What::Throughput(options)
            | What::FanIn(options)
            | What::FanOut(options)
            | What::CatchUp(options)
            | What::Soak(options) => options.json,
        }
    }
}

impl What {
    /// The load that is asked for, if it is one.
    pub(crate) fn load(&self) -> Option<(Shape, &LoadOptions)> {
        match self {
            What::Latency(options) => Some((Shape::Latency, options)),
            What::Throughput(options) => Some((Shape::Throughput, options)),
            What::FanIn(options) => Some((Shape::FanIn, options)),
            What::FanOut(options) => Some((Shape::FanOut, options)),
            What::CatchUp(options) => Some((Shape::CatchUp, options)),
            What::Soak(options) => Some((Shape::Soak, options)),
            What::Goals(_) | What::Compare(_) => None,
        }
    }
}
