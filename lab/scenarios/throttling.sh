# A SCHED_FIFO loop on a kernel that throttles real-time threads, and on one that was told not to.
#: kernel stock

runtime=/proc/sys/kernel/sched_rt_runtime_us
cat "$runtime" /proc/sys/kernel/sched_rt_period_us >throttling
becalm record --cpus 1 --sched fifo:80 --duration 4s --quiet -o throttled.becalm
original=$(cat "$runtime")
echo -1 >"$runtime"
becalm record --cpus 1 --sched fifo:80 --duration 4s --quiet -o unthrottled.becalm

# Real-time loops on every CPU, and nothing in the kernel that takes a CPU from them: a signal ends them, and so does the end of
# their time. Who sends it must have started before, and be above them.
chrt -f 99 sh -c 'sleep 6; killall -TERM becalm' &
becalm record --cpus 0-1 --sched fifo:98 --until-stopped --quiet -o stopped.becalm
echo $? >stopped
wait
becalm record --cpus 0-1 --sched fifo:98 --duration 3s --quiet -o ended.becalm
echo $? >ended
becalm record --cpus 0-1 --sched fifo:99 --duration 3s --quiet -o refused.becalm 2>refusal
echo $? >refused
echo "$original" >"$runtime"
