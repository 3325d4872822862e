# A CPU that the boot parameters freed from the scheduler, the tick and RCU.
#: kernel rt
#: parameters isolcpus=1 nohz_full=1 rcu_nocbs=1

before=$(interrupts LOC 1)
becalm record --cpus 1 --duration 5s -o run.becalm
after=$(interrupts LOC 1)
echo $((after - before)) >timer_interrupts
# The other CPU of the same kernel keeps its tick; becalm compares the two.
becalm record --cpus 0 --duration 2s --quiet -o housekeeping.becalm
ls /sys/kernel/tracing/instances >instances
