# Both CPUs of a PREEMPT_RT kernel, where softirqs run in threads; then the kernel's own noise meter on one of them.
#: kernel rt

cp /sys/kernel/tracing/available_events .
# Something to do for the softirqs: timers, the loopback network, RCU.
ifconfig lo 127.0.0.1 up
while true; do
    ping -c 1 -q 127.0.0.1 >/dev/null
    sleep 0.05
done &
load=$!
before=$(interrupts LOC 1)
becalm record --cpus 0-1 --duration 5s -o run.becalm
after=$(interrupts LOC 1)
kill "$load"
echo $((after - before)) >timer_interrupts
becalm report run.becalm --json >report.json
becalm report run.becalm
ls /sys/kernel/tracing/instances >instances

# osnoise samples a second of noise at a time; three of them will do for a comparison.
osnoise=/sys/kernel/tracing/instances/osnoise
mkdir "$osnoise"
echo 1 >/sys/kernel/tracing/osnoise/cpus
echo osnoise >"$osnoise/current_tracer"
sleep 3.5
cat "$osnoise/trace" >osnoise
echo nop >"$osnoise/current_tracer"
rmdir "$osnoise"
