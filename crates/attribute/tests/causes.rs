//! The causes of activities, from small scenes on two CPUs: requests are made on CPU 0, and what they request runs on CPU 1.

use becalm_attribute::causes::{CauseFinder, MOST_LINKS};
use becalm_model::carried::Carrier;
use becalm_model::cause::{Cause, Requester};
use becalm_model::{Event, Happening, Kind, Label, Labels, Life, Pid, Task, Tasks, ThreadState};
use becalm_units::{CpuId, Nanos};

const LOOP: Pid = Pid(100);
const SHELL: Pid = Pid(7);
const DATABASE: Pid = Pid(8);
const KWORKER: Pid = Pid(9);
const BECALM: Pid = Pid(10);

struct Scene {
    labels: Labels,
    tasks: Tasks,
    finder: CauseFinder,
    now: i64,
    in_interrupt: bool,
    found: Vec<Cause>,
}

impl Scene {
    fn new() -> Self {
        let (mut labels, mut tasks) = (Labels::new(), Tasks::new());
        for (pid, name, kind) in [
            (LOOP, "becalm", Kind::Becalm),
            (SHELL, "bash", Kind::Task),
            (DATABASE, "postgres", Kind::Task),
            (KWORKER, "kworker", Kind::Kthread),
            (BECALM, "prog", Kind::Task),
        ] {
            let source = labels.intern(name);
            tasks.set(pid, Task { kind, source, detail: source });
        }
        let finder = CauseFinder::new(Some("1".parse().unwrap()), &[BECALM], &mut labels);
        Self { labels, tasks, finder, now: 0, in_interrupt: false, found: Vec::new() }
    }

    fn label(&mut self, text: &str) -> Label {
        self.labels.intern(text)
    }

    /// An event on a CPU, 10 ns after the last one.
    fn on(&mut self, cpu: u32, thread: Pid, what: Happening) -> &mut Self {
        self.now += 10;
        let event = Event { time: Nanos::new(self.now), thread, in_interrupt: self.in_interrupt, what };
        let Self { labels, tasks, finder, found, .. } = self;
        finder.take(CpuId::new(cpu), &event, tasks, labels, &mut |cause| found.push(cause));
        self
    }

    fn irq(&mut self, cpu: u32, thread: Pid, name: &str, detail: &str, enters: bool) -> &mut Self {
        let (source, detail) = (self.label(name), self.label(detail));
        let what = if enters { Happening::IrqEntry { source, detail } } else { Happening::IrqExit { source, detail } };
        self.on(cpu, thread, what)
    }

    fn softirq(&mut self, cpu: u32, thread: Pid, name: &str, enters: bool) -> &mut Self {
        let source = self.label(name);
        let what = if enters { Happening::SoftirqEntry { source } } else { Happening::SoftirqExit { source } };
        self.on(cpu, thread, what)
    }

    fn raise(&mut self, cpu: u32, thread: Pid, name: &str) -> &mut Self {
        let source = self.label(name);
        self.on(cpu, thread, Happening::SoftirqRaised { source })
    }

    fn call(&mut self, by: Pid, function: &str, request: u64) -> &mut Self {
        let (function, site) = (self.label(&format!("ipi:{function}")), self.label("smp_call_function_many_cond"));
        self.on(0, by, Happening::CallQueued { cpu: CpuId::new(1), function, site, request })
    }

    fn function(&mut self, thread: Pid, carrier: Carrier, name: &str, request: u64) -> &mut Self {
        let source = self.label(name);
        self.on(1, thread, Happening::FunctionEntry { source, root: Label::EMPTY, carrier, interrupt: source, request })
    }

    fn function_ends(&mut self, thread: Pid, carrier: Carrier) -> &mut Self {
        self.on(1, thread, Happening::FunctionExit { carrier, interrupt: Label::EMPTY })
    }

    fn queue(&mut self, cpu: u32, by: Pid, name: &str, work: u64) -> &mut Self {
        let source = self.label(name);
        self.on(cpu, by, Happening::WorkQueued { source, work })
    }

    fn work(&mut self, cpu: u32, name: &str, work: u64, starts: bool) -> &mut Self {
        let source = self.label(name);
        let what = if starts { Happening::WorkStart { source, work } } else { Happening::WorkEnd { source, work } };
        self.on(cpu, KWORKER, what)
    }

    fn switch(&mut self, prev: Pid, state: u8, next: Pid) -> &mut Self {
        self.on(1, prev, Happening::Switch { prev, prev_state: ThreadState(state), next })
    }

    fn wake(&mut self, cpu: u32, by: Pid, thread: Pid) -> &mut Self {
        self.on(cpu, by, Happening::Waking { thread })
    }

