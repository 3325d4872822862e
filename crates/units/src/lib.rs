//! The quantities of becalm and how they are written and read: durations ([`Nanos`]), counter values ([`Ticks`],
//! [`TickRate`]), processors ([`CpuId`], [`CpuList`]), counts ([`Count`], [`ByteCount`]) and shares ([`Share`]); and
//! the lines of files that set them ([`SettingLine`]). Also the encoding of messages that several crates write
//! ([`protobuf`]), and maps by numbers ([`NumberMap`]).
//!
//! Nothing here does input or output. Every parser names the value and the allowed form in its error.

#![forbid(unsafe_code)]

mod choice;
mod count;
mod cpu;
pub mod fault;
mod hashing;
mod localized;
mod name;
mod nanos;
mod printable;
pub mod protobuf;
#[cfg(feature = "schemas")]
mod schemas;
mod setting;
mod share;
mod ticks;
mod words;

pub use choice::{bracketed, chosen};
pub use count::{ByteCount, Count, ParseCountError};
pub use cpu::{CpuId, CpuList, ParseCpuListError};
pub use hashing::{NumberHasher, NumberHashing, NumberMap};
pub use localized::plain_number;
pub use name::{Named, UnknownName};
pub use nanos::{Nanos, ParseNanosError};
pub use printable::{printable, printable_lines};
pub use setting::SettingLine;
pub use share::{ParseShareError, Share};
pub use ticks::{TickRate, Ticks, TicksToNanos};
pub use words::{counted, cpus, cpus_are, plural};
