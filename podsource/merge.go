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

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Sink takes the changes of what is wanted. [Merge] calls it from Run's
// goroutine, one call at a time; it may block, which makes the sources wait.
// The pods are the sink's own copies, and no list is empty.
//
// For one set of one source the calls come in the order RemovePods, AddPods,
// UpdatePods, ReconcilePods (see [Reconciler]), SourceSynced.
type Sink interface {
	// AddPods brings pods whose UID is not known.
	AddPods(pods []*v1.Pod)

	// UpdatePods brings pods that changed, which includes that they got a
	// deletionTimestamp.
	UpdatePods(pods []*v1.Pod)

	// RemovePods brings pods that are not wanted any more, as they were last.
	RemovePods(pods []*v1.Pod)

	// SourceSynced says, once for each source, that its first set has been
	// delivered: what it has not named, it does not want (src-12).
	SourceSynced(source string)
}

// A Reconciler is a [Sink] that wants to hear, too, of pods whose status has
// changed in the source's records: somebody wrote it, this node or another
// (src-7). ReconcilePods is called after UpdatePods, which the same pod may be in.
// Without it these changes are not delivered; a later update brings them along.
type Reconciler interface {
	ReconcilePods(pods []*v1.Pod)
}

// A MergeConfig says what to merge.
type MergeConfig struct {
	// Sources by name: [FileSource], [HTTPSource], [APISource], or any other.
	// Pods of all but APISource are static. Required, at least one.
	Sources map[string]PodSource

	// Sink takes the changes. Required.
	Sink Sink

	// Record takes the events about pods that are not delivered
	// (FailedValidation, src-4), on Run's goroutine. Nil: no events.
	Record func(runtime.Event)

	// Logger; nil discards.
	Logger *slog.Logger

	// Hooks observe.
	Hooks Hooks
}

// Hooks observe a [Merge]; any may be nil. They are called from Run's
// goroutines and should be quick.
type Hooks struct {
	// Set: a set of a source has been delivered.
	Set func(SetInfo)

	// Failed: the Run of a source returned an error.
	Failed func(FailedInfo)
}

// SetInfo tells what a set amounted to.
type SetInfo struct {
	Source   string
	Pods     int // in force
	Rejected int // unusable, or wanted by another source too

	// What the sink was told.
	Removed, Added, Updated int

	// Shown is how many pods have another status than before; only a Sink that
	// is a Reconciler is told.
	Reconciled int
}

// FailedInfo tells of a source that broke down.
type FailedInfo struct {
	Source  string
	Err     error
	RetryIn time.Duration // until it is started again
}

// How long a failed source rests: doubled with each failure, and back to the
// beginning once it has delivered a set (src-28).
const (
	firstRetry = time.Second
	lastRetry  = 20 * time.Second
)

// A Merge turns the sets of several sources into one stream of changes.
type Merge struct {
	cfg  MergeConfig
	ran  runonce.Guard
	sets chan delivery

	// Owned by Run's goroutine.
	sources map[string]*sourceState
	held    map[types.UID]string // which source has a UID in force; one at most
}

// sourceState is what is known of one source.
type sourceState struct {
	wanted  []*v1.Pod // its last SET, as accepted: marked copies
	pods    []*v1.Pod // of those, what is in force, as the sink was told
	refused []refusal // those of the last SET that cannot be told apart
	taken   []refusal // those whose UID another source holds
	synced  bool
}

// delivery is one call of set.
type delivery struct {
	source string
	pods   []*v1.Pod
	done   chan struct{} // closed when the sink has been told
}

// NewMerge checks cfg. It starts nothing.
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
	cfg.Sources = maps.Clone(cfg.Sources)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Merge{cfg: cfg, sets: make(chan delivery), sources: make(map[string]*sourceState), held: make(map[types.UID]string)}
	for name := range cfg.Sources {
		m.sources[name] = new(sourceState)
	}
	return m, nil
}

// Run runs the sources and delivers their changes until ctx ends. It returns
// nil then, after the sources have returned. A second call returns an error.
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

