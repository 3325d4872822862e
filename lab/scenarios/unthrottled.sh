# Real-time loops on every CPU of a kernel that was told not to throttle real-time threads.
#: kernel stock
#: with chrt

echo -1 >/proc/sys/kernel/sched_rt_runtime_us
# Nothing in the kernel takes a CPU from the loops: a signal ends them, and so does the end of their time. Who sends it must have
# started before, and be above them.
chrt -f 99 sh -c 'sleep 6; killall -TERM becalm' &
becalm record --cpus 0-1 --sched fifo:98 --until-stopped --quiet -o stopped.becalm
echo $? >stopped
wait
becalm record --cpus 0-1 --sched fifo:98 --duration 2s --quiet -o ended.becalm
echo $? >ended
becalm record --cpus 0-1 --sched fifo:99 --duration 3s --quiet -o refused.becalm 2>refusal || echo $? >refused
