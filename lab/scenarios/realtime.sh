# Both CPUs of a PREEMPT_RT kernel, where softirqs run in threads; then one of them beside the kernel's own noise meter.
#: kernel rt
#: with rtla

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
ls /sys/kernel/tracing/instances >instances

# The kernel's own noise meter on the same CPU, under a load that is the same at all times: a process that wakes up 20
# times a second and has the softirqs of timers and of the loopback network run.
ping -i 0.05 -q 127.0.0.1 >/dev/null &
load=$!
taskset -p 2 "$load" >/dev/null
becalm record --cpus 1 --duration 5s --quiet -o beside.becalm
# What rtla counts by class, osnoise's events tell by name.
names=/sys/kernel/tracing/instances/names
mkdir "$names"
echo 1 >"$names/events/osnoise/enable"
read -r start _ </proc/uptime
before=$(interrupts LOC 1)
rtla osnoise top -c 1 -d 6s -q >rtla
after=$(interrupts LOC 1)
read -r end _ </proc/uptime
echo "$start $end $((after - before))" >ticks
echo 0 >"$names/tracing_on"
cat "$names/per_cpu/cpu1/trace" >osnoise
echo 0 >"$names/events/osnoise/enable"
rmdir "$names"
kill "$load"
