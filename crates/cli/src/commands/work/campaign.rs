//! The runs to make, from the arguments or from an interrupted run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use becalm_analyze::work::{WorkError, comparable};
use becalm_bundle::Bundle;
use becalm_command::arguments::refuse_existing;
use becalm_command::progress::{Bar, Tail};
use becalm_command::rights;
use becalm_linux::perf::PerfEvent;
use becalm_linux::procfs::status::Capability;
use becalm_linux::rights::User;
use becalm_linux::sched::{self, Policy};
use becalm_measure::work::Body;
use becalm_measure::{AfterSetUp, LoopTask, Progress, RecordPlan, WorkPlan};
use becalm_model::node::{Fixed, NodeDoc, WorkDoc};
use becalm_units::fault::{Result, UsageError};
use becalm_units::{CpuId, CpuList, Nanos, counted, plural};

use super::WorkArgs;

/// The default number of samples of a run.
const SAMPLES: u64 = 10_000;

/// A run to make.
pub struct CampaignPart {
    /// The directory of the bundle.
    pub path: PathBuf,
    /// The work of the loops, and its duration.
    pub plan: RecordPlan,
}

impl CampaignPart {
    /// The work of the loops.
    pub fn work(&self) -> Option<&WorkPlan> {
        work_of(&self.plan)
    }
}

/// The work of a plan, if any.
pub fn work_of(plan: &RecordPlan) -> Option<&WorkPlan> {
    match &plan.task {
        LoopTask::Work(work) => Some(work),
        LoopTask::Watch(_) => None,
    }
}

/// A resumed run.
pub struct Resumed {
    /// The directory of the bundle.
    pub path: PathBuf,
    /// The node's document in the run.
    pub doc: NodeDoc,
    /// The work that the document describes.
    work: WorkDoc,
    /// The number of samples of each CPU.
    samples: BTreeMap<CpuId, u64>,
}

impl Resumed {
    /// Opens a run to resume. Fails if it cannot be read, or is not a run of work on one node.
    pub fn open(path: &Path) -> Result<Self> {
        let bundle = Bundle::open(path)?;
        let usage = |why: &str| UsageError::new(format!("{} cannot be resumed: {why}", path.display()));
        let [doc] = bundle.nodes() else { return Err(usage("it holds several nodes").into()) };
        let Some(work) = doc.settings.work.clone() else {
            return Err(usage("it holds no samples of work, but a recording of detours").into());
        };
        let mut samples: BTreeMap<CpuId, u64> = work.loops.iter().map(|span| (span.cpu, 0)).collect();
        for batch in bundle.samples(&doc.node)? {
            for run in batch?.cpus().chunk_by(|a, b| a == b) {
                let cpu = CpuId::new(u32::try_from(run[0]).unwrap_or(0));
                *samples.entry(cpu).or_default() += run.len() as u64;
            }
        }
        Ok(Self { path: bundle.path().to_owned(), doc: doc.clone(), work, samples })
    }
}

