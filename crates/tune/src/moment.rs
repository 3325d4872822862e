//! Moments of a transaction, which tests and progress displays are told of.

/// A moment of a transaction, at each of which it may be killed without harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The journal has its plan.
    Begun,
    /// The value before a change is on disk.
    Noted,
    /// A value was written to the knob.
    Written,
    /// What came of it is on disk.
    Recorded,
    /// The journal is complete, or put away.
    Ended,
}

/// Is told of every moment.
pub type Observer<'a> = dyn FnMut(Moment) + 'a;
