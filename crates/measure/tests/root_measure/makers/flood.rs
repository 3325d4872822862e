//! A flood of UDP datagrams over loopback whose receiving softirq (`net_rx`) runs on a chosen CPU.
//!
//! Receive packet steering sends the receiving half to that CPU, whichever CPU the sender runs on.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use becalm_units::{CpuId, CpuList};

use super::Maker;

const STEERING: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus";

/// A flood of packets that is under way.
pub struct Flood {
    sender: Maker<u64>,
    _steering: Steering,
}

/// The setting of loopback's steering, put back when dropped.
struct Steering {
    original: String,
}

impl Steering {
    fn toward(cpu: CpuId) -> Self {
        let original = fs::read_to_string(STEERING).expect("loopback has a receive queue").trim().to_owned();
        let steering = Self { original };
        let mask = [cpu].into_iter().collect::<CpuList>().to_mask();
        fs::write(STEERING, mask).expect("root can steer received packets");
        steering
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        // A failure to restore must be seen, but not hide why the test failed.
        if let Err(error) = fs::write(STEERING, &self.original) {
            eprintln!("cannot restore {STEERING}: {error}");
        }
    }
}

/// Starts to send from one CPU, with a pause after each datagram, to be received on another.
pub fn start(from: CpuId, measured: CpuId, pause: Duration) -> Flood {
    assert!(Path::new(STEERING).exists(), "this kernel has no receive packet steering");
    let steering = Steering::toward(measured);
    let sender = Maker::start("flood", from, move |stop| {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket on loopback");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket on loopback");
        sender.connect(receiver.local_addr().expect("a bound socket has an address")).expect("loopback is up");
        let mut sent = 0;
        // Nobody reads: datagrams that do not fit the receiver's buffer are dropped after the softirq has run.
        while !stop.load(Ordering::Relaxed) {
            sent += u64::from(sender.send(&[0; 64]).is_ok());
            std::thread::sleep(pause);
        }
        sent
    });
    Flood { sender, _steering: steering }
}

impl Flood {
    /// Ends it, restores the steering, and returns the number of datagrams sent.
    pub fn stop(self) -> u64 {
        self.sender.stop()
    }
}
