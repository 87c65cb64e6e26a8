//! A plot of lines as SVG, made by hand so that a page needs nothing from elsewhere.
//!
//! ```text
//!   title            -- legend --
//!   y ^ .............. grid
//!     |      ___/
//!     |_____/
//!     +----------------> x
//! ```
//! Colours come from the page's style by the classes `l0`, `l1`, ..., so that they suit a light and
//! a dark page.
//!
//! # Invariants
//! - Points that are no numbers, or not positive on a logarithmic axis, are left out.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 42.0;
/// Nines that an axis of percentiles shows at most: 99.99999.
const NINES_MAX: f64 = 7.0;

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// In proportion, from zero.
    Linear,
    /// By powers of ten.
    Log,
    /// Shares of all by their nines: 0, 90 %, 99 %, ...
    Nines,
}

/// An axis.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// What it shows.
    pub label: &'static str,
    /// How.
    pub scale: Scale,
    /// A value as a label.
    pub text: fn(f64) -> String,
}

/// A line of a plot.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points, by x.
    pub points: Vec<(f64, f64)>,
    /// Whether it is drawn with dashes.
    pub is_dashed: bool,
}

/// A plot.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What it shows.
    pub title: &'static str,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn.
    pub lines: Vec<Line>,
}

/// An axis with its ends.
struct Span {
    axis: Axis,
    from: f64,
    to: f64,
}

impl Scale {
    fn place(self, value: f64) -> Option<f64> {
        let place = match self {
            Scale::Linear => value,
            Scale::Log => value.log10(),
            Scale::Nines => -(1.0 - value).log10(),
        };
        let is_shown = self != Scale::Nines || place <= NINES_MAX;
        (place.is_finite() && is_shown).then_some(place)
    }
}

impl Span {
    fn new(axis: Axis, values: impl Iterator<Item = f64>) -> Span {
        let mut from = f64::INFINITY;
        let mut to = f64::NEG_INFINITY;
        for place in values.filter_map(|value| axis.scale.place(value)) {
            from = from.min(place);
            to = to.max(place);
        }
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        match axis.scale {
            Scale::Linear => (from, to) = (from.min(0.0), if to > 0.0 { 1.05 * to } else { 1.0 }),
            Scale::Log => (from, to) = log_ends(from, to),
            Scale::Nines => (from, to) = (0.0, to.ceil().max(1.0)),
        }
        Span { axis, from, to }
    }

    /// Where a value is, 0 to 1.
    fn share(&self, value: f64) -> Option<f64> {
        let place = self.axis.scale.place(value)?;
        Some((place - self.from) / (self.to - self.from))
    }

    fn ticks(&self) -> Vec<f64> {
        match self.axis.scale {
            Scale::Linear => {
                let step = nice_step(self.to / 5.0);
                let count = (self.to / step).floor() as usize;
                (0..=count).map(|number| number as f64 * step).collect()
            }
            Scale::Log => {
                let decades = self.to - self.from;
                let parts: &[f64] = match decades {
                    decades if decades <= 2.0 => &[1.0, 2.0, 5.0],
                    decades if decades <= 4.0 => &[1.0, 3.0],
                    _ => &[1.0],
                };
                let within = |tick: &f64| {
                    let place = tick.log10();
                    place >= self.from - 1e-9 && place <= self.to + 1e-9
                };
                let powers = self.from.floor() as i32..=self.to.ceil() as i32;
                powers
                    .flat_map(|power| parts.iter().map(move |part| part * 10f64.powi(power)))
                    .filter(within)
                    .collect()
            }
            Scale::Nines => (0..=self.to as i32)
                .map(|nines| 1.0 - 10f64.powi(-nines))
                .collect(),
        }
    }
}

/// The ends of a logarithmic axis: at 1, 2 or 5 times a power of ten around all values.
fn log_ends(from: f64, to: f64) -> (f64, f64) {
    let parts = [1.0, 2.0, 5.0, 10.0].map(f64::log10);
    let below = |value: f64| {
        let power = value.floor();
        let part = parts
            .iter()
            .rev()
            .find(|part| power + **part <= value + 1e-9);
        power + part.copied().unwrap_or_default()
    };
    let above = |value: f64| {
        let power = value.floor();
        let part = parts.iter().find(|part| power + **part >= value - 1e-9);
        power + part.copied().unwrap_or(1.0)
    };
    let (from, to) = (below(from), above(to));
    if to - from < 0.5 {
        (from, from + 1.0)
    } else {
        (from, to)
    }
}

