//! becalm's threads bound to a CPU: started, prepared in their place, and released together.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::time::Duration;

use becalm_units::CpuId;

use crate::sched::{Policy, SchedError, pin_current_thread, set_policy};

/// The stack size of such a thread in bytes: its loops are shallow, and all of it may be locked into memory.
const STACK: usize = 256 << 10;

/// A thread to be started: its name, its CPU and its scheduling class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    /// The name in the kernel, which keeps 15 bytes of it.
    pub name: String,
    /// The only CPU that it runs on.
    pub cpu: CpuId,
    /// Its scheduling class; `None` for that of the parent thread. See [`Policy::unless_other`].
    pub policy: Option<Policy>,
}

impl Thread {
    /// Binds the calling thread to the CPU and puts it into the class.
    pub(super) fn settle(&self) -> Result<(), SchedError> {
        pin_current_thread(self.cpu)?;
        self.policy.map_or(Ok(()), set_policy)
    }

    /// Starts the thread. It settles in its place and then runs `body`, which gets the result of that.
    pub fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce(Result<(), SchedError>) -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        self.builder().spawn(move || body(self.settle()))
    }

    /// Starts the thread like [`Self::spawn`], within a scope.
    pub fn spawn_scoped<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: impl FnOnce(Result<(), SchedError>) -> T + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, T>> {
        self.builder().spawn_scoped(scope, move || body(self.settle()))
    }

    /// Runs `body` on the thread once it has settled in its place, and waits for its result. Panics if `body` panics. Fails if the system cannot
    /// start another thread, or the thread cannot run there.
    pub fn run<T: Send>(self, body: impl FnOnce() -> T + Send) -> Result<T, SchedError> {
        let name = self.name.clone();
        std::thread::scope(|scope| {
            let thread = self.spawn_scoped(scope, |settled| settled.map(|()| body()));
            let thread = thread.map_err(|source| SchedError::Start(name, source))?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Starts a thread that settles in its place, prepares itself, reports that it is ready, and sleeps until it is released.
    ///
    /// `prepare` returns the input of `run` and the report. `run` also gets the value passed to the start. Fails if the system cannot start another
    /// thread. The report contains whether it could settle and prepare.
    pub fn prepare<P, R, E, G, T>(
        self,
        prepare: impl FnOnce() -> Result<(P, R), E> + Send + 'static,
        run: impl FnOnce(P, G) -> T + Send + 'static,
    ) -> io::Result<Waiting<JoinHandle<Option<T>>, R, E, G>>
    where
        R: Send + 'static,
        P: 'static,
        E: From<SchedError> + Send + 'static,
        G: Send + 'static,
        T: Send + 'static,
    {
        let (builder, name) = (self.builder(), self.name.clone());
        let (body, ready, start) = self.phases(prepare, run);
        Ok(Waiting { thread: builder.spawn(body)?, name, ready, start })
    }

    /// Like [`Self::prepare`], within a scope. Fails if the system cannot start another thread. The report contains whether it could settle and
    /// prepare.
    pub fn prepare_scoped<'scope, P, R, E, G, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        prepare: impl FnOnce() -> Result<(P, R), E> + Send + 'scope,
        run: impl FnOnce(P, G) -> T + Send + 'scope,
    ) -> io::Result<Waiting<ScopedJoinHandle<'scope, Option<T>>, R, E, G>>
    where
        R: Send + 'scope,
        P: 'scope,
        E: From<SchedError> + Send + 'scope,
        G: Send + 'scope,
        T: Send + 'scope,
    {
        let (builder, name) = (self.builder(), self.name.clone());
        let (body, ready, start) = self.phases(prepare, run);
        Ok(Waiting { thread: builder.spawn_scoped(scope, body)?, name, ready, start })
    }

    fn builder(&self) -> Builder {
        Builder::new().name(self.name.clone()).stack_size(STACK)
    }

    /// The thread's body, and the two channel ends that receive its report and release it.
    #[expect(
        clippy::type_complexity,
        reason = "the body, and the two ends of its channels, which the caller takes apart at once"
    )]
    fn phases<P, R, E: From<SchedError>, G, T>(
        self,
        prepare: impl FnOnce() -> Result<(P, R), E>,
        run: impl FnOnce(P, G) -> T,
    ) -> (impl FnOnce() -> Option<T>, Receiver<Result<R, E>>, Sender<G>) {
        let (say, ready) = channel();
        let (start, started) = channel();
        let body = move || {
            let prepared = self.settle().map_err(E::from).and_then(|()| prepare());
            let (own, report) = match prepared {
                Ok((own, report)) => (Some(own), Ok(report)),
                Err(error) => (None, Err(error)),
            };
            // If another thread has failed, no receiver is left, and no start comes.
            let _ = say.send(report);
            drop(say);
            Some(run(own?, started.recv().ok()?))
        };
        (body, ready, start)
    }
}

/// A thread that prepares itself and then sleeps until it is released. `H` is its join handle, `R` its report, `E` the reason for having none, `G`
/// the value passed to the start.
///
/// If this is dropped instead, the thread ends without having run; joining it returns `None`.
#[derive(Debug)]
pub struct Waiting<H, R, E, G> {
    thread: H,
    name: String,
    ready: Receiver<Result<R, E>>,
    start: Sender<G>,
}

