# How late threads wake under planted noise, by cyclictest and by the kernel's own timerlat, one after the other, twice.
#: kernel rt
#: with rtla
#: with cyclictest

# Where cyclictest keeps what it prints while it runs.
mkdir /dev/shm

# Who wakes up each millisecond; above the noise in priority, or below it.
cyclic() {
    cyclictest --quiet --mlockall --affinity 1 --threads 1 --priority "$1" --interval 1000 --duration 3 --histogram 60000 \
        --json "$2" >/dev/null
}
timerlat() {
    rtla timerlat hist --cpus 1 --duration 3s --priority "f:$1" --period 1000 --bucket-size 100 --entries 600 >"$2"
}

# Detours begin anywhere within 2 ms of their turn, and so anywhere between two wake-ups. The noise ends with what is run under it.
mkfifo end
becalm inject --cpus 1 --interval 60ms --jitter 2ms --detour 20ms --sched fifo:51 --json -- cat end >planted.json &
planted=$!
exec 3>end
for turn in 1 2; do
    cyclic 40 cyclictest_$turn
    timerlat 40 timerlat_$turn
done
cyclic 60 above
becalm record --cpus 1 --duration 2s --threshold 1ms --no-sources --quiet -o lost.becalm
exec 3>&-
wait $planted
