//! becalm's quantities with their parsers and formats: durations ([`Nanos`]), counter values ([`Ticks`], [`TickRate`]), CPUs ([`CpuId`],
//! [`CpuList`]), counts ([`Count`], [`ByteCount`]) and shares ([`Share`]); and lines of settings files ([`SettingLine`]). Also the encoding
//! of messages for several crates ([`protobuf`]), and maps with number keys ([`NumberMap`]).
//!
//! Nothing here does input or output. Every parser's error contains the value and the allowed form.

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
