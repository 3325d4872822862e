# The same CPU under the same planted noise, measured by becalm and by rtla, oslat and cyclictest by turns; and under another one.
#: kernel rt
#: with rtla oslat cyclictest

# Detours of so much, 50 times a second, until it is killed; it measures first what a detour costs.
plant() {
    becalm inject --cpus 1 --interval 20ms --detour "$1" --duration 60s >"inject-$1" 2>&1 &
    injector=$!
    sleep 1.5
}

plant 2ms
taskset 2 true
becalm record --cpus 1 --duration 2s --quiet -o same-1.becalm
rtla osnoise hist -c 1 -d 3s -b 100 -E 100 >osnoise-hist || true
oslat -c 1 -D 2 --json=oslat.json >oslat-text || true
becalm record --cpus 1 --duration 2s --quiet -o same-2.becalm
rtla timerlat hist -c 1 -d 1s -b 100 -E 100 >timerlat-hist || true
cyclictest -q -D 1s -i 1000 -a 1 -t 1 --json=cyclictest.json || true
kill "$injector"
wait "$injector" || true
plant 4ms
becalm record --cpus 1 --duration 2s --quiet -o other.becalm
kill "$injector"
wait "$injector" || true
