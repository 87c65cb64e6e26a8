//! Shares of a core's window budget: what one connection may have under way.
//!
//! ```text
//! share(open) = budget / (2 * open), within [least, most]        2: receiving and sending
//! ```
//! The share follows the number of open connections in steps of a factor of two, because a step
//! touches every connection. It goes up when the number exceeds it, and down only when the number
//! has fallen to a quarter: connections that come and go around a power of two move nothing.
//!
//! # Invariants
//! - With at most [`connections_max`] connections the shares sum up to at most the budget.
//!
//! # Not here
//! - Setting the windows: `server` does, with what this decides. QUIC cannot take back credit
//!   once given; a smaller window takes effect as the peer uses it up.

use crate::params::ServerParams;

/// Connections this core may hold: the configured limit, and what the budget feeds at the least
/// share each.
pub(crate) fn connections_max(params: &ServerParams) -> u64 {
    let fed = params.windows_budget_bytes / (2 * u64::from(params.connection_window_bytes_min));
    u64::from(params.connections_max).min(fed)
}

/// The step for `open` connections that were on step `current`: never less than `open`.
pub(crate) fn next_step(current: u64, open: u64) -> u64 {
    if open > current {
        open.next_power_of_two()
    } else if open <= current / 4 {
        (2 * open.max(1)).next_power_of_two()
    } else {
        current
    }
}

/// The step of an endpoint without connections.
pub(crate) const STEP_FIRST: u64 = 1;

/// Window for each direction of each connection on a step.
pub(crate) fn share(params: &ServerParams, step: u64) -> u32 {
    let (least, most) = (
        params.connection_window_bytes_min,
        params.connection_window_bytes_max,
    );
    let even = params.windows_budget_bytes / (2 * step.max(1));
    u32::try_from(even).unwrap_or(u32::MAX).clamp(least, most)
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
