//! The command line of nova.
