//! The loop bodies. They affect the result: an interrupt costs a counting loop only CPU time, but a loop that uses the caches also loses the evicted
//! data (Tsafrir 2007, section 4).

use std::fmt;
use std::hint::black_box;
use std::path::Path;
use std::str::FromStr;

use becalm_linux::clock::Counter;
use becalm_linux::instructions::{Instructions, PointerChain, RandomBranches, volatile_count};
use becalm_linux::sysfs::cache;
use becalm_units::CpuId;

use super::sort::Sort;
use super::stream::StreamArrays;

macro_rules! bodies {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal: $iteration:literal,)+) => {
        /// The kind of work that a loop does.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Body {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Body {
            /// Every kind of work, in the order of the documents.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name on the command line and in documents.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The description of one iteration.
            pub const fn iteration(self) -> &'static str {
                match self {
                    $(Self::$variant => $iteration,)+
                }
            }
        }
    };
}

bodies! {
    /// Only a volatile counter in memory.
    Empty = "empty": "load, add one and store a volatile counter",
    /// A sum whose result is used.
    Sum = "sum": "add the loop's counter to a sum",
    /// Each number is the sum of the previous three.
    Fibonacci = "fibonacci": "add three numbers to the next one of a sequence",
    /// Back-to-back readings of becalm's own counter.
    Counter = "counter": "read the counter",
    /// Calls of a function that does nothing.
    Call = "call": "call a function and add what it returns",
    /// The linear congruential generator x <- (a x + b) mod p of De et al. 2009.
    Lcg = "lcg": "a step of x <- (48271 x + 11) mod (2^31 - 1)",
    /// Integer additions, each to the previous sum.
    Add = "add": "512 dependent additions",
    /// Integer multiplications, each of the previous product.
    Mul = "mul": "512 dependent multiplications",
    /// Integer divisions, each of the previous quotient.
    Div = "div": "512 dependent divisions",
    /// Floating-point additions, each to the previous sum.
    FloatAdd = "fadd": "512 dependent floating-point additions",
    /// Floating-point multiplications, each of the previous product.
    FloatMul = "fmul": "512 dependent floating-point multiplications",
    /// Floating-point divisions, each of the previous quotient.
    FloatDiv = "fdiv": "512 dependent floating-point divisions",
    /// Multiplications of vectors of two floating-point numbers, each of the previous products.
    Simd = "simd": "512 dependent multiplications of vectors of two floating-point numbers",
    /// Loads from half of the L1 cache, each from the address that the previous one loaded.
    LoadL1 = "load-l1": "512 dependent loads from half of the L1 cache, in a random order",
    /// Loads from half of the L2 cache.
    LoadL2 = "load-l2": "512 dependent loads from half of the L2 cache, in a random order",
    /// Branches on random bits.
    Branch = "branch": "512 branches, each by a random bit",
    /// Introsort of an array that fills half of the L2 cache.
    Sort = "sort": "fill an array of half the L2 cache with random numbers, and sort it",
    /// Vector triads over arrays larger than any cache.
    Stream = "stream": "a[i] = b[i] + 3 c[i] for 512 i of arrays larger than the caches",
}

/// The average number of instructions in a pass of `branch`: 512 additions and branches, half as many counted, eight steps of the generator, the
/// loop's counter and branch.
const BRANCH_INSTRUCTIONS: u64 = 512 * 2 + 256 + 8 * if cfg!(target_arch = "x86_64") { 10 } else { 4 } + 2;

impl Body {
    /// Whether it consists of instructions that becalm writes itself, for some architectures only.
    const fn is_of_instructions(self) -> bool {
        self.instructions().is_some()
    }

    /// The number of instructions per iteration, including the loop's counter and branch; for `branch` the average. `None` if the compiler chooses
    /// them.
    pub const fn instructions(self) -> Option<u64> {
        match self {
            Self::Add | Self::Mul | Self::Div | Self::FloatAdd | Self::FloatMul | Self::FloatDiv => Some(512 + 2),
            Self::Simd | Self::LoadL1 | Self::LoadL2 => Some(512 + 2),
            Self::Branch => Some(BRANCH_INSTRUCTIONS),
            _ => None,
        }
    }

