//! Packets from this machine to itself, which make the network stack use the time of a detour.
//!
//! The CPU that sends a packet over loopback also receives it, in the softirq `net_rx`, as if a network card's interrupt had announced it.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use becalm_linux::clock::Counter;

const PAYLOAD: [u8; 64] = [0; 64];
/// How long to wait for the packet that shows whether any arrives.
const ARRIVES_WITHIN: Duration = Duration::from_secs(1);

/// Sends packets to a port that only this process has.
#[derive(Debug)]
pub(crate) struct Flood {
    sender: UdpSocket,
    /// Never read: packets that find its buffer full are dropped after the kernel has done all the work of receiving them.
    _receiver: UdpSocket,
    /// The number of packets sent.
    pub sent: u64,
    /// The time that the last packet of this detour took, in ticks; zero before the first.
    took: u64,
}

impl Flood {
    /// Opens the port, and checks that a packet arrives. Fails if there is no loopback, or packets sent there do not arrive.
    pub fn open() -> io::Result<Self> {
        let here = (Ipv4Addr::LOCALHOST, 0);
        let (receiver, sender) = (UdpSocket::bind(here)?, UdpSocket::bind(here)?);
        sender.connect(receiver.local_addr()?)?;
        // Accept no packets of others.
        receiver.connect(sender.local_addr()?)?;
        receiver.set_read_timeout(Some(ARRIVES_WITHIN))?;
        sender.send(&PAYLOAD)?;
        receiver.recv(&mut [0; PAYLOAD.len()])?;
        // If receiving is delayed for long, packets in flight fill the sender's buffer: then send nothing instead of sleeping.
        sender.set_nonblocking(true)?;
        Ok(Self { sender, _receiver: receiver, sent: 0, took: 0 })
    }

    /// Starts another detour, which has at least one packet.
    pub const fn begin(&mut self) {
        self.took = 0;
    }

    /// Sends a packet if, judged by the previous one, it will be done within this many ticks. `now` is a reading just taken.
    pub fn send_within<C: Counter>(&mut self, ticks: u64, now: u64) {
        if ticks > self.took {
            self.sent += u64::from(self.sender.send(&PAYLOAD).is_ok());
            self.took = C::read().wrapping_sub(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::clock::MonotonicRaw;

    #[test]
    fn a_detour_has_one_packet_and_as_many_more_as_fit() {
        let mut flood = Flood::open().unwrap();
        flood.begin();
        flood.send_within::<MonotonicRaw>(1, MonotonicRaw::read());
        assert_eq!(flood.sent, 1);
        // No packet is done that soon.
        flood.send_within::<MonotonicRaw>(1, MonotonicRaw::read());
        assert_eq!(flood.sent, 1);
        for _ in 0..10_000 {
            flood.send_within::<MonotonicRaw>(u64::MAX, MonotonicRaw::read());
        }
        assert_eq!(flood.sent, 10_001, "a full buffer refuses none");
        flood.begin();
        flood.send_within::<MonotonicRaw>(1, MonotonicRaw::read());
        assert_eq!(flood.sent, 10_002);
    }
}
