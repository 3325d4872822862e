# A device interrupts the measured CPU until its interrupt is moved away, and then no more.
#: kernel stock

# The disk's interrupts belong to one CPU each, and the kernel lets nobody move them; the second serial port's goes
# where it is sent. It comes whenever the port, which must be open for it, has sent what was written to it.
exec 3>/dev/ttyS1
irq=/proc/irq/$(awk '$NF == "ttyS1" { print $1 + 0 }' /proc/interrupts)
while true; do
    echo 'hello, world' >&3
    usleep 10000
done &
load=$!
taskset -p 1 "$load" >/dev/null

# The interrupts of the port that a CPU has taken since boot.
port() {
    awk -v cpu="$1" '$NF == "ttyS1" { print $(cpu + 2) }' /proc/interrupts
}

for cpu in 1 0; do
    echo "$cpu" >"$irq/smp_affinity_list"
    # The kernel moves an interrupt when it comes the next time.
    sleep 0.2
    cat "$irq/effective_affinity_list" >"effective_on_$cpu"
    before=$(port 1)
    becalm record --cpus 1 --duration 3s --quiet -o "on_$cpu.becalm"
    after=$(port 1)
    echo $((after - before)) >"counted_on_$cpu"
done
kill "$load"

disk=/proc/irq/$(awk '$NF ~ /virtio0-req/ { print $1 + 0; exit }' /proc/interrupts)
if echo 0-1 2>managed >"$disk/smp_affinity_list"; then false; fi