    /// Kind, source, requester, its name, context, and the delay of each activity that has ended.
    fn causes(&mut self) -> Vec<String> {
        let text = |label| self.labels.text(label);
        let line = |cause: &Cause| {
            format!(
                "{} {} <- {} {} [{}] {}",
                cause.kind,
                text(cause.source),
                <&str>::from(cause.requester),
                text(cause.by),
                text(cause.context),
                cause.delay.map_or("-".to_owned(), |delay| delay.get().to_string())
            )
        };
        let lines = self.found.iter().map(line).collect();
        self.found.clear();
        lines
    }
}

#[test]
fn a_call_belongs_to_the_thread_that_requested_it() {
    let mut scene = Scene::new();
    scene.call(DATABASE, "flush_tlb_func", 0x10).call(SHELL, "ipi_mb", 0x20);
    scene.irq(1, LOOP, "call_function_single", "vector 251", true);
    scene.function(LOOP, Carrier::Call, "ipi:flush_tlb_func", 0x10).function_ends(LOOP, Carrier::Call);
    scene.function(LOOP, Carrier::Call, "ipi:ipi_mb", 0x20).function_ends(LOOP, Carrier::Call);
    scene.irq(1, LOOP, "call_function_single", "vector 251", false);
    assert_eq!(
        scene.causes(),
        ["irq ipi:ipi_mb <- program bash [] 40", "irq ipi:flush_tlb_func <- program postgres [] 30"]
    );
    // The interrupt has the time of its first function, from the interrupt's own start.
    scene.call(DATABASE, "flush_tlb_func", 0x10);
    scene.irq(1, LOOP, "call_function_single", "vector 251", true);
    let start = scene.now;
    scene.function(LOOP, Carrier::Call, "ipi:flush_tlb_func", 0x10).function_ends(LOOP, Carrier::Call);
    scene.irq(1, LOOP, "call_function_single", "vector 251", false);
    let cause = scene.found[0];
    assert_eq!((cause.start, cause.duration, cause.thread), (Nanos::new(start), Nanos::new(30), DATABASE));
    assert_eq!(scene.labels.text(cause.site), "smp_call_function_many_cond");
    scene.causes();
    // A request is used up.
    scene.call(DATABASE, "flush_tlb_func", 0x10);
    for _ in 0..2 {
        scene.irq(1, LOOP, "call_function_single", "vector 251", true);
        scene.function(LOOP, Carrier::Call, "ipi:flush_tlb_func", 0x10).function_ends(LOOP, Carrier::Call);
        scene.irq(1, LOOP, "call_function_single", "vector 251", false);
    }
    let owners: Vec<Requester> = scene.found.drain(..).map(|cause| cause.requester).collect();
    assert_eq!(owners, [Requester::Program, Requester::Unknown]);
    // One of another function is not taken for it.
    scene.call(SHELL, "ipi_mb", 0x10);
    for _ in 0..2 {
        scene.irq(1, LOOP, "call_function_single", "vector 251", true);
        scene.function(LOOP, Carrier::Call, "ipi:flush_tlb_func", 0x10).function_ends(LOOP, Carrier::Call);
        scene.irq(1, LOOP, "call_function_single", "vector 251", false);
    }
    assert_eq!(scene.causes(), ["irq ipi:flush_tlb_func <- unknown  [] -"; 2]);
    // A function that a thread calls on its own CPU is no interrupt.
    scene.function(LOOP, Carrier::Call, "ipi:flush_tlb_func", 0).function_ends(LOOP, Carrier::Call);
    assert_eq!(scene.causes(), [""; 0]);
}

#[test]
fn a_work_item_belongs_to_the_thread_that_queued_it_last() {
    let mut scene = Scene::new();
    scene.queue(0, SHELL, "kworker:wb_workfn", 1).queue(0, DATABASE, "kworker:wb_workfn", 1).wake(0, DATABASE, KWORKER);
    scene.switch(LOOP, 0, KWORKER).work(1, "kworker:wb_workfn", 1, true).work(1, "kworker:wb_workfn", 1, false);
    scene.switch(KWORKER, 1, LOOP);
    assert_eq!(
        scene.causes(),
        ["workqueue kworker:wb_workfn <- program postgres [] 30", "kthread kworker <- program postgres [] 10",]
    );
    // Used up: the same address later is another item.
    scene.wake(0, DATABASE, KWORKER);
    scene.switch(LOOP, 0, KWORKER).work(1, "kworker:wb_workfn", 1, true).work(1, "kworker:wb_workfn", 1, false);
    assert_eq!(scene.causes()[1], "workqueue kworker:wb_workfn <- unknown  [] -");
}

