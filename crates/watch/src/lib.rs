//! `becalm watch`: a machine watched continuously and quietly, for a monitoring system.
//!
//! Short windows, in which `becalm record` measures one idle CPU, come as often as a budget of CPU time allows (`schedule`); the kernel's
//! own counters are read in between (`kernel`), and its tracepoints watched as far as the budget allows (`observe`). What all of them found
//! is summed up from the start on (`totals`), told over HTTP (`server`) and sent to a collector (`otlp`), and stored as bundles in a folder
//! with a bound (`ring`).

#![forbid(unsafe_code)]

mod choice;
mod command;
mod config;
mod exposition;
mod feed;
mod histogram;
mod host;
mod kernel;
mod lead_up;
mod observe;
mod otlp;
mod powerless_thread;
mod protobuf;
mod request;
mod ring;
mod schedule;
mod server;
mod sources;
mod throttle;
mod totals;
mod trace;
mod traced;
mod trigger;
mod watch;

pub use command::WatchArgs;
pub use config::{ConfigError, WatchConfig, WatchSettings};
pub use host::{HostName, Hosts, ParseHostNameError};
pub use otlp::{Collector, ParseCollectorError};
pub use request::{Format, Reading, Refusal, Request, read as read_request};
pub use ring::RingError;
pub use trigger::{ParseTriggerError, Trigger};
pub use watch::{Ran, Surroundings, WatchError, watch};