/// The runs to make.
pub fn parts(args: &WorkArgs, resumed: Option<&Resumed>, root: &Path) -> Result<Vec<CampaignPart>> {
    let usage = |text: String| Err(UsageError::new(text).into());
    if args.copies.iter().any(|copies| *copies > 1) && matches!(args.sched, Policy::Fifo(_)) {
        return usage("under fifo the first of several copies would never let the others run; take rr or other".into());
    }
    let mut plan = RecordPlan::new();
    plan.policy = args.sched;
    plan.sources = !args.no_sources;
    plan.ring_bytes = args.buffer as usize * 1024;
    plan.duration = args.duration;
    plan.root = root.to_owned();
    if let Some(run) = resumed {
        plan.cpus = Some(run.work.loops.iter().map(|span| span.cpu).collect());
        plan.limit_trace_buffers();
        plan.policy = run.doc.settings.sched.parse().unwrap_or(args.sched);
        plan.task = LoopTask::Work(left_of(args, run)?);
        return Ok(vec![CampaignPart { path: run.path.clone(), plan }]);
    }
    for grain in grains(args) {
        if grain < Nanos::from_micros(1) || grain > Nanos::from_secs(1000) {
            return usage(format!("--grain {grain} is outside of 1us to 1000s"));
        }
        if args.duration.is_some_and(|duration| duration < grain) {
            return usage("--duration is shorter than one --grain".into());
        }
    }
    plan.cpus = Some(match &args.cpus {
        Some(cpus) => cpus.clone(),
        None => last_cpus(if args.at_once { args.body.len() } else { 1 })?,
    });
    let bodies = bodies_at_once(args, plan.cpus.iter().flat_map(CpuList::iter))?;
    plan.limit_trace_buffers();
    let path = args.folder.place(args.output.as_ref(), None, root)?;
    let mut parts = Vec::new();
    for kind in PartKind::all(args) {
        let path = kind.path(args, &path);
        refuse_existing(&path)?;
        let samples = args.samples.or((args.maiv.is_none() && args.duration.is_none()).then_some(SAMPLES));
        let work = WorkPlan {
            body: kind.body,
            bodies: bodies.clone(),
            grain: kind.grain,
            fixed: args.fixed.map_or(Fixed::Work, Fixed::from),
            samples,
            maiv: args.maiv.map(|share| share.ratio()),
            copies: kind.copies,
            added_hz: kind.added_hz,
            counters: counters(args),
            iterations: BTreeMap::new(),
        };
        parts.push(CampaignPart { path, plan: again(&plan, work) });
    }
    Ok(parts)
}

/// Fails if the baseline is of other work, or of none.
pub fn check_baseline(baseline: &Bundle, parts: &[CampaignPart]) -> Result<()> {
    for part in parts.iter().filter_map(CampaignPart::work) {
        for doc in baseline.nodes() {
            let Some(work) = &doc.settings.work else {
                return Err(WorkError::NotWork { path: baseline.path().to_owned() }.into());
            };
            comparable(&part.body_name(), part.fixed, part.grain.get(), work)?;
        }
    }
    Ok(())
}

/// Lets the last run drop the process's rights for good, and earlier ones temporarily. Fails if the user that the process becomes cannot
/// write in the directory of a bundle.
pub fn leave_rights(parts: &mut [CampaignPart], has_baseline: bool) -> Result<()> {
    let user = User::from_sudo();
    for part in &*parts {
        rights::refuse_place_of_root(&part.path, user.as_ref())?;
    }
    let Some((last, others)) = parts.split_last_mut() else { return Ok(()) };
    others.iter_mut().for_each(|part| part.plan.rights = rights::lower_while_recording());
    last.plan.rights = rights::give_up_after_set_up();
    // The samples of the baseline are read after the runs.
    if has_baseline && let AfterSetUp::GiveUp(left) = &mut last.plan.rights {
        left.kept = left.kept.with_capability(Capability::DacReadSearch);
    }
    Ok(())
}

/// The same plan with other work.
fn again(plan: &RecordPlan, work: WorkPlan) -> RecordPlan {
    RecordPlan {
        cpus: plan.cpus.clone(),
        duration: plan.duration,
        policy: plan.policy,
        sources: plan.sources,
        ring_bytes: plan.ring_bytes,
        trace_bytes: plan.trace_bytes,
        task: LoopTask::Work(work),
        root: plan.root.clone(),
        ..RecordPlan::new()
    }
}

/// The events to count during the loops.
fn counters(args: &WorkArgs) -> Vec<PerfEvent> {
    if args.no_counters { Vec::new() } else { PerfEvent::OF_PROCESSOR.to_vec() }
}

