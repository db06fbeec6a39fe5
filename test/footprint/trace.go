//go:build unix

package footprint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// An interval is a part of a start.
type interval struct{ begin, end time.Time }

func (i interval) length() time.Duration { return i.end.Sub(i.begin) }

// A tracer collects the parts of the starts of pods from the hooks of the node.
type tracer struct {
	mu    sync.Mutex
	calls map[string][]interval               // of the CRI, by operation
	parts map[types.UID]map[string][]interval // of a pod, by name
	first map[types.UID]podworker.SyncInfo    // the first sync of a pod
	names map[types.UID]string                // of pods, without the suffix of the node
}

func newTracer() *tracer {
	return &tracer{
		calls: map[string][]interval{}, parts: map[types.UID]map[string][]interval{},
		first: map[types.UID]podworker.SyncInfo{}, names: map[types.UID]string{},
	}
}

func (t *tracer) called(i cri.CallInfo) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[i.Operation] = append(t.calls[i.Operation], interval{now.Add(-i.Duration), now})
}

func (t *tracer) addLocked(pod types.UID, part string, i interval) {
	if t.parts[pod] == nil {
		t.parts[pod] = map[string][]interval{}
	}
	t.parts[pod][part] = append(t.parts[pod][part], i)
}

// traced adds the parts of a SyncPod.
func (t *tracer) traced(trace cri.Trace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range trace.Spans {
		t.addLocked(trace.Pod.UID, stepParts[pipeline.SyncContainers]+s.Step, interval{s.Begin, s.End})
	}
}

// stepParts are the prefixes of the parts of steps.
var stepParts = map[string]string{pipeline.SyncContainers: "SyncPod: "}