    /// Fails if it consists of instructions that becalm does not know on this architecture.
    pub const fn check(self) -> Result<(), Unsupported> {
        match self {
            _ if self.is_of_instructions() && !Instructions::SUPPORTED => Err(Unsupported { body: self }),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no loop body; choose one of {known}")]
pub struct ParseBodyError {
    text: String,
    known: String,
}

impl FromStr for Body {
    type Err = ParseBodyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().copied().find(|body| body.name() == text);
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|body| body.name()).collect();
            ParseBodyError { text: text.to_owned(), known: known.join(", ") }
        })
    }
}

/// A body that this machine cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the body '{body}' consists of instructions that becalm knows for x86-64 and AArch64 only, and this is {arch}", arch = std::env::consts::ARCH)]
pub struct Unsupported {
    body: Body,
}

/// The L1 cache size if the kernel reports none.
const ASSUMED_L1_BYTES: u64 = 32 << 10;

/// The L2 cache size if the kernel reports none: typical of server processors when this was written.
const ASSUMED_L2_BYTES: u64 = 1 << 20;

/// The last-level cache size if the kernel reports none.
const ASSUMED_LAST_BYTES: u64 = 32 << 20;

/// The largest last-level cache size used. Some multi-die processors report the sum of all their caches, although one core only reaches a part.
const LAST_BYTES_LIMIT: u64 = 128 << 20;

/// A body ready to run, with its memory allocated and touched.
#[derive(Debug)]
pub struct Work {
    body: Body,
    memory: Memory,
    /// The cache that determines the body's memory, if any.
    cache: Option<CacheSize>,
}

/// The size of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheSize {
    /// The size in bytes.
    pub bytes: u64,
    /// Whether the kernel reported the size; otherwise it is assumed.
    pub is_known: bool,
}

#[derive(Debug)]
enum Memory {
    None,
    Sort(Sort),
    Stream(StreamArrays),
    Chain(PointerChain),
    Branches(RandomBranches),
}

impl Work {
    /// Prepares a body for a CPU, whose caches are looked up below `root`. Fails if it consists of instructions that becalm does not know on this
    /// architecture.
    pub fn new(body: Body, root: &Path, cpu: CpuId) -> Result<Self, Unsupported> {
        body.check()?;
        // Handle an unreadable file like a missing one.
        let caches = cache::caches(root, cpu).unwrap_or_default();
        let or_assumed =
            |known: Option<u64>, assumed| CacheSize { bytes: known.unwrap_or(assumed), is_known: known.is_some() };
        let (memory, cache) = match body {
            Body::Sort => {
                let l2 = or_assumed(cache::data_bytes(&caches, 2), ASSUMED_L2_BYTES);
                (Memory::Sort(Sort::new(l2.bytes / 2)), Some(l2))
            }
            Body::Stream => {
                let known = (1..=4).rev().find_map(|level| cache::data_bytes(&caches, level));
                let last = or_assumed(known.map(|bytes| bytes.min(LAST_BYTES_LIMIT)), ASSUMED_LAST_BYTES);
                (Memory::Stream(StreamArrays::new(last.bytes)), Some(last))
            }
            Body::LoadL1 => {
                let l1 = or_assumed(cache::data_bytes(&caches, 1), ASSUMED_L1_BYTES);
                (Memory::Chain(PointerChain::new(l1.bytes / 2)), Some(l1))
            }
            Body::LoadL2 => {
                let l2 = or_assumed(cache::data_bytes(&caches, 2), ASSUMED_L2_BYTES);
                (Memory::Chain(PointerChain::new(l2.bytes / 2)), Some(l2))
            }
            Body::Branch => (Memory::Branches(RandomBranches::new()), None),
            _ => (Memory::None, None),
        };
        Ok(Self { body, memory, cache })
    }

    /// The kind of work.
    pub const fn body(&self) -> Body {
        self.body
    }

    /// The size of the cache that determines the body's memory: L1 for `load-l1`, L2 for `load-l2` and `sort`, the last level for `stream`.
    pub const fn cache_size(&self) -> Option<CacheSize> {
        self.cache
    }

    /// The size of the body's memory in bytes.
    pub const fn memory_bytes(&self) -> u64 {
        match &self.memory {
            Memory::None | Memory::Branches(_) => 0,
            Memory::Sort(sort) => sort.bytes(),
            Memory::Stream(stream) => stream.bytes(),
            Memory::Chain(chain) => chain.bytes(),
        }
    }