#[test]
fn a_softirq_belongs_to_the_interrupt_that_raised_it() {
    let mut scene = Scene::new();
    scene.irq(1, LOOP, "virtio1-req.0", "irq 25", true).raise(1, LOOP, "block");
    scene.irq(1, LOOP, "virtio1-req.0", "irq 25", false);
    scene.softirq(1, LOOP, "block", true);
    // A thread that the softirq wakes has the same cause, by way of the softirq.
    scene.wake(1, LOOP, SHELL).softirq(1, LOOP, "block", false);
    scene.switch(LOOP, 0, SHELL).switch(SHELL, 1, LOOP);
    assert_eq!(
        scene.causes(),
        [
            "irq virtio1-req.0 <- device virtio1-req.0 [] -",
            "softirq block <- device virtio1-req.0 [] 20",
            "task bash <- device virtio1-req.0 [softirq block] 20",
        ]
    );
}

#[test]
fn a_timer_is_its_function() {
    let mut scene = Scene::new();
    scene.irq(1, LOOP, "local_timer", "vector 236", true);
    scene.function(LOOP, Carrier::Timer, "timer:hrtimer_wakeup", 0).wake(1, LOOP, SHELL);
    scene.function_ends(LOOP, Carrier::Timer).function(LOOP, Carrier::Timer, "tick", 0).raise(1, LOOP, "timer");
    scene.function_ends(LOOP, Carrier::Timer).irq(1, LOOP, "local_timer", "vector 236", false);
    scene.softirq(1, LOOP, "timer", true);
    scene.function(LOOP, Carrier::Wheel, "timer:process_timeout", 0);
    scene.function(LOOP, Carrier::Wheel, "timer:delayed_work_timer_fn", 0).queue(1, LOOP, "kworker:vmstat_update", 5);
    scene.softirq(1, LOOP, "timer", false).softirq(1, LOOP, "timer", true).softirq(1, LOOP, "timer", false);
    scene.switch(LOOP, 0, SHELL).switch(SHELL, 0, KWORKER).work(1, "kworker:vmstat_update", 5, true);
    // A preempted thread continues for the same reason, and has not been on its way again.
    scene.switch(KWORKER, 0, SHELL).switch(SHELL, 1, KWORKER).work(1, "kworker:vmstat_update", 5, false);
    assert_eq!(
        scene.causes(),
        [
            "irq tick <- timer tick [] -",
            "irq timer:hrtimer_wakeup <- timer hrtimer_wakeup [] -",
            "softirq timer:delayed_work_timer_fn <- timer delayed_work_timer_fn [] -",
            "softirq timer:process_timeout <- timer process_timeout [] -",
            // No function, and nothing raised it again.
            "softirq timer <- unknown  [] -",
            "task bash <- timer hrtimer_wakeup [] 130",
            "kthread kworker <- unknown  [before the recording] -",
            "workqueue kworker:vmstat_update <- timer delayed_work_timer_fn [] 60",
            "task bash <- timer hrtimer_wakeup [] -",
            "workqueue kworker:vmstat_update <- timer delayed_work_timer_fn [] -",
        ]
    );
}

#[test]
fn a_reschedule_interrupt_belongs_to_its_sender() {
    let mut scene = Scene::new();
    let site = scene.label("resched_curr");
    let sent = |is_call| Happening::InterruptSent { cpu: CpuId::new(1), site, is_call };
    // That of a call is not one.
    scene.on(0, SHELL, sent(false)).on(0, DATABASE, sent(true));
    for _ in 0..2 {
        scene.irq(1, LOOP, "reschedule", "vector 253", true).irq(1, LOOP, "reschedule", "vector 253", false);
    }
    assert_eq!(scene.causes(), ["irq reschedule <- program bash [] 20", "irq reschedule <- unknown  [] -"]);
}

#[test]
fn the_thread_below_an_interrupt_made_no_request() {
    let mut scene = Scene::new();
    scene.in_interrupt = true;
    // An interrupt that the trace of CPU 0 does not show.
    scene.wake(0, DATABASE, SHELL);
    scene.in_interrupt = false;
    scene.switch(LOOP, 0, SHELL).switch(SHELL, 1, LOOP);
    assert_eq!(scene.causes()[0], "task bash <- unknown  [interrupt] 10");
    // becalm's own requests, and those of the idle thread.
    scene.call(BECALM, "do_sync_core", 1).call(Pid::IDLE, "nohz_csd_func", 2);
    scene.irq(1, LOOP, "call_function", "vector 252", true);
    scene.function(LOOP, Carrier::Call, "ipi:do_sync_core", 1).function_ends(LOOP, Carrier::Call);
    scene.function(LOOP, Carrier::Call, "ipi:nohz_csd_func", 2).function_ends(LOOP, Carrier::Call);
    scene.irq(1, LOOP, "call_function", "vector 252", false);
    assert_eq!(
        scene.causes(),
        ["irq ipi:nohz_csd_func <- kernel idle [] 40", "irq ipi:do_sync_core <- becalm prog [] 30"]
    );
}

