package prober_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// A node is a runtime that the test controls, and a handler with a configurable
// outcome for each container.
type node struct {
	t *testing.T

	mu      sync.Mutex
	pods    map[types.UID]*runtime.PodStatus
	answers map[string]answer // by "container/Kind", else by container
	runs    []string          // "15s web Readiness id"
	began   time.Time
	changes []string // "15s web Readiness id success"
	events  []string // "15s Warning Unhealthy spec.containers{web} text"
	removed []string
	ran     []prober.AttemptInfo
	deferred,
	flying, most int
}

// An answer is the outcome of a run, and its duration.
type answer struct {
	prober.Outcome
	err   error
	takes time.Duration
	calls func()
}

var (
	success = answer{Outcome: prober.Outcome{Result: runtime.ProbeSuccess}}
	failure = answer{Outcome: prober.Outcome{Result: runtime.ProbeFailure, Output: "no"}}
)

func newNode(t *testing.T) *node {
	return &node{t: t, pods: make(map[types.UID]*runtime.PodStatus), answers: make(map[string]answer), began: time.Now()}
}

// at is the elapsed time, for the notes.
func (n *node) at() string { return time.Since(n.began).String() }

func (n *node) status(uid types.UID) (*runtime.PodStatus, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.pods[uid]; p != nil {
		c := *p
		c.Containers = slices.Clone(p.Containers)
		return &c, nil
	}
	return &runtime.PodStatus{UID: uid}, nil
}

// set adds c as the newest instance of its container.
func (n *node) set(uid types.UID, c runtime.ContainerStatus) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pods[uid]
	if p == nil {
		p = &runtime.PodStatus{UID: uid, IPs: []string{"10.0.0.1"}}
		n.pods[uid] = p
	}
	p.Containers = slices.DeleteFunc(p.Containers, func(old runtime.ContainerStatus) bool { return old.ID == c.ID })
	p.Containers = slices.Insert(p.Containers, 0, c)
}

func (n *node) starts(uid types.UID, name, id string) {
	n.set(uid, runtime.ContainerStatus{ID: id, Name: name, State: runtime.ContainerRunning, StartedAt: time.Now()})
}

func (n *node) exits(uid types.UID, name, id string, code int32) {
	n.set(uid, runtime.ContainerStatus{ID: id, Name: name, State: runtime.ContainerExited, ExitCode: code})
}

func (n *node) vanishes(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, uid)
}

func (n *node) say(what string, a answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[what] = a
}

// Probe implements prober.Handler.
func (n *node) Probe(ctx context.Context, t prober.Target) (prober.Outcome, error) {
	n.mu.Lock()
	n.runs = append(n.runs, strings.Join([]string{n.at(), t.Container.Name, t.Kind.String(), t.ContainerID}, " "))
	a, ok := n.answers[t.Container.Name+"/"+t.Kind.String()]
	if !ok {
		a, ok = n.answers[t.Container.Name]
	}
	if !ok {
		a = success
	}
	n.flying++
	n.most = max(n.most, n.flying)
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.flying--
	}()
	if a.calls != nil {
		a.calls()
	}
	if a.takes > 0 {
		select {
		case <-ctx.Done():
			return prober.Outcome{}, ctx.Err()
		case <-time.After(a.takes):
		}
	}
	return a.Outcome, a.err
}

// manager returns a Manager over n without spread and jitter, unless cfg sets them,
// and runs it.
func (n *node) manager(cfg prober.Config) (m *prober.Manager, stop func()) {
	n.t.Helper()
	cfg.Handlers = prober.Handlers{Exec: n, HTTPGet: n, TCPSocket: n, GRPC: n}
	if cfg.Status == nil {
		cfg.Status = n.status
	}
	if cfg.Schedule.Rand == nil {
		cfg.Schedule.Rand = func() float64 { return 0 }
	}
	cfg.Changed = func(c prober.Change) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.changes = append(n.changes, strings.Join([]string{n.at(), c.Container, c.Kind.String(), c.ContainerID, c.Result.String()}, " "))
	}
	cfg.Record = func(e runtime.Event) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.events = append(n.events, strings.Join([]string{n.at(), e.Type, e.Reason, e.Object.FieldPath, e.Message}, " "))
	}
	cfg.Hooks.Ran = func(i prober.AttemptInfo) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ran = append(n.ran, i)
	}
	cfg.Hooks.Deferred = func(*v1.Pod, string, prober.Kind) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.deferred++
	}
	cfg.Hooks.Removed = func(_ *v1.Pod, container string, k prober.Kind) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.removed = append(n.removed, container+" "+k.String())
	}
	m, err := prober.New(cfg)
	require.NoError(n.t, err)
	return m, run(n.t, m)
}

func run(t *testing.T, m *prober.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(t, <-done)
	}
}

// take returns the notes, and resets them. Notes of one instant are in alphabetical
// order.
func (n *node) take(notes *[]string) []string {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := *notes
	*notes = nil
	slices.SortStableFunc(taken, func(a, b string) int {
		at := func(s string) time.Duration { d, _ := time.ParseDuration(strings.Fields(s)[0]); return d }
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b))
	})
	return taken
}

// peak returns the maximum number of concurrent probes.
func (n *node) peak() int {
	synctest.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most
}

// probe returns a probe that the node runs.
func probe(edit func(*v1.Probe)) *v1.Probe {
	p := &v1.Probe{
		ProbeHandler:  v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{}},
		PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
	if edit != nil {
		edit(p)
	}
	return p
}

// container returns one with those probes: "SRL" are startup, readiness and
// liveness.
func container(name, probes string, edit func(*v1.Probe)) v1.Container {
	c := v1.Container{Name: name}
	if strings.Contains(probes, "S") {
		c.StartupProbe = probe(edit)
	}
	if strings.Contains(probes, "R") {
		c.ReadinessProbe = probe(edit)
	}
	if strings.Contains(probes, "L") {
		c.LivenessProbe = probe(edit)
	}
	return c
}

func pod(uid types.UID, containers ...v1.Container) *v1.Pod {
	p := &v1.Pod{Spec: v1.PodSpec{Containers: containers}}
	p.UID, p.Name, p.Namespace = uid, "pod-"+string(uid), "default"
	return p
}

// shown returns the results of a pod's probes as text, in order.
func shown(m *prober.Manager, p *v1.Pod) string {
	synctest.Wait()
	var b []string
	containers := m.Containers(p.UID)
	for _, name := range slices.Sorted(maps.Keys(containers)) {
		b = append(b, fmt.Sprintf("%s startup=%v readiness=%v", name, containers[name].Startup, containers[name].Readiness))
	}
	r := m.Results(p)
	for kind, results := range map[string]map[string]runtime.ProbeResult{"liveness": r.Liveness, "startup": r.Startup} {
		for id, result := range results {
			b = append(b, fmt.Sprintf("%s %s=%v", id, kind, result))
		}
	}
	slices.Sort(b)
	return strings.Join(b, ", ")
}
