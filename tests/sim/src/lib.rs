//! nova-sim.
