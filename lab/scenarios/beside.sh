# One CPU under one planted noise, measured by becalm, rtla, oslat and cyclictest by turns; and by becalm under another one.
#: kernel rt
#: with rtla
#: with oslat
#: with cyclictest

# Detours of so much, 50 times a second, until `unplant`. What a detour costs is measured first.
plant() {
    becalm inject --cpus 1 --interval 20ms --detour "$1" --duration 60s >"inject-$1" 2>&1 &
    injector=$!
    sleep 1
}

unplant() {
    kill "$injector"
    wait "$injector" || true
}

plant 500us
rtla osnoise hist -c 1 -d 3s -b 5 -E 400 >osnoise-hist
becalm record --cpus 1 --duration 3s --no-trace --quiet -o same.becalm
oslat -c 1 -D 2 -b 1000 --json=oslat.json >oslat-text
# How late a thread wakes is another thing, and is not held against lost time.
rtla timerlat hist -c 1 -d 1s -b 100 -E 100 >timerlat-hist
cyclictest -q -D 1s -i 1000 -a 1 -t 1 -h 10000 --json=cyclictest.json >cyclictest-text
unplant
plant 800us
becalm record --cpus 1 --duration 2s --no-trace --quiet -o other.becalm
unplant