#[test]
fn a_wake_up_of_a_running_thread_counts_if_it_then_sleeps() {
    let mut scene = Scene::new();
    scene.wake(0, DATABASE, SHELL).switch(LOOP, 0, SHELL);
    // Void: the shell is preempted, and did not sleep.
    scene.wake(0, BECALM, SHELL).switch(SHELL, 0, LOOP);
    // Nothing, because it waits already.
    scene.wake(0, BECALM, SHELL).switch(LOOP, 0, SHELL);
    scene.wake(0, BECALM, SHELL).switch(SHELL, 1, LOOP).switch(LOOP, 0, SHELL).switch(SHELL, 1, LOOP);
    // Not known, because no wake-up is in the trace.
    scene.switch(LOOP, 0, SHELL).switch(SHELL, 1, LOOP);
    let shells: Vec<String> = scene.causes().into_iter().filter(|line| line.starts_with("task")).collect();
    assert_eq!(
        shells,
        [
            "task bash <- program postgres [] 10",
            "task bash <- program postgres [] -",
            "task bash <- becalm prog [] 20",
            "task bash <- unknown  [] -",
        ]
    );
}

#[test]
fn a_chain_that_is_too_long_has_no_known_end() {
    let mut scene = Scene::new();
    scene.queue(0, DATABASE, "kworker:a", 0);
    for work in 0..u64::from(MOST_LINKS) + 2 {
        scene.work(0, "kworker:a", work, true).queue(0, KWORKER, "kworker:a", work + 1);
        scene.work(0, "kworker:a", work, false);
    }
    for (work, expected) in [(7, "unknown"), (5, "program")] {
        // CPU 1 executes the items of that many links.
        let mut other = Scene::new();
        other.queue(0, DATABASE, "kworker:a", 0);
        for link in 0..work {
            other.work(0, "kworker:a", link, true).queue(0, KWORKER, "kworker:a", link + 1);
            other.work(0, "kworker:a", link, false);
        }
        other.switch(LOOP, 0, KWORKER).work(1, "kworker:a", work, true).work(1, "kworker:a", work, false);
        let cause = *other.found.last().unwrap();
        assert_eq!(<&str>::from(cause.requester), expected);
        let links = other.labels.text(cause.context).matches("kworker:a").count();
        assert_eq!(links, work.min(5) as usize);
    }
}

#[test]
fn lost_events_leave_no_wrong_causes() {
    let mut scene = Scene::new();
    scene.raise(1, LOOP, "rcu").irq(1, LOOP, "virtio1-req.0", "irq 25", true);
    scene.on(1, Pid::IDLE, Happening::Lost { count: None });
    scene.softirq(1, LOOP, "rcu", true).softirq(1, LOOP, "rcu", false);
    scene.irq(1, LOOP, "virtio1-req.0", "irq 25", false);
    assert_eq!(scene.causes(), ["softirq rcu <- unknown  [] -"]);
    // A number that another thread gets does not inherit the wake-up of its predecessor: its creator wakes it.
    scene.wake(0, DATABASE, SHELL);
    let name = scene.label("bash");
    let created = Happening::Life(Life::Created { thread: SHELL, name, in_process: false });
    scene.on(0, BECALM, created).switch(LOOP, 0, SHELL).switch(SHELL, 1, LOOP);
    assert_eq!(scene.causes()[0], "task bash <- becalm prog [] 10");
    // It makes requests under its name of that time, whatever it is called later.
    let name = scene.label("gzip");
    scene.on(0, SHELL, Happening::Life(Life::Renamed { thread: SHELL, name })).wake(0, SHELL, BECALM);
    scene.switch(LOOP, 0, BECALM).switch(BECALM, 1, LOOP);
    assert_eq!(scene.causes()[1], "task prog <- program gzip [] 10");
    // One that is runnable when the trace starts, and one whose wake-up is not in the trace.
    scene.switch(LOOP, 0, DATABASE).switch(DATABASE, 0, LOOP).switch(LOOP, 0, DATABASE).switch(DATABASE, 1, LOOP);
    scene.switch(LOOP, 0, DATABASE).switch(DATABASE, 1, LOOP);
    let databases: Vec<String> = scene.causes().into_iter().filter(|line| line.starts_with("task")).collect();
    let before = "task postgres <- unknown  [before the recording] -";
    assert_eq!(databases, [before, before, "task postgres <- unknown  [] -"]);
    assert_eq!(Requester::default(), Requester::Unknown);
}
