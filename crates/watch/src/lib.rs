//! `becalm watch`: continuous, quiet monitoring of a machine, for a monitoring system.
//!
//! Short windows measure one idle CPU like `becalm record`, as often as a budget of CPU time allows (`schedule`). In between, the watch
//! reads the kernel's own counters (`kernel`) and, within the budget, its tracepoints (`observe`). All results are summed from the start (`totals`),
//! served over HTTP (`server`), sent to a collector (`otlp`), and stored as bundles in a directory of limited size (`ring`).

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
