# A SCHED_FIFO loop on a kernel that throttles real-time threads, and on one that was told not to.
#: kernel stock

runtime=/proc/sys/kernel/sched_rt_runtime_us
cat "$runtime" /proc/sys/kernel/sched_rt_period_us >throttling
becalm record --cpus 1 --sched fifo:80 --duration 4s --quiet -o throttled.becalm
original=$(cat "$runtime")
echo -1 >"$runtime"
becalm record --cpus 1 --sched fifo:80 --duration 4s --quiet -o unthrottled.becalm
echo "$original" >"$runtime"