/// The rest of an interrupted run: determined by its CPU with the fewest samples, so none gets too few.
fn left_of(args: &WorkArgs, run: &Resumed) -> Result<WorkPlan> {
    let named = |name: &str| -> Result<Body, UsageError> {
        name.parse().map_err(|error| UsageError::new(format!("{}: {error}", run.path.display())))
    };
    let bodies = run.work.bodies.iter().map(|body| Ok((body.cpu, named(&body.body)?)));
    let bodies = bodies.collect::<Result<BTreeMap<CpuId, Body>, UsageError>>()?;
    let body = bodies.values().next().map_or_else(|| named(&run.work.body), |body| Ok(*body))?;
    let wanted = args.samples.or(run.work.samples);
    let fewest = run.samples.values().copied().min().unwrap_or(0);
    let samples = match (wanted, args.maiv, args.duration) {
        (_, Some(_), _) | (_, None, Some(_)) => None,
        (Some(wanted), None, None) if wanted > fewest => Some(wanted - fewest),
        (Some(wanted), None, None) => {
            let text = format!("{} has its {wanted} samples already; ask for more with --samples", run.path.display());
            return Err(UsageError::new(text).into());
        }
        (None, None, None) => {
            let text = "this run has no number of samples to reach; give --samples, --maiv or --duration".to_owned();
            return Err(UsageError::new(text).into());
        }
    };
    Ok(WorkPlan {
        body,
        bodies,
        grain: run.work.grain_ns,
        fixed: run.work.fixed,
        samples,
        maiv: args.maiv.map(|share| share.ratio()),
        copies: run.work.copies,
        added_hz: run.work.added_hz,
        counters: counters(args),
        iterations: run.work.loops.iter().map(|span| (span.cpu, span.iterations)).collect(),
    })
}

/// The last usable CPUs, because becalm's own collector and most device interrupts run elsewhere.
fn last_cpus(count: usize) -> Result<CpuList> {
    let allowed: Vec<CpuId> = sched::allowed_cpus()?.iter().collect();
    Ok(allowed[allowed.len().saturating_sub(count)..].iter().copied().collect())
}

/// The body of each CPU, if all bodies work at once; otherwise empty.
fn bodies_at_once(args: &WorkArgs, cpus: impl Iterator<Item = CpuId>) -> Result<BTreeMap<CpuId, Body>> {
    if !args.at_once {
        return Ok(BTreeMap::new());
    }
    let cpus: Vec<CpuId> = cpus.collect();
    let bodies = &args.body;
    if bodies.len() < 2 {
        return Err(UsageError::new("--at-once is for several bodies, as in --body add,mul,div").into());
    }
    if cpus.len() != bodies.len() {
        return Err(UsageError::new(format!(
            "--at-once has each body on a CPU of its own: there {} {} for {} bodies",
            plural(cpus.len() as u64, "is", "are"),
            counted(cpus.len() as u64, "CPU", "CPUs"),
            bodies.len()
        ))
        .into());
    }
    Ok(cpus.into_iter().zip(bodies.iter().copied()).collect())
}

/// The lengths of samples: each once, in the given order.
fn grains(args: &WorkArgs) -> Vec<Nanos> {
    let mut grains: Vec<Nanos> = Vec::new();
    let asked = if args.grain.is_empty() { vec![Nanos::from_millis(1)] } else { args.grain.clone() };
    for grain in &asked {
        if !grains.contains(grain) {
            grains.push(*grain);
        }
    }
    grains
}

/// The properties that distinguish the runs of one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PartKind {
    body: Body,
    grain: Nanos,
    copies: u32,
    added_hz: u32,
}

impl PartKind {
    /// The requested runs: bodies in order, then grains and copies in order, then ascending rates.
    fn all(args: &WorkArgs) -> Vec<Self> {
        let mut bodies: Vec<Body> = Vec::new();
        let asked = match &args.body[..] {
            [] => &[Body::Empty][..],
            // The others work in the same run.
            [first, ..] if args.at_once => std::slice::from_ref(first),
            all => all,
        };
        for body in asked {
            if !bodies.contains(body) {
                bodies.push(*body);
            }
        }
        let mut rates = args.rates.clone();
        rates.sort_unstable();
        rates.dedup();
        let mut all = Vec::new();
        for body in bodies {
            for grain in grains(args) {
                for copies in &args.copies {
                    let of_rate = |added_hz: &u32| Self { body, grain, copies: *copies, added_hz: *added_hz };
                    all.extend(rates.iter().map(of_rate));
                }
            }
        }
        all
    }

