package podsource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Sink receives the changes of the desired pods. [Merge] calls it from Run's goroutine, one call at
// a time; it may block, which blocks the sources. It must not change the pods, which are shared with
// Merge and the source. No list is empty.
//
// For one set of one source the calls come in the order RemovePods, AddPods,
// UpdatePods, ReconcilePods, SourceSynced.
type Sink interface {
	// AddPods adds pods with new UIDs.
	AddPods(pods []*v1.Pod)

	// UpdatePods replaces pods that changed, which includes a new deletionTimestamp.
	UpdatePods(pods []*v1.Pod)

	// ReconcilePods passes pods whose status has changed in the source, where this node or
	// another writer has written it (rule src-7). UpdatePods may have been called with the
	// same pod just before.
	ReconcilePods(pods []*v1.Pod)

	// RemovePods removes pods that are no longer desired, and passes their last version.
	RemovePods(pods []*v1.Pod)

	// SourceSynced is called once for each source, after its first set has been delivered.
	SourceSynced(source string)
}

// MergeConfig configures a [Merge].
type MergeConfig struct {
	// Sources by name: [FileSource], [HTTPSource], [APISource], or any other.
	// Required, at least one.
	Sources map[string]PodSource

	// Static are the names of the sources whose pods are static: they have no final phase, are
	// not evicted, and have mirror pods if they come from package manifest. Each must be in
	// Sources. If nil, no pod is static.
	Static []string

	// Sink receives the changes. Required.
	Sink Sink

	// Record receives the events about rejected pods (FailedValidation) and about changes
	// without effect (ChangeWithoutEffect), on Run's goroutine. If nil, events are discarded.
	Record func(runtime.Event)

	// Logger receives failures of sources and rejected pods. If nil, logs are discarded.
	Logger *slog.Logger

	Hooks MergeHooks
}

// Hooks observe a [Merge]. Any may be nil. They are called from Run's goroutines and must not block.
type MergeHooks struct {
	// Set is called when a set of a source has been delivered.
	Set func(SetInfo)

	// Failed is called when the Run of a source has returned an error. It is called again after
	// retryIn.
	Failed func(source string, err error, retryIn time.Duration)
}

// Join returns MergeHooks that call the functions of h and then those of others, in order.
func (h MergeHooks) Join(others ...MergeHooks) MergeHooks {
	for _, o := range others {
		compose.Add(&h.Set, o.Set)
		compose.Add3(&h.Failed, o.Failed)
	}
	return h
}

// SetInfo is the result of a delivered set.
type SetInfo struct {
	Source   string
	Pods     int // in force
	Rejected int // invalid, or with a UID that is in use by another source

	// Number of pods passed to the Sink.
	Removed, Added, Updated int

	// Reconciled is the number of pods with a changed status.
	Reconciled int
}

// The delay before a failed source is started again: doubled with each failure, and reset when it
// has delivered a set.
const (
	firstRetry = time.Second
	lastRetry  = 20 * time.Second
)

// A Merge merges the sets of several sources into one sequence of changes.
type Merge struct {
	cfg  MergeConfig
	ran  runonce.Guard
	sets chan delivery

	// Owned by Run's goroutine.
	sources map[string]*sourceState
	owners  map[types.UID]string // the source whose pod with a UID is in effect
}

// sourceState is the state of one source.
type sourceState struct {
	desired   []*v1.Pod              // its last set, as accept returned it
	accepted  map[types.UID]accepted // the pods of desired
	pods      []*v1.Pod              // the desired pods that the sink has received
	rejected  []rejection            // the invalid pods of the last set
	conflicts []rejection            // pods whose UID another source has
	synced    bool
}

// delivery is one call of set.
type delivery struct {
	source string
	pods   []*v1.Pod
	done   chan struct{} // closed when the sink has received the changes
}

// NewMerge returns a Merge. It starts no goroutines and returns an error if cfg is invalid.
func NewMerge(cfg MergeConfig) (*Merge, error) {
	if len(cfg.Sources) == 0 {
		return nil, errors.New("podsource: MergeConfig.Sources is empty")
	}
	if cfg.Sink == nil {
		return nil, errors.New("podsource: MergeConfig.Sink is nil")
	}
	for name, source := range cfg.Sources {
		if name == "" {
			return nil, errors.New("podsource: MergeConfig.Sources has a source without a name")
		}
		if source == nil {
			return nil, fmt.Errorf("podsource: MergeConfig.Sources[%q] is nil", name)
		}
	}
	for _, name := range cfg.Static {
		if cfg.Sources[name] == nil {
			return nil, fmt.Errorf("podsource: MergeConfig.Static: %q is not in Sources", name)
		}
	}
	cfg.Sources, cfg.Static = maps.Clone(cfg.Sources), slices.Clone(cfg.Static)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Merge{cfg: cfg, sets: make(chan delivery), sources: make(map[string]*sourceState), owners: make(map[types.UID]string)}
	for name := range cfg.Sources {
		m.sources[name] = new(sourceState)
	}
	return m, nil
}

