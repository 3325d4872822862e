# The sort of `becalm cost tick` and a loop on a CPU without a tick, beside what the model makes of the CPU that has one.
#: kernel rt
#: parameters isolcpus=1 nohz_full=1 rcu_nocbs=1

# What the model says: sorts on CPU 0 under its own tick and with more interrupts, and by that the time without any.
becalm cost tick --cpu 0 --rates idle,1000 --copies 1 --rounds 3 --cell 1s --sched other --no-counters -o tick.becalm
for cpu in 0 1; do
    before=$(interrupts LOC $cpu)
    becalm work --cpus $cpu --body sort --samples 30 --no-counters --quiet -o sort$cpu.becalm
    becalm work --cpus $cpu --body empty --samples 1000 --no-counters --quiet -o empty$cpu.becalm
    after=$(interrupts LOC $cpu)
    echo $((after - before)) >timer_interrupts$cpu
done