    /// The path of this run: its distinguishing properties precede the suffix.
    fn path(self, args: &WorkArgs, path: &Path) -> PathBuf {
        let several = |list: usize, name: String| (list > 1).then_some(name);
        let rate = if self.added_hz == 0 { "idle".to_owned() } else { format!("{}hz", self.added_hz) };
        let names = [
            several(if args.at_once { 1 } else { args.body.len() }, self.body.name().to_owned()),
            several(grains(args).len(), self.grain.to_string()),
            several(args.copies.len(), self.copies.to_string()),
            several(args.rates.len(), rate),
        ];
        names.into_iter().flatten().fold(path.to_owned(), |path, name| named(&path, &name))
    }
}

/// The path of one of several runs: `RUN-4.becalm` for `RUN.becalm`.
fn named(path: &Path, part: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, ending) = match name.strip_suffix(".becalm") {
        Some(stem) => (stem, ".becalm"),
        None => (name.as_ref(), ""),
    };
    path.with_file_name(format!("{stem}-{part}{ending}"))
}

/// The progress bar, if there is a terminal.
pub fn progress_bar(args: &WorkArgs, work: Option<&WorkPlan>) -> Bar {
    let samples = work.and_then(|work| work.samples).unwrap_or(0);
    if args.quiet { Bar::hidden() } else { Bar::new("working", samples, Tail::Steps) }
}

/// Shows the progress of a run.
pub fn show(bar: &Bar, progress: Progress) {
    if !bar.is_hidden() {
        let seconds = progress.elapsed.as_secs_f64();
        bar.say(format!("working {seconds:.1}s, {} samples, Ctrl-C ends it", progress.detours));
        bar.reach(progress.detours);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_copies_are_numbered_before_the_ending() {
        assert_eq!(named(Path::new("a/quiet.becalm"), "4"), Path::new("a/quiet-4.becalm"));
        assert_eq!(named(Path::new("quiet"), "8"), Path::new("quiet-8"));
    }

    #[test]
    fn runs_are_named_after_what_they_differ_by() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: WorkArgs,
        }
        let names = |line: &str| -> Vec<String> {
            let Line { args } = clap::Parser::parse_from(["work"].into_iter().chain(line.split_whitespace()));
            let path = |kind: PartKind| kind.path(&args, Path::new("r.becalm")).display().to_string();
            PartKind::all(&args).into_iter().map(path).collect()
        };
        assert_eq!(names(""), ["r.becalm"]);
        assert_eq!(names("--body sum --rates 1000"), ["r.becalm"]);
        assert_eq!(names("--rates 5000,idle --body call"), ["r-idle.becalm", "r-5000hz.becalm"]);
        let several = ["r-sum-1.becalm", "r-sum-2.becalm", "r-call-1.becalm", "r-call-2.becalm"];
        assert_eq!(names("--body sum,call,sum --copies 1,2"), several);
        assert_eq!(names("--grain 1ms,1500us,1ms"), ["r-1ms.becalm", "r-1.5ms.becalm"]);
        assert_eq!(names("--body sum,call --at-once"), ["r.becalm"]);
        assert_eq!(names("--body sum,call --at-once --rates idle,1000"), ["r-idle.becalm", "r-1000hz.becalm"]);
    }

    #[test]
    fn bodies_at_once_have_a_cpu_each() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: WorkArgs,
        }
        let bodies = |line: &str, cpus: &str| {
            let Line { args } = clap::Parser::parse_from(["work"].into_iter().chain(line.split_whitespace()));
            bodies_at_once(&args, cpus.parse::<CpuList>().unwrap().iter()).map_err(|error| error.to_string())
        };
        let found = bodies("--body add,div --at-once", "2-3").unwrap();
        assert_eq!(
            found.into_iter().map(|(cpu, body)| (cpu.get(), body.name())).collect::<Vec<_>>(),
            [(2, "add"), (3, "div")]
        );
        assert!(bodies("--body add,div", "0").unwrap().is_empty());
        assert!(bodies("--body add --at-once", "0").unwrap_err().contains("several bodies"));
        let why = bodies("--body add,mul,div --at-once", "0-1").unwrap_err();
        assert!(why.contains("there are 2 CPUs for 3 bodies"), "{why}");
    }
}
