# The same noise, planted on one CPU, in becalm and in the kernel's own noise meter, one after the other, twice.
#: kernel rt
#: with rtla

# Detours that stand out of what the emulator does by itself, of the length that is said, while a command runs.
plant() {
    length=$1
    shift
    becalm inject --cpus 1 --interval 60ms --jitter 2ms --detour "$length" --json -- "$@" >"planted_$length.json"
}

cat >turns <<'END_OF_TURNS'
for turn in 1 2; do
    becalm record --cpus 1 --duration 5s --threshold 1ms --no-sources --quiet -o becalm_$turn.becalm
    rtla osnoise hist --cpus 1 --duration 5s --threshold 1000 --bucket-size 100 --entries 600 >osnoise_$turn
done
END_OF_TURNS
plant 20ms sh -eu turns
# What must be told from it.
plant 40ms becalm record --cpus 1 --duration 3s --threshold 1ms --no-sources --quiet -o longer.becalm