// Run runs the sources and delivers their changes until ctx is done; it then returns nil after the
// sources have returned. A second call returns an error.
func (m *Merge) Run(ctx context.Context) error {
	if err := m.ran.Enter("podsource: Merge"); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for name, source := range m.cfg.Sources {
		wg.Go(func() { m.keepRunning(ctx, name, source) })
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-m.sets:
			m.apply(d.source, d.pods)
			close(d.done)
		}
	}
}

// keepRunning runs one source and restarts it when it fails. Its pods stay meanwhile: a failure of
// the API server must not stop them.
func (m *Merge) keepRunning(ctx context.Context, name string, source PodSource) {
	delay := firstRetry
	for {
		delivered, err := m.runSource(ctx, name, source)
		if err == nil || ctx.Err() != nil {
			return
		}
		if delivered {
			delay = firstRetry
		}
		m.cfg.Logger.Warn("Pod source failed; its pods stay", "source", name, "err", err, "retryIn", delay)
		if m.cfg.Hooks.Failed != nil {
			m.cfg.Hooks.Failed(name, err, delay)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
		delay = min(2*delay, lastRetry)
	}
}

func (m *Merge) runSource(ctx context.Context, name string, source PodSource) (delivered bool, err error) {
	// Calls of set after Run has returned have no effect.
	running, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex // guards delivered
	err = source.Run(running, func(pods []*v1.Pod) {
		d := delivery{source: name, pods: pods, done: make(chan struct{})}
		if running.Err() != nil {
			return
		}
		select {
		case <-running.Done():
			return
		case m.sets <- d:
		}
		// Waits also if ctx is done: the list is read until then, and the source may
		// reuse it afterwards.
		<-d.done
		mu.Lock()
		delivered = true
		mu.Unlock()
	})
	mu.Lock()
	defer mu.Unlock()
	return delivered, err
}

// apply replaces the set of source and calls the sink with the changes.
func (m *Merge) apply(source string, set []*v1.Pod) {
	s := m.sources[source]
	pods, accepted, rejected := accept(origin{source, slices.Contains(m.cfg.Static, source)}, s.accepted, set, time.Now())
	m.report(s.rejected, rejected)
	s.desired, s.accepted, s.rejected = pods, accepted, rejected
	c := m.deliver(source)
	if !s.synced {
		s.synced = true
		m.cfg.Sink.SourceSynced(source)
	}
	m.observe(source, c)
	if len(c.remove) == 0 {
		return
	}
	// Another source may specify a UID that this one has removed.
	for _, name := range slices.Sorted(maps.Keys(m.sources)) {
		if len(m.sources[name].conflicts) > 0 {
			m.observe(name, m.deliver(name))
		}
	}
}

// deliver calls the sink with the changes of the source's pods. If two sources specify the same UID,
// the first keeps it; the same full name in two sources is no conflict, since pod workers run them
// one after the other.
func (m *Merge) deliver(source string) change {
	s := m.sources[source]
	pods := make([]*v1.Pod, 0, len(s.desired))
	var conflicts []rejection
	for _, pod := range s.desired {
		if owner, ok := m.owners[pod.UID]; ok && owner != source {
			conflicts = append(conflicts, newRejection(pod, source, "due to its UID being in use by source "+owner))
			continue
		}
		pods = append(pods, pod)
	}
	m.report(s.conflicts, conflicts)
	c := diff(s.pods, pods)
	m.reportWithoutEffect(s.pods, c.update)
	s.pods, s.conflicts = pods, conflicts
	for _, pod := range c.remove {
		delete(m.owners, pod.UID)
	}
	for _, pod := range c.add {
		m.owners[pod.UID] = source
	}
	pass(m.cfg.Sink.RemovePods, c.remove)
	pass(m.cfg.Sink.AddPods, c.add)
	pass(m.cfg.Sink.UpdatePods, c.update)
	pass(m.cfg.Sink.ReconcilePods, c.statusChanged)
	return c
}

func (m *Merge) observe(source string, c change) {
	if m.cfg.Hooks.Set == nil {
		return
	}
	s := m.sources[source]
	m.cfg.Hooks.Set(SetInfo{
		Source: source, Pods: len(s.pods), Rejected: len(s.rejected) + len(s.conflicts),
		Removed: len(c.remove), Added: len(c.add), Updated: len(c.update), Reconciled: len(c.statusChanged),
	})
}

// report logs and records new rejections; a source repeats its set, and the old ones with it.
func (m *Merge) report(old, rejected []rejection) {
	for _, r := range rejected {
		if slices.Contains(old, r) {
			continue
		}
		m.cfg.Logger.Warn("Pod rejected; it is not run", "pod", r.ref.Namespace+"/"+r.ref.Name, "podUID", r.ref.UID, "err", r.message)
		if m.cfg.Record != nil {
			m.cfg.Record(runtime.Event{
				Object: r.ref, Type: v1.EventTypeWarning, Reason: "FailedValidation", Message: r.message,
			})
		}
	}
}

// pass passes pods to a method of the sink, unless there are none.
func pass(method func([]*v1.Pod), pods []*v1.Pod) {
	if len(pods) > 0 {
		method(pods)
	}
}
