# A CPU that the boot parameters freed from the scheduler, the tick and RCU.
#: kernel rt
#: parameters isolcpus=1 nohz_full=1 rcu_nocbs=1

before=$(interrupts LOC 1)
becalm record --cpus 1 --duration 5s -o run.becalm
after=$(interrupts LOC 1)
echo $((after - before)) >timer_interrupts
becalm report run.becalm --json >report.json
becalm report run.becalm
ls /sys/kernel/tracing/instances >instances