    /// Does this many iterations, the same ones every time, and returns their result, which the caller must use. `stream` and the loads continue
    /// where the previous call ended, to cover all of their memory, and `branch` does, to defeat the branch predictor. Nothing in here allocates,
    /// locks or calls the kernel.
    #[inline(never)]
    pub fn run<C: Counter>(&mut self, iterations: u64) -> u64 {
        match (self.body, &mut self.memory) {
            (Body::Empty, _) => volatile_count(iterations),
            (Body::Sum, _) => sum(iterations),
            (Body::Fibonacci, _) => fibonacci(iterations),
            (Body::Counter, _) => read_counter::<C>(iterations),
            (Body::Call, _) => call(iterations),
            (Body::Lcg, _) => lcg(iterations),
            (Body::Add, _) => Instructions::Add.run(iterations, START).unwrap_or(0),
            (Body::Mul, _) => Instructions::Multiply.run(iterations, START).unwrap_or(0),
            (Body::Div, _) => Instructions::Divide.run(iterations, START).unwrap_or(0),
            (Body::FloatAdd, _) => Instructions::FloatAdd.run(iterations, START).unwrap_or(0),
            (Body::FloatMul, _) => Instructions::FloatMultiply.run(iterations, START).unwrap_or(0),
            (Body::FloatDiv, _) => Instructions::FloatDivide.run(iterations, START).unwrap_or(0),
            (Body::Simd, _) => Instructions::VectorMultiply.run(iterations, START).unwrap_or(0),
            (Body::LoadL1 | Body::LoadL2, Memory::Chain(chain)) => chain.run(iterations).unwrap_or(0),
            (Body::Branch, Memory::Branches(branches)) => branches.run(iterations).unwrap_or(0),
            (Body::Sort, Memory::Sort(sort)) => sort.run(iterations),
            (Body::Stream, Memory::Stream(stream)) => stream.run(iterations),
            (Body::Sort | Body::Stream | Body::LoadL1 | Body::LoadL2 | Body::Branch, _) => {
                unreachable!("their memory was made with them")
            }
        }
    }
}

/// The first operand of the chains of instructions.
const START: u64 = 0x0123_4567_89ab_cdef;

/// 0 + 1 + ... + (iterations - 1). `black_box` keeps the compiler from using the closed form.
#[inline(never)]
fn sum(iterations: u64) -> u64 {
    (0..iterations).fold(0, |sum: u64, i| sum.wrapping_add(black_box(i)))
}

/// The last of this many further members of 0, 0, 1, 1, 2, 4, 7, ..., modulo 2^64.
#[inline(never)]
fn fibonacci(iterations: u64) -> u64 {
    let (mut a, mut b, mut c) = (black_box(0_u64), black_box(0_u64), black_box(1_u64));
    for _ in 0..iterations {
        (a, b, c) = (b, c, a.wrapping_add(b).wrapping_add(c));
    }
    c
}

#[inline(never)]
fn read_counter<C: Counter>(iterations: u64) -> u64 {
    // Every reading is used; the sum of the differences is the last minus the first.
    let first = C::read();
    (0..iterations).fold(first, |_, _| black_box(C::read())).wrapping_sub(first)
}

#[inline(never)]
fn call(iterations: u64) -> u64 {
    (0..iterations).fold(0, |sum: u64, i| sum.wrapping_add(called(i)))
}

/// The function to call: returns its argument.
#[inline(never)]
fn called(argument: u64) -> u64 {
    black_box(argument)
}

/// The state after this many steps, starting at 1.
#[inline(never)]
fn lcg(iterations: u64) -> u64 {
    const P: u64 = (1 << 31) - 1;
    (0..iterations).fold(black_box(1), |x, _| (48_271 * x + 11) % P)
}

#[cfg(test)]
mod tests {
    use super::*;
    use becalm_linux::clock::MonotonicRaw;

    fn results(body: Body, iterations: &[u64]) -> Vec<u64> {
        let mut work = Work::new(body, Path::new("/"), CpuId::new(0)).unwrap();
        iterations.iter().map(|iterations| work.run::<MonotonicRaw>(*iterations)).collect()
    }

