//! What the device itself can do, to hold the whole system's figures against.
