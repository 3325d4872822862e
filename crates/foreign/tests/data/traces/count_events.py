#!/usr/bin/env python3
"""Counts a trace that `trace-cmd report -t` or `perf script --ns` printed, on its own: it shares nothing with becalm, whose tests hold what
they find against it.

    count_events.py TEXT [THREAD]

For each CPU: entries of each interrupt vector, interrupt and softirq; how many times the local timer's entry was followed by its exit,
and how long these took together. With the number of a thread, for each of its CPUs: how long it had the CPU, and how long it waited for it
while it could run.
"""
import re
import sys
from collections import Counter

LINE = re.compile(r"\[(\d+)\].*?(\d+)\.(\d{9}): +(?:\w+:)?(\w+): +(.*)")


def events(path):
    for text in open(path):
        found = LINE.search(text)
        if found:
            cpu, seconds, nanos, event, fields = found.groups()
            yield int(cpu), int(seconds) * 10**9 + int(nanos), event, fields


def count(path):
    counts, ticks, open_tick = Counter(), {}, {}
    for cpu, at, event, fields in events(path):
        if event == "softirq_entry":
            counts[cpu, "softirq", re.search(r"action=(\w+)", fields)[1].lower()] += 1
        elif event == "irq_handler_entry":
            counts[cpu, "irq", re.search(r"name=(\S+)", fields)[1]] += 1
        elif event.endswith("_entry") and "vector=" in fields:
            counts[cpu, "irq", event.removesuffix("_entry")] += 1
        if event == "local_timer_entry":
            open_tick[cpu] = at
        elif event == "local_timer_exit" and cpu in open_tick:
            number, total = ticks.get(cpu, (0, 0))
            ticks[cpu] = number + 1, total + at - open_tick.pop(cpu)
    for (cpu, kind, source), number in sorted(counts.items()):
        print(cpu, kind, source, number)
    for cpu, (number, total) in sorted(ticks.items()):
        print(cpu, "ticks", number, total)


def thread(path, pid):
    for cpu in sorted({cpu for cpu, *_ in events(path)}):
        had = waited = last = 0
        has, waits = None, None
        for other, at, event, fields in events(path):
            if other != cpu:
                continue
            last = at
            if event == "sched_switch":
                prev, state = re.search(r"prev_pid=(\d+) .*prev_state=(\S+) ==>", fields).groups()
                come = int(re.search(r"next_pid=(\d+)", fields)[1])
                if int(prev) == pid:
                    had += at - has if has is not None else 0
                    waits = at if state.startswith("R") else waits
                    has = None
                if come == pid:
                    waited += at - waits if waits is not None else 0
                    has, waits = at, None
        # It may still wait when the trace ends.
        waited += last - waits if waits is not None else 0
        if had > 0:
            print(cpu, "thread", pid, had, waited)


count(sys.argv[1])
if len(sys.argv) > 2:
    thread(sys.argv[1], int(sys.argv[2]))
