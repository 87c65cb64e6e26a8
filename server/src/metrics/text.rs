//! The text form of Prometheus (exposition format 0.0.4).

use super::histogram::Snapshot;
use std::fmt::Write;

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It only grows.
    Counter,
    /// It is as it is.
    Gauge,
    /// Counts up to bounds.
    Histogram,
}

/// A text that grows figure by figure.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

impl Text {
    /// Begins a figure.
    pub(crate) fn head(&mut self, name: &str, help: &str, kind: Kind) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.write(format_args!(
            "# HELP {name} {help}.\n# TYPE {name} {kind}\n"
        ));
    }

    /// One value of a figure.
    pub(crate) fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels = labels_of(labels, None);
        self.write(format_args!("{name}{labels} {value}\n"));
    }

    /// One histogram of a figure, of whose values `per` make one of the unit in its name.
    pub(crate) fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        snapshot: &Snapshot,
        per: f64,
    ) {
        for (bound, count) in &snapshot.buckets {
            let bound = (*bound as f64 / per).to_string();
            let labels = labels_of(labels, Some(&bound));
            self.write(format_args!("{name}_bucket{labels} {count}\n"));
        }
        let (count, sum) = (snapshot.count, snapshot.sum as f64 / per);
        let above = labels_of(labels, Some("+Inf"));
        let labels = labels_of(labels, None);
        self.write(format_args!(
            "{name}_bucket{above} {count}\n{name}_sum{labels} {sum}\n{name}_count{labels} {count}\n"
        ));
    }

    /// All of it.
    pub(crate) fn finish(self) -> String {
        self.0
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        self.0
            .write_fmt(text)
            .expect("writing to memory does not fail");
    }
}

fn labels_of(labels: &[(&str, &str)], bound: Option<&str>) -> String {
    let all = labels
        .iter()
        .copied()
        .chain(bound.map(|bound| ("le", bound)));
    let all: Vec<_> = all
        .map(|(name, value)| format!("{name}=\"{value}\""))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    format!("{{{}}}", all.join(","))
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
