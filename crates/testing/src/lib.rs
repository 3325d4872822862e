//! What the tests of several crates share. No product code uses it.

#![forbid(unsafe_code)]

pub mod noise;