/// 1, 2 or 5 times a power of ten, at least as large.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-12).log10().floor());
    let part = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|part| part * power >= least * (1.0 - 1e-9));
    part.unwrap_or(10.0) * power
}

/// Draws a plot.
pub fn draw(plot: &Plot) -> String {
    let points = || plot.lines.iter().flat_map(|line| &line.points);
    let x = Span::new(plot.x, points().map(|point| point.0));
    let y = Span::new(plot.y, points().map(|point| point.1));
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"18\">{}</text>\n",
        escape(plot.title),
        escape(plot.title)
    );
    grid(&mut svg, &x, &y);
    for (number, line) in plot.lines.iter().enumerate() {
        draw_line(&mut svg, number, line, &x, &y);
    }
    legend(&mut svg, &plot.lines);
    svg + "</svg>\n"
}

fn at_x(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn at_y(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
}

fn grid(svg: &mut String, x: &Span, y: &Span) {
    let (left, right, bottom, top) = (at_x(0.0), at_x(1.0), at_y(0.0), at_y(1.0));
    for tick in y.ticks() {
        let Some(place) = y.share(tick).map(at_y) else {
            continue;
        };
        let label = escape(&(y.axis.text)(tick));
        let (text_x, text_y) = (left - 8.0, place + 4.0);
        put(
            svg,
            &format!(
                "<path class=\"grid\" d=\"M{left:.1} {place:.1}H{right:.1}\"/>\
                 <text class=\"tick end\" x=\"{text_x:.1}\" y=\"{text_y:.1}\">{label}</text>"
            ),
        );
    }
    for tick in x.ticks() {
        let Some(place) = x.share(tick).map(at_x) else {
            continue;
        };
        let label = escape(&(x.axis.text)(tick));
        let text_y = bottom + 16.0;
        put(
            svg,
            &format!(
                "<path class=\"grid\" d=\"M{place:.1} {bottom:.1}V{top:.1}\"/>\
                 <text class=\"tick mid\" x=\"{place:.1}\" y=\"{text_y:.1}\">{label}</text>"
            ),
        );
    }
    let (middle, low) = (f64::midpoint(left, right), HEIGHT - 8.0);
    put(
        svg,
        &format!(
            "<path class=\"axis\" d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\"/>\
             <text class=\"tick mid\" x=\"{middle:.1}\" y=\"{low:.1}\">{}</text>",
            escape(x.axis.label)
        ),
    );
}

fn draw_line(svg: &mut String, number: usize, line: &Line, x: &Span, y: &Span) {
    let mut path = String::new();
    let mut places = line
        .points
        .iter()
        .filter_map(|point| Some((at_x(x.share(point.0)?), at_y(y.share(point.1)?))));
    if let Some((x, y)) = places.next() {
        write!(path, "M{x:.1} {y:.1}").expect("a string takes it");
    }
    let mut rest = places.peekable();
    if rest.peek().is_none() && !path.is_empty() {
        // A single point is a dot.
        path.push_str("h0.1");
    }
    for (x, y) in rest {
        write!(path, "L{x:.1} {y:.1}").expect("a string takes it");
    }
    let dashed = if line.is_dashed { " dashed" } else { "" };
    put(
        svg,
        &format!("<path class=\"line l{number}{dashed}\" d=\"{path}\"/>"),
    );
}

fn legend(svg: &mut String, lines: &[Line]) {
    let mut right = WIDTH - RIGHT;
    for (number, line) in lines.iter().enumerate().rev() {
        // A letter of the legend's font is about 6.2 wide.
        let width = 6.2 * line.name.chars().count() as f64;
        let text = right - width;
        let (from, to) = (text - 24.0, text - 6.0);
        let dashed = if line.is_dashed { " dashed" } else { "" };
        put(
            svg,
            &format!(
                "<path class=\"line l{number}{dashed}\" d=\"M{from:.1} 14H{to:.1}\"/>\
                 <text class=\"tick\" x=\"{text:.1}\" y=\"18\">{}</text>",
                escape(&line.name)
            ),
        );
        right = from - 14.0;
    }
}

fn put(svg: &mut String, element: &str) {
    svg.push_str(element);
    svg.push('\n');
}

/// A text inside of a page.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
#[path = "plot_tests.rs"]
mod tests;
