//! Moments of a transaction, for tests and progress displays.

/// A moment of a transaction; it may be killed at each without harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The journal has its plan.
    Begun,
    /// The value before a change is on disk.
    Noted,
    /// A value was written to the knob.
    Written,
    /// The result is on disk.
    Recorded,
    /// The journal is complete or put away.
    Ended,
}

/// A callback for every moment.
pub type Observer<'a> = dyn FnMut(Moment) + 'a;
