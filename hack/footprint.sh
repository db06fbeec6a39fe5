#!/usr/bin/env bash
# What the reference agent costs a node: see --help.
set -euo pipefail

usage() {
	cat <<'END'
footprint.sh prints how much memory the reference agent takes with 0, 50 and 110
pods, and how much of a CPU while nothing happens.

  hack/footprint.sh                       without pods on plain processes, with pods
                                          on a CRI runtime that pretends (fakecri)
  hack/footprint.sh --pid $(pidof kubelet) --window 60
                                          the same figures of any process, such as a kubelet
  hack/footprint.sh --runtime unix:///run/containerd/containerd.sock --image registry.k8s.io/pause:3.10
                                          pods on a real runtime; needs root
  hack/footprint.sh --compare             the complete node and a real kubelet, one after the
                                          other, on a private containerd; needs root, and has
                                          flags of its own: --compare --help

Flags:
  --pods "0 50 110"   how many pods, one row each
  --runtime NAME      process, fakecri, or unix://SOCKET; without it, process for no pods
                      and fakecri for others
  --image IMAGE       of the pods' one container (on a real runtime)
  --window SECONDS    how long to watch the CPU (60)
  --settle SECONDS    how long to wait before, once all pods run (30)
  --pid PID           watch this process as well, or only it with --pods ""; may be repeated
  --probes            a readiness and a liveness probe in each container, which execute a
                      command each second
  --short             no more than whether all of this works: 0 and 5 pods, windows of 5 s
  --help              this

RSS is what the process has in memory; PSS counts what it shares with others, such as
the program's own pages, by their number; anon is what no file is behind, most of it the
heap. CPU is the time used in the window, as a percentage of one CPU.

Needs Linux, Go, curl. Nothing is left behind.
END
}

die() { echo "footprint: $*" >&2; exit 1; }
say() { echo "$*" >&2; }

if [ "${1:-}" = --compare ]; then
	shift
	cd "$(dirname "${BASH_SOURCE[0]}")/.."
	exec go run ./test footprint "$@"
fi

pods="0 50 110" runtime="" image=registry.k8s.io/pause:3.10 window=60 settle=30 pids=() probes=""
need() { [ $# -ge 2 ] || die "$1 needs a value; see --help"; }
while [ $# -gt 0 ]; do
	case $1 in
	--pods) need "$@"; pods=$2; shift ;;
	--runtime) need "$@"; runtime=$2; shift ;;
	--image) need "$@"; image=$2; shift ;;
	--window) need "$@"; window=$2; shift ;;
	--settle) need "$@"; settle=$2; shift ;;
	--pid) need "$@"; pids+=("$2"); shift ;;
	--probes) probes=', probes each second' ;;
	--short) pods="0 5" window=5 settle=2 ;;
	--help | -h) usage; exit 0 ;;
	*) die "unknown argument $1; see --help" ;;
	esac
	shift
done
[[ $window =~ ^[1-9][0-9]*$ && $settle =~ ^[0-9]+$ ]] || die "--window and --settle are whole seconds"
[[ $pods =~ ^[0-9\ ]*$ ]] || die "--pods=\"$pods\": want numbers, such as \"0 50 110\""
case $runtime in "" | process | fakecri | unix://*) ;; *) die "--runtime=$runtime: want process, fakecri or unix://SOCKET" ;; esac
[ -r /proc/self/smaps_rollup ] || die "this machine has no /proc/PID/smaps_rollup: Linux 4.14 or later is needed"
for pid in "${pids[@]}"; do
	[ -r "/proc/$pid/smaps_rollup" ] && cat "/proc/$pid/smaps_rollup" >/dev/null 2>&1 ||
		die "process $pid is not there, or not yours to look at: give the PID of one that runs, or become root"