func (t *tracer) stepped(i pipeline.StepInfo) {
	if i.Step == pipeline.SyncContainers {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(i.UID, i.Step, interval{i.Begin, i.End})
}

func (t *tracer) synced(i podworker.SyncInfo) {
	if i.Pod == nil || !i.First {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.first[i.UID], t.names[i.UID] = i, strings.TrimSuffix(i.Pod.Name, "-"+nodeName)
}

// adjust returns the functions that make a node call the tracer.
func (t *tracer) adjust() []compose.Adjustment {
	return []compose.Adjustment{
		compose.Adjust(func(c *cri.Config) { c.Hooks = cri.Hooks{Called: t.called, Traced: t.traced} }),
		compose.Adjust(func(c *pipeline.Config) { c.Hooks.Stepped = t.stepped }),
		compose.Adjust(func(c *podworker.Config) { c.Hooks.Synced = t.synced }),
	}
}

// traceStart starts n pods with a node in this process, and writes where the time until the start
// of the last container went.
func traceStart(ctx context.Context, t testing.TB, o options, n int, out io.Writer) error {
	w := newWorld(t, false)
	if err := w.putPods(ctx, n); err != nil {
		return err
	}
	ports, err := labenv.FreePorts(3)
	if err != nil {
		return err
	}
	data, err := w.config(ports)
	if err != nil {
		return err
	}
	file := w.Path("config.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	cfg := kubelet.Config{NodeName: nodeName, RootDir: w.Path("root"), Host: kubelet.Host{Manage: true}}
	if cfg.Configuration, _, err = config.Read(file, ""); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(cmp.Or(o.logs, w.Dir), "trace.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	traced := newTracer()
	cfg.Adjust = append(cfg.Adjust, traced.adjust()...)

	before, err := w.machine()
	if err != nil {
		return err
	}
	stopProfiles, err := startProfiles(o.profiles)
	if err != nil {
		return err
	}
	began := time.Now()
	k, err := kubelet.Open(ctx, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(40) // less memory for pods, more CPU time while they start (docs/benchmarks.md)
	}
	go func() { ran <- k.Run(running) }()
	last, err := awaitStarts(ctx, w.started, n)
	after, machineErr := w.machine()
	machineErr = errors.Join(machineErr, stopProfiles())
	if err == nil {
		err = pause(ctx, time.Second) // the last SyncPod returns
	}
	idle := ""
	if err == nil && o.profiles != "" {
		idle, err = profileIdle(ctx, o)
	}
	stop()
	if err := errors.Join(err, machineErr, <-ran); err != nil {
		return err
	}
	if n == 0 {
		_, err := io.WriteString(out, idle)
		return err
	}
	starts, err := startTimes(w.started)
	if err != nil {
		return err
	}
	traced.mu.Lock()
	defer traced.mu.Unlock()
	_, err = io.WriteString(out, traced.report(began, last, starts, after.minus(before))+idle)
	return err
}

// startTimes returns when the container of each pod started.
func startTimes(dir string) (map[string]time.Time, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	starts := map[string]time.Time{}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			return nil, err
		}
		starts[f.Name()] = info.ModTime()
	}
	return starts, nil
}

// startCalls are the calls that start pods.
var startCalls = []string{"run_podsandbox", "create_container", "start_container"}

// report returns tables in Markdown.
func (t *tracer) report(began, last time.Time, starts map[string]time.Time, used machine) string {
	var b strings.Builder
	all := interval{began, last}
	fmt.Fprintf(&b, "%d pods, %.2f s from the start of the program to that of the last container.\n\n", len(starts), all.length().Seconds())

	b.WriteString("| part of the start of a pod | mean | median | maximum | share |\n|---|---|---|---|---|\n")
	for _, p := range t.podParts(began, starts) {
		fmt.Fprintf(&b, "| %s | %.1f ms | %.1f ms | %.1f ms | %.1f %% |\n", p.name, ms(p.mean), ms(p.median), ms(p.longest), 100*p.share)
	}

	b.WriteString("\n| calls in progress that start pods | time | share |\n|---|---|---|\n")
	var calls []interval
	for _, operation := range startCalls {
		calls = append(calls, t.calls[operation]...)
	}
	for _, l := range levels(calls, all) {
		fmt.Fprintf(&b, "| %s | %.0f ms | %.1f %% |\n", l.name, ms(l.time), 100*l.time.Seconds()/all.length().Seconds())
	}

	b.WriteString("\n| CRI call | number | mean | sum |\n|---|---|---|---|\n")
	for _, s := range t.callSums(last) {
		fmt.Fprintf(&b, "| %s | %d | %.1f ms | %.2f s |\n", s.name, s.n, ms(s.sum)/float64(s.n), s.sum.Seconds())
	}

	fmt.Fprintf(&b, "\nCPU time: node %.2f s, containerd %.2f s, other processes (shims, runc, network plugins) %.2f s; idle %.2f s. ",
		used.self.Seconds(), used.daemon.Seconds(), (used.busy - used.self - used.daemon).Seconds(), used.idle.Seconds())
	fmt.Fprintf(&b, "Flushes of disks by all processes: %d, which took %.2f s.\n", used.flushes, used.flushing.Seconds())
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A part is a part of the starts of all pods.
type part struct {
	name                  string
	mean, median, longest time.Duration
	share                 float64 // of the time from the start of the program to that of the container
	at                    time.Duration
}

const (
	partBefore = "before the first sync"
	partRest   = "unattributed"
)

// podParts returns the parts in the order in which they occur. What happens after the start of the
// container is left out.
func (t *tracer) podParts(began time.Time, starts map[string]time.Time) []part {
	lengths, at := map[string][]time.Duration{}, map[string]time.Duration{}
	var total time.Duration
	pods := 0
	for uid, first := range t.first {
		started, ok := starts[t.names[uid]]
		if !ok {
			continue
		}
		pods++
		total += started.Sub(began)
		rest := started.Sub(began)
		add := func(name string, all []interval) {
			var sum time.Duration
			for _, i := range all {
				if end := earlier(i.end, started); end.After(i.begin) {
					sum += end.Sub(i.begin)
					at[name] += i.begin.Sub(began)
				}
			}
			lengths[name] = append(lengths[name], sum)
			rest -= sum
		}
		var begun time.Time
		for name, all := range t.parts[uid] {
			add(name, all)
			for _, i := range all {
				if begun.IsZero() || i.begin.Before(begun) {
					begun = i.begin
				}
			}
		}
		if !begun.IsZero() {
			begun = begun.Add(-first.Observed)
			add(partBefore, []interval{{began, begun}})
			add("wait for a status", []interval{{begun, begun.Add(first.Observed)}})
		}
		lengths[partRest] = append(lengths[partRest], max(rest, 0))
		at[partRest] += 1 << 40
	}
	var parts []part
	for name, all := range lengths {
		slices.Sort(all)
		p := part{name: name, median: all[len(all)/2], longest: all[len(all)-1], at: at[name] / time.Duration(len(all))}
		var sum time.Duration
		for _, d := range all {
			sum += d
		}
		p.mean, p.share = sum/time.Duration(pods), sum.Seconds()/total.Seconds()
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.name, b.name)) })
	return parts
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// A level is for how long a number of intervals overlapped.
type level struct {
	name string
	time time.Duration
}

// levels returns how long how many of the intervals overlapped within all.
func levels(intervals []interval, all interval) []level {
	type change struct {
		at time.Time
		by int
	}
	var changes []change
	for _, i := range intervals {
		if i.end.After(all.begin) && i.begin.Before(all.end) {
			changes = append(changes, change{i.begin, 1}, change{i.end, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return a.at.Compare(b.at) })
	bounds := []int{0, 1, 2, 4, 8, 16, 32}
	out := make([]level, len(bounds))
	for i, low := range bounds {
		out[i].name = fmt.Sprint(low)
		switch {
		case i == len(bounds)-1:
			out[i].name = fmt.Sprintf("%d and more", low)
		case bounds[i+1] > low+1:
			out[i].name = fmt.Sprintf("%d to %d", low, bounds[i+1]-1)
		}
	}
	at, n := all.begin, 0
	add := func(until time.Time) {
		if until = earlier(until, all.end); !until.After(at) {
			return
		}
		i, _ := slices.BinarySearch(bounds, n+1)
		out[i-1].time += until.Sub(at)
		at = until
	}
	for _, c := range changes {
		add(c.at)
		n += c.by
	}
	add(all.end)
	return slices.DeleteFunc(out, func(l level) bool { return l.time == 0 })
}

// A callSum is the calls of an operation.
type callSum struct {
	name string
	n    int
	sum  time.Duration
}

// callSums returns the calls that began before last, those that took longest first.
func (t *tracer) callSums(last time.Time) []callSum {
	var sums []callSum
	for operation, calls := range t.calls {
		s := callSum{name: operation}
		for _, c := range calls {
			if c.begin.Before(last) {
				s.n++
				s.sum += c.length()
			}
		}
		if s.n > 0 && operation != "get_container_events" {
			sums = append(sums, s)
		}
	}
	slices.SortFunc(sums, func(a, b callSum) int { return cmp.Or(cmp.Compare(b.sum, a.sum), cmp.Compare(a.name, b.name)) })
	return sums
}
