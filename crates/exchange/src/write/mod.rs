//! What becalm recorded, as other programs read it.

pub mod loggopsim;
