# One setting of the kernel matrix: a recording of a CPU, and what the kernel counted meanwhile.
#: kernel stock

# What the kernel has counted on CPU 1 since boot: interrupts by name.
counts() {
    awk '$1 ~ /:$/ && $3 ~ /^[0-9]+$/ { sub(/:/, "", $1); print $1, $3 }' /proc/interrupts
}

cat /proc/cmdline >cmdline
uname -r >release
mount -t debugfs none /sys/kernel/debug 2>/dev/null || true
cat /sys/kernel/debug/sched/preempt >preempt 2>/dev/null || true

# Something to do for a kernel, wherever it likes to do it.
background_load
counts >before
becalm record --cpus 1 --duration 5s --quiet -o run.becalm
counts >after