impl<H, R, E: From<SchedError>, G> Waiting<H, R, E, G> {
    /// Sleeps until the thread is ready, and returns its report. Must be called once. Fails if the thread cannot run there, or could not prepare
    /// itself.
    pub fn ready(&self) -> Result<R, E> {
        self.ready.recv().unwrap_or_else(|_| Err(self.ended()))
    }

    /// Sleeps until the thread is ready, at most this long; `None` if it is not ready by then. The error is the reason why the thread cannot run
    /// there, or could not prepare itself.
    pub fn ready_within(&self, longest: Duration) -> Option<Result<R, E>> {
        match self.ready.recv_timeout(longest) {
            Ok(report) => Some(report),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(self.ended())),
        }
    }

    fn ended(&self) -> E {
        SchedError::Ended(self.name.clone()).into()
    }
}

impl<H, R, E, G> Waiting<H, R, E, G> {
    /// Releases the thread, and returns its join handle.
    pub fn start(self, go: G) -> H {
        // A thread that failed does not wait; joining it shows that.
        let _ = self.start.send(go);
        self.thread
    }

    /// Ends the thread without running it, and returns its join handle.
    pub fn dismiss(self) -> H {
        self.thread
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::{allowed_cpus, current_cpu};

    fn thread(cpu: CpuId) -> Thread {
        Thread { name: "becalm/test".to_owned(), cpu, policy: None }
    }

    fn last_cpu() -> CpuId {
        allowed_cpus().unwrap().iter().last().unwrap()
    }

    #[test]
    fn a_thread_settles_before_it_runs() {
        let cpu = last_cpu();
        let body = |settled: Result<(), SchedError>| {
            settled.unwrap();
            (current_cpu(), allowed_cpus().unwrap().len(), std::thread::current().name().map(str::to_owned))
        };
        let seen = thread(cpu).spawn(body).unwrap().join().unwrap();
        assert_eq!(seen, (Some(cpu), 1, Some("becalm/test".to_owned())));
        let batch = Thread { policy: Some(Policy::Batch), ..thread(cpu) };
        let class = |settled: Result<(), SchedError>| {
            settled.unwrap();
            std::fs::read_to_string("/proc/thread-self/sched").unwrap_or_default()
        };
        let text = std::thread::scope(|scope| batch.spawn_scoped(scope, class).unwrap().join().unwrap());
        // Not every kernel has the file.
        assert!(text.lines().filter(|line| line.starts_with("policy")).all(|line| line.ends_with('3')), "{text}");
    }

    #[test]
    fn a_thread_runs_and_its_result_is_waited_for() {
        let cpu = last_cpu();
        assert_eq!(thread(cpu).run(current_cpu).unwrap(), Some(cpu));
        let error = thread(CpuId::new(500_000)).run(|| panic!("it runs nowhere")).unwrap_err();
        assert!(error.to_string().contains("500000"), "{error}");
    }

    #[test]
    fn threads_prepare_themselves_report_and_run_when_they_are_let_go() {
        let cpu = last_cpu();
        let prepare = move || Ok::<_, SchedError>((7_u64, current_cpu()));
        let waiting = thread(cpu).prepare(prepare, |own, go: u64| own + go).unwrap();
        assert_eq!(waiting.ready().unwrap(), Some(cpu));
        assert_eq!(waiting.start(3).join().unwrap(), Some(10));

        let mut ran = [false; 3];
        std::thread::scope(|scope| {
            let run = |ran: &mut bool, ()| *ran = true;
            let start = |ran| thread(cpu).prepare_scoped(scope, || Ok::<_, SchedError>((ran, ())), run);
            let waiting: Vec<_> = ran.iter_mut().map(|ran| start(ran).unwrap()).collect();
            waiting.iter().for_each(|thread| thread.ready().unwrap());
            for (index, thread) in waiting.into_iter().enumerate() {
                if index < 2 {
                    thread.start(());
                } else {
                    assert_eq!(thread.dismiss().join().unwrap(), None);
                }
            }
        });
        assert_eq!(ran, [true, true, false]);
    }

    #[test]
    fn what_keeps_a_thread_from_running_is_its_report() {
        let none = thread(CpuId::new(5000));
        let waiting = none.clone().prepare(|| Ok::<_, SchedError>(((), ())), |(), ()| ()).unwrap();
        assert!(waiting.ready().unwrap_err().to_string().contains("5000"));
        assert_eq!(waiting.start(()).join().unwrap(), None);
        assert!(none.spawn(|settled| settled.is_err()).unwrap().join().unwrap());

        let prepare = || Err::<((), ()), _>(SchedError::Ended("why".to_owned()));
        let waiting = thread(last_cpu()).prepare(prepare, |(), ()| ()).unwrap();
        let report = waiting.ready_within(Duration::from_secs(60)).unwrap();
        assert!(report.unwrap_err().to_string().contains("why"));
        // The report was taken, and the thread has gone.
        assert!(waiting.ready().is_err());
    }

    #[test]
    fn one_that_takes_long_is_not_waited_for() {
        let (go, wait) = channel::<()>();
        let prepare = move || {
            let _ = wait.recv();
            Ok::<_, SchedError>(((), ()))
        };
        let waiting = thread(last_cpu()).prepare(prepare, |(), ()| ()).unwrap();
        assert!(waiting.ready_within(Duration::from_millis(1)).is_none());
        drop(go);
        waiting.ready().unwrap();
        assert_eq!(waiting.start(()).join().unwrap(), Some(()));
    }
}