done
command -v curl >/dev/null || die "curl is missing"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
agent="" fake=""
# stop ends a process that this script has started, and waits for it.
stop() {
	[ -n "$1" ] || return 0
	kill -INT "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}
cleanup() {
	stop "$agent"
	stop "$fake"
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# memory NAME PID prints a figure of smaps_rollup, in KiB.
memory() { awk -v name="$1:" '$1 == name {print $2}' "/proc/$2/smaps_rollup"; }
# ticks PID prints the CPU time that a process has used.
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{print $12 + $13}'; }
hz=$(getconf CLK_TCK)

header() { printf '%-48s %10s %10s %10s %8s %10s\n' what RSS PSS anon threads CPU; }
# row WHAT PID watches a process and prints what it takes.
row() {
	local before after
	before=$(ticks "$2")
	sleep "$window"
	[ -d "/proc/$2" ] || die "$1 (process $2) has ended while it was watched"
	after=$(ticks "$2")
	awk -v what="$1" -v rss="$(memory Rss "$2")" -v pss="$(memory Pss "$2")" -v anon="$(memory Anonymous "$2")" \
		-v threads="$(ls "/proc/$2/task" | wc -l)" -v used=$((after - before)) -v hz="$hz" -v window="$window" 'BEGIN {
		printf "%-48s %6.1f MiB %6.1f MiB %6.1f MiB %8d %8.2f %%\n", what, rss/1024, pss/1024, anon/1024, threads, used/hz/window*100 }'
}

# patiently WHAT SECONDS COMMAND... waits until the command succeeds.
patiently() {
	local what=$1 until=$((SECONDS + $2))
	shift 2
	until "$@"; do
		[ -z "$agent" ] || kill -0 "$agent" 2>/dev/null || { cat "$work/agent.log" >&2; die "the agent has ended"; }
		[ $SECONDS -lt $until ] || { tail -20 "$work/agent.log" >&2; die "not in time: $what"; }
		sleep 0.5
	done
}
running() {
	local n
	n=$(curl -sf --max-time 20 "$url/pods" | grep -c '"phase": "Running"' || true)
	[ "$n" -ge "$1" ]
}
has_address() { url=$(grep -oE 'http://[0-9.:]+/ shows' "$work/agent.log" | head -1 | sed 's|/ shows||'); [ -n "$url" ]; }

# with N RUNTIME starts an agent with that many pods, and watches it.
with() {
	local n=$1 on=$2 dir=$work/$1 i socket probe=""
	[ -z "$probes" ] || probe=', readinessProbe: {periodSeconds: 1, exec: {command: ["true"]}}, livenessProbe: {periodSeconds: 1, exec: {command: ["true"]}}'
	mkdir -p "$dir/manifests"
	socket=$on
	if [ "$on" = fakecri ]; then
		socket=unix://$dir/cri.sock
		"$work/fakecri" --listen "$socket" --endpoints=false >"$work/fakecri.log" 2>&1 &
		fake=$!
		patiently "fakecri serves" 30 test -S "$dir/cri.sock"
	fi
	for ((i = 0; i < n; i++)); do
		cat >"$dir/manifests/pod-$i.yaml" <<END
apiVersion: v1
kind: Pod
metadata: {name: pod-$i}
spec:
  terminationGracePeriodSeconds: 2
  containers: [{name: main, image: "$image"$([ "$on" != process ] || echo ", command: [sleep, infinity]")$probe}]
END
	done
	say "$n pods on $on: starting"
	"$work/agent" --runtime="$socket" --manifests="$dir/manifests" --root="$dir/root" --listen=127.0.0.1:0 --stop-pods >"$work/agent.log" 2>&1 &
	agent=$!
	patiently "the agent serves" 60 has_address
	patiently "$n pods run" 300 running "$n"
	say "$n pods on $on: all run; settling for $settle s, then watching for $window s"
	sleep "$settle"
	row "agent, $n pods, $on$probes" "$agent"
	stop "$agent"
	stop "$fake"
	agent="" fake=""
}

if [ -n "${pods// /}" ]; then
	say "building the agent"
	go build -o "$work/agent" ./examples/agent
	go build -o "$work/fakecri" ./examples/fakecri
fi
header
for pid in "${pids[@]}"; do
	row "$(cat "/proc/$pid/comm") ($pid)" "$pid"
done
for n in $pods; do
	on=$runtime
	[ -n "$on" ] || { [ "$n" -eq 0 ] && on=process || on=fakecri; }
	with "$n" "$on"
done