// keepRunning runs one source, again and again while it fails. Its pods stay:
// it may be the API server that is away, not the pods.
func (m *Merge) keepRunning(ctx context.Context, name string, source PodSource) {
	rest := firstRetry
	for {
		delivered, err := m.runSource(ctx, name, source)
		if err == nil || ctx.Err() != nil {
			return
		}
		if delivered {
			rest = firstRetry
		}
		m.cfg.Logger.Warn("pod source failed, its pods stay", "source", name, "err", err, "retryIn", rest)
		if m.cfg.Hooks.Failed != nil {
			m.cfg.Hooks.Failed(FailedInfo{Source: name, Err: err, RetryIn: rest})
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
		rest = min(2*rest, lastRetry)
	}
}

func (m *Merge) runSource(ctx context.Context, name string, source PodSource) (delivered bool, err error) {
	// A source that lets go of set after its Run has ended finds it dead.
	running, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex // guards delivered against such a source
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
		// Taken: it is waited for even if ctx ends, since the pods are read
		// until then and belong to the source afterwards.
		<-d.done
		mu.Lock()
		delivered = true
		mu.Unlock()
	})
	mu.Lock()
	defer mu.Unlock()
	return delivered, err
}

// apply makes set the SET of source, and tells the sink what follows. It is
// the step under Run.
func (m *Merge) apply(source string, set []*v1.Pod) {
	s := m.sources[source]
	pods, refused := accept(source, s.wanted, set, time.Now())
	m.report(s.refused, refused)
	s.wanted, s.refused = pods, refused
	c := m.deliver(source)
	if !s.synced {
		s.synced = true
		m.cfg.Sink.SourceSynced(source)
	}
	m.observe(source, c)
	if len(c.remove) == 0 {
		return
	}
	// A UID that this source let go may be wanted by another one, which was
	// refused it so far.
	for _, name := range slices.Sorted(maps.Keys(m.sources)) {
		if len(m.sources[name].taken) > 0 {
			m.observe(name, m.deliver(name))
		}
	}
}

// deliver tells the sink how the source's wanted pods differ from those in
// force. Of two sources that want one UID, the first has it; the same full name
// in two sources is no conflict, since the workers run one after the other.
func (m *Merge) deliver(source string) change {
	s := m.sources[source]
	pods := make([]*v1.Pod, 0, len(s.wanted))
	var taken []refusal
	for _, pod := range s.wanted {
		if holder, ok := m.held[pod.UID]; ok && holder != source {
			taken = append(taken, refuse(pod, source, "due to its UID being in use by source "+holder))
			continue
		}
		pods = append(pods, pod)
	}
	m.report(s.taken, taken)
	c := diff(s.pods, pods)
	s.pods, s.taken = pods, taken
	for _, pod := range c.remove {
		delete(m.held, pod.UID)
	}
	for _, pod := range c.add {
		m.held[pod.UID] = source
	}
	tell(m.cfg.Sink.RemovePods, c.remove)
	tell(m.cfg.Sink.AddPods, c.add)
	tell(m.cfg.Sink.UpdatePods, c.update)
	if r, ok := m.cfg.Sink.(Reconciler); ok {
		tell(r.ReconcilePods, c.shown)
	}
	return c
}

func (m *Merge) observe(source string, c change) {
	if m.cfg.Hooks.Set == nil {
		return
	}
	s := m.sources[source]
	m.cfg.Hooks.Set(SetInfo{
		Source: source, Pods: len(s.pods), Rejected: len(s.refused) + len(s.taken),
		Removed: len(c.remove), Added: len(c.add), Updated: len(c.update), Reconciled: len(c.shown),
	})
}

// report tells of refusals that are new: a source repeats its set, and nobody
// wants to read of it each time.
func (m *Merge) report(old, refused []refusal) {
	for _, r := range refused {
		if slices.Contains(old, r) {
			continue
		}
		m.cfg.Logger.Warn("pod ignored", "pod", r.ref.Namespace+"/"+r.ref.Name, "uid", r.ref.UID, "err", r.message)
		if m.cfg.Record != nil {
			m.cfg.Record(runtime.Event{
				Object: r.ref, Type: v1.EventTypeWarning, Reason: "FailedValidation", Message: r.message,
			})
		}
	}
}

// tell passes copies of pods to one method of the sink.
func tell(method func([]*v1.Pod), pods []*v1.Pod) {
	if len(pods) > 0 {
		method(copies(pods))
	}
}
