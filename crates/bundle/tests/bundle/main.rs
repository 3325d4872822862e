//! The bundle as its users see it: what is written reads back, and what is damaged is refused by name.

mod causes;
mod crafted;
mod disk;
mod hostile;
mod recording;
mod round_trip;
mod samples;
mod survival;
