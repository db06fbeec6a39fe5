package shutdown_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/shutdown"
)

// A machine has pods, volumes and a sink with configurable delays. Events are
// recorded, with the time since the shutdown began.
type machine struct {
	t        *testing.T
	policy   shutdown.Policy
	all      []*v1.Pod
	takes    map[string]time.Duration // to end; else a second; longer than the grace: not counted
	unmount  map[string]time.Duration // else no time
	sink     time.Duration            // to take the statuses
	triggers []shutdown.Trigger       // in addition to manual
	hooks    shutdown.Hooks
	file     string

	manual shutdown.Manual
	*shutdown.Manager

	mu    sync.Mutex // guards the fields below
	begun time.Time
	log   []string
	ended map[types.UID]bool
}

// run starts the manager; it runs until the test ends.
func (m *machine) run() {
	m.t.Helper()
	var err error
	m.begun, m.ended = time.Now(), map[types.UID]bool{}
	m.Manager, err = shutdown.New(shutdown.Config{
		Policy: m.policy, Triggers: append(m.triggers, &m.manual), Pods: m, Statuses: m,
		State:  &shutdown.State{Changed: func() { m.say("node: %v", m.Err()) }},
		Record: func(e runtime.Event) { m.say("event %s %s %s: %s", e.Object.Name, e.Type, e.Reason, e.Message) },
		Node:   v1.ObjectReference{Kind: "Node", Name: "node"}, Path: m.file, Hooks: m.hooks,
	})
	require.NoError(m.t, err)
	ctx, stop := context.WithCancel(m.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(m.t, m.Run(ctx)) })
	m.t.Cleanup(func() { stop(); wg.Wait() })
	synctest.Wait()
}

// stop begins a shutdown, and waits until the machine may stop.
func (m *machine) stop() (took time.Duration) {
	m.begin()
	<-m.manual.Stop(time.Time{})
	return time.Since(m.begun)
}

func (m *machine) begin() {
	m.begun = time.Now()
	m.manual.Stop(time.Time{})
	synctest.Wait()
}

func (m *machine) say(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, time.Since(m.begun).String()+" "+fmt.Sprintf(format, args...))
}

// lines returns the recorded lines that begin, after the time, with one of the words; all lines if there are none.
func (m *machine) lines(words ...string) (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.log {
		if len(words) == 0 || slices.Contains(words, strings.Fields(l)[1]) {
			found = append(found, l)
		}
	}
	return found
}

func (m *machine) Running() (left []*v1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, pod := range m.all {
		if !m.ended[pod.UID] {
			left = append(left, pod)
		}
	}
	return left
}

func (m *machine) add(pod *v1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, pod)
}

func (m *machine) Kill(ctx context.Context, k shutdown.Kill) error {
	m.say("kill %s within %d", k.Pod.Name, k.GracePeriodSeconds)
	takes, ok := m.takes[k.Pod.Name]
	if !ok {
		takes = time.Second
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		m.say("gave up %s", k.Pod.Name)
		return ctx.Err()
	}
	m.mu.Lock()
	m.ended[k.Pod.UID] = true
	m.mu.Unlock()
	m.say("ended %s", k.Pod.Name)
	return nil
}

func (m *machine) AwaitCleaned(ctx context.Context, pod *v1.Pod) error {
	select {
	case <-time.After(m.unmount[pod.Name]):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *machine) Report(_ context.Context, pods []*v1.Pod) error {
	names := map[string]bool{}
	for _, pod := range pods {
		names[pod.Name] = m.Unready(pod.UID)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		m.say("report %s unready %v", name, names[name])
	}
	return nil
}

func (m *machine) Flush(ctx context.Context) error {
	select {
	case <-time.After(m.sink):
		m.say("recorded")
		return nil
	case <-ctx.Done():
		m.say("not recorded")
		return ctx.Err()
	}
}

func stateFile(t *testing.T) string { return filepath.Join(t.TempDir(), shutdown.StateFile) }
