//! The kernel's statistics of one CPU's trace buffer, `per_cpu/cpuN/stats`.

/// The counts since the buffer was made or last cleared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuStats {
    /// Events waiting to be read.
    pub entries: u64,
    /// Events that newer ones overwrote before they were read.
    pub overrun: u64,
    /// Events dropped because nested writers had filled the whole buffer.
    pub commit_overrun: u64,
    /// Bytes waiting to be read.
    pub bytes: u64,
    /// Events dropped because the buffer was full and must not overwrite.
    pub dropped_events: u64,
    /// Events that were read, and have left the buffer.
    pub read_events: u64,
}

impl CpuStats {
    /// Parses the text of a `stats` file. A count that this kernel lacks is 0; unknown lines are skipped.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut stats = Self::default();
        let mut known = false;
        for (line, (key, value)) in
            text.lines().enumerate().filter_map(|(n, line)| Some((n + 1, line.split_once(':')?)))
        {
            let place = match key {
                "entries" => &mut stats.entries,
                "overrun" => &mut stats.overrun,
                "commit overrun" => &mut stats.commit_overrun,
                "bytes" => &mut stats.bytes,
                "dropped events" => &mut stats.dropped_events,
                "read events" => &mut stats.read_events,
                _ => continue,
            };
            let value = value.trim();
            *place = value.parse().map_err(|_| format!("line {line}: '{value}' is not a count of {key}"))?;
            known = true;
        }
        if known { Ok(stats) } else { Err("it holds no known count".to_owned()) }
    }

    /// All lost events, for whatever reason.
    pub fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped_events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_text() {
        let text = "entries: 5\noverrun: 4\ncommit overrun: 3\nbytes: 260\noldest event ts:  1696.000001\n\
                    now ts:  1696.096166\ndropped events: 2\nread events: 1\n";
        let stats = CpuStats::parse(text).unwrap();
        assert_eq!((stats.entries, stats.bytes, stats.read_events, stats.lost()), (5, 260, 1, 9));
    }

    #[test]
    fn refuses_what_is_none() {
        assert_eq!(CpuStats::parse("hello\n"), Err("it holds no known count".to_owned()));
        assert_eq!(
            CpuStats::parse("entries: 1\noverrun: x\n"),
            Err("line 2: 'x' is not a count of overrun".to_owned())
        );
    }
}