    #[test]
    fn every_body_has_its_name_back() {
        for body in Body::ALL {
            assert_eq!(body.name().parse::<Body>().unwrap(), *body);
        }
        let error = "nop".parse::<Body>().unwrap_err().to_string();
        assert!(error.starts_with("'nop' is no loop body; choose one of empty, sum, "), "{error}");
    }

    #[test]
    fn results_are_those_of_the_work_that_is_claimed() {
        assert_eq!(results(Body::Empty, &[0, 9]), [0, 9]);
        assert_eq!(results(Body::Sum, &[0, 1, 1_000]), [0, 0, 499_500]);
        assert_eq!(results(Body::Fibonacci, &[0, 1, 2, 3, 4, 5, 6]), [1, 1, 2, 4, 7, 13, 24]);
        assert_eq!(results(Body::Call, &[0, 10]), [0, 45]);
        assert_eq!(results(Body::Lcg, &[0, 1, 2]), [1, 48_282, (48_271 * 48_282 + 11) % 2_147_483_647]);
        let readings = results(Body::Counter, &[1, 10_000]);
        assert!(readings[0] < readings[1], "{readings:?}");
    }

    #[test]
    fn the_same_work_every_time() {
        let floats = [Body::FloatAdd, Body::FloatMul, Body::FloatDiv, Body::Simd];
        for body in [Body::Add, Body::Mul, Body::Div, Body::Sort, Body::Lcg].into_iter().chain(floats) {
            let again = results(body, &[3, 3, 1, 3]);
            assert!(again[0] == again[1] && again[0] == again[3] && again[0] != again[2], "{body}: {again:?}");
        }
    }

    #[test]
    fn the_sorted_array_fills_half_of_the_second_level_cache() {
        let root = tempfile::tempdir().unwrap();
        let index = root.path().join("sys/devices/system/cpu/cpu1/cache/index0");
        std::fs::create_dir_all(&index).unwrap();
        for (name, text) in [("level", "2\n"), ("type", "Unified\n"), ("size", "256K\n")] {
            std::fs::write(index.join(name), text).unwrap();
        }
        let work = Work::new(Body::Sort, root.path(), CpuId::new(1)).unwrap();
        assert_eq!(
            (work.memory_bytes(), work.cache_size()),
            (128 << 10, Some(CacheSize { bytes: 256 << 10, is_known: true }))
        );
        let work = Work::new(Body::Sort, root.path(), CpuId::new(0)).unwrap();
        assert_eq!(
            (work.memory_bytes(), work.cache_size()),
            (512 << 10, Some(CacheSize { bytes: 1 << 20, is_known: false }))
        );
    }

    #[test]
    fn loads_fill_half_of_their_cache_and_go_on_where_they_were() {
        let root = tempfile::tempdir().unwrap();
        for (index, level, size) in [("index0", "1\n", "48K\n"), ("index1", "2\n", "2M\n")] {
            let index = root.path().join("sys/devices/system/cpu/cpu1/cache").join(index);
            std::fs::create_dir_all(&index).unwrap();
            for (name, text) in [("level", level), ("type", "Data\n"), ("size", size)] {
                std::fs::write(index.join(name), text).unwrap();
            }
        }
        for (body, bytes, assumed) in [(Body::LoadL1, 48 << 10, 32 << 10), (Body::LoadL2, 2 << 20, 1 << 20)] {
            let mut work = Work::new(body, root.path(), CpuId::new(1)).unwrap();
            assert_eq!(
                (work.memory_bytes(), work.cache_size()),
                (bytes / 2, Some(CacheSize { bytes, is_known: true }))
            );
            let lines: std::collections::BTreeSet<u64> = (0..200).map(|_| work.run::<MonotonicRaw>(1)).collect();
            assert!(lines.len() > 1, "{body} went on from {lines:?}");
            let work = Work::new(body, root.path(), CpuId::new(0)).unwrap();
            assert_eq!(work.cache_size(), Some(CacheSize { bytes: assumed, is_known: false }));
        }
    }

    #[test]
    fn branches_are_others_each_time_and_half_of_them_are_taken() {
        let again = results(Body::Branch, &[100, 100, 100]);
        assert!(again[0] != again[1] && again[1] != again[2], "{again:?}");
        for not_taken in again {
            assert!((24_600..26_600).contains(&not_taken), "{not_taken} of 51,200");
        }
    }
}
