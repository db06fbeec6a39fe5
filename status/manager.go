package status

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// Config configures a [Manager].
type Config struct {
	// Sink receives the statuses. Required.
	Sink Sink

	// Parallel limits the concurrent calls of Sink, which are for different pods. Zero
	// means 8. More puts more load on an API server; fewer delay the statuses of all
	// pods when the sink is slow.
	Parallel int

	// RetryMin and RetryMax bound the delay before a failed call is repeated: it
	// starts at RetryMin and doubles with each consecutive failure. Zero means 1s and
	// 1m. Other pods are not delayed.
	RetryMin, RetryMax time.Duration

	// Facts complete the [Facts] of a pod whose other fields are the arguments of
	// Manager.Report: each sets the fields that it provides, and the last one to set a field
	// prevails. They are called in order by each Manager.Report of any pod, possibly
	// concurrently, and must not block.
	Facts []func(*Facts)

	// Restore returns the last status of a pod from before a restart of the process,
	// for example [Snapshot.Status]. It is called once per pod, before its first report
	// and only if pod.Status has no start time, and must not block. If nil, only
	// pod.Status is used.
	Restore func(uid types.UID) (v1.PodStatus, bool)

	// Record receives events about pods, such as HostIPsIPFamilyMismatch. It must not
	// block. If nil, events are discarded.
	Record func(runtime.Event)

	// Logger receives rejected transitions and failed calls of Sink. If nil, logs are
	// discarded.
	Logger *slog.Logger

	Hooks Hooks
}

// A Manager caches the status of each pod of the node and delivers the last one to a
// [Sink].
//
// Report, Finish, Forget and Reconcile do not wait for the sink, which Run calls. For one
// pod, Report, Finish and Forget must not be called concurrently; all other methods are safe
// for concurrent use.
type Manager struct {
	cfg Config
	ran runonce.Guard

	mu sync.Mutex // guards the fields below; not held while the sink or a hook is called

	// pods contains, per UID, the oldest incarnation that is not fully delivered;
	// newer ones follow in entry.next.
	pods map[types.UID]*entry

	queue    queue
	inFlight int // calls of the sink; at most cfg.Parallel

	// changed is closed when drive may have new work; nil while no drive waits.
	changed chan struct{}
}

// An entry is one incarnation of a pod, from its first report to its last delivery. A
// static pod that is removed and added again under its UID has a second incarnation.
type entry struct {
	pod    *v1.Pod      // as last reported; must not be changed
	status v1.PodStatus // replaced, never changed in place: callers read it unlocked

	// version is incremented by each change to deliver; sent is the delivered version.
	// If they are equal, no update is pending.
	version, sent uint64

	since time.Time // of the oldest change that no call contains; zero if none

	published publishedPhase // that the sink has
	ready     bool           // of the status that the sink has

	withheld  bool // the phase is terminal and must not be published yet
	finished  bool // Finish was called: the status is final
	forgotten bool // Forget was called
	deleted   bool // the sink's DeletePod returned nil

	// recorded is the status of the pod's record if it has not been compared with the
	// delivered one yet; else nil. overwritten: they differed. This was corrected
	// corrections times in a row, the last time at corrected.
	recorded    *v1.PodStatus
	overwritten bool
	corrections int
	corrected   time.Time

	mixedIPs bool // the addresses are of different families, and the event was recorded

	rejected error // the transition that the last report did not make; nil if none

	failures int // consecutive failed calls
	lastErr  error
	state    queueState
	retryAt  time.Time // while spot is delayed
	index    int       // while spot is delayed: where in queue.delayed

	next *entry // the following incarnation
}

// New returns a Manager. It starts no goroutines and returns an error if cfg is invalid.
func New(cfg Config) (*Manager, error) {
	if cfg.Sink == nil {
		return nil, errors.New("status: Config.Sink is nil")
	}
	if cfg.Parallel < 0 || cfg.RetryMin < 0 || cfg.RetryMax < 0 {
		return nil, errors.New("status: Config.Parallel, RetryMin or RetryMax is negative")
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 8
	}
	if cfg.RetryMin == 0 {
		cfg.RetryMin = time.Second
	}
	if cfg.RetryMax == 0 {
		cfg.RetryMax = max(time.Minute, cfg.RetryMin)
	}
	if cfg.RetryMin > cfg.RetryMax {
		return nil, errors.New("status: Config.RetryMin is above RetryMax")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Manager{cfg: cfg, pods: make(map[types.UID]*entry)}, nil
}

// Report computes the status of pod from the arguments, Config.Facts and the previous
// status, and queues its delivery if it differs from the previous one. It returns the status,
// which the caller owns. See [Facts] for the arguments.
//
// A terminal phase is delivered only after a report, or Finish, has shown that no container
// of the pod runs. Until then the delivered status has the phase delivered last.
//
// A container that has terminated and may not restart is reported as terminated even if the
// runtime has started it again; this is logged and passed to Hooks.IllegalRestart once, until a
// report does not contain such a container (rule st-50). After Finish, Report only replaces
// the pod object, for example with one that has a deletionTimestamp.
func (m *Manager) Report(pod *v1.Pod, observed *runtime.PodStatus, waiting map[string]v1.ContainerStateWaiting, end runtime.Termination) v1.PodStatus {
	f := Facts{Pod: pod, Observed: observed, Waiting: waiting, Termination: end, Now: time.Now()}
	for _, add := range m.cfg.Facts {
		add(&f)
	}

	m.mu.Lock()
	e := m.openLocked(pod)
	if e.finished {
		m.pushLocked(e)
		status := e.status
		m.mu.Unlock()
		return *status.DeepCopy()
	}
	f.Previous = e.status
	old := *f.previous()
	status, illegal := computeLegal(f)
	isNew := illegal != nil && (e.rejected == nil || e.rejected.Error() != illegal.Error())
	e.rejected = illegal
	changed := m.setLocked(e, status, mustWithhold(&status, observed) || f.MayHaveResources && Terminal(status.Phase), observed, f.Now)
	mixed := mixedFamilies(&status)
	recordMixed := mixed != "" && !e.mixedIPs
	e.mixedIPs = mixed != ""
	m.mu.Unlock()

	if recordMixed && m.cfg.Record != nil {
		m.cfg.Record(runtime.Event{Object: runtime.PodRef(pod), Type: v1.EventTypeWarning, Reason: "HostIPsIPFamilyMismatch", Message: mixed})
	}
	if isNew {
		m.cfg.Logger.Error("Runtime restarted a terminated container; its exit stays in the status", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "err", illegal)
		if m.cfg.Hooks.IllegalRestart != nil {
			m.cfg.Hooks.IllegalRestart(pod, illegal)
		}
	}

	if changed {
		m.cfg.Hooks.changed(pod, &old, &status)
	}
	return *status.DeepCopy()
}

// Finish makes the status of a pod final. It is called when the pod's containers have stopped
// and its resources on the node are released: containers without an observed exit are reported
// with exit code 137, and unless the pod is static or its phase is terminal, it fails. The
// status is delivered, followed by DeletePod if the pod has a deletionTimestamp. A further
// call only replaces the pod object.
func (m *Manager) Finish(pod *v1.Pod) {
	now := time.Now()
	m.mu.Lock()
	e := m.openLocked(pod)
	if e.finished {
		m.pushLocked(e)
		m.mu.Unlock()
		return
	}
	old := e.status
	if e.version == 0 && e.status.Phase == "" { // it was never reported
		old = pod.Status
	}
	status := terminatedStatus(pod, old, now)
	e.finished = true
	changed := m.setLocked(e, status, false, new(runtime.PodStatus), now)
	m.pushLocked(e) // a deletion may be due though the status is unchanged
	m.mu.Unlock()

	if changed {
		m.cfg.Hooks.changed(pod, &old, &status)
	}
}

// Retain removes every pod that keep rejects: no source specifies it, and it has no containers on
// the node. A pending update is delivered first, then DeletePod is called unless it has succeeded
// before. keep must not call the Manager. It implements podworker.Retainer and returns nil.
func (m *Manager) Retain(_ context.Context, keep func(uid types.UID) bool) error {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone []types.UID
	for uid, incarnations := range m.pods {
		if !incarnations.last().forgotten && !keep(uid) {
			gone = append(gone, uid)
		}
	}
	slices.Sort(gone) // updates are delivered in an order that can be replayed
	for _, uid := range gone {
		m.forgetLocked(m.pods[uid].last(), now)
	}
	return nil
}

func (m *Manager) forgetLocked(e *entry, now time.Time) {
	e.forgotten = true
	if e.withheld { // no container runs
		e.withheld = false
		e.markChanged(now)
		e.status = released(e.status, &e.pod.Status, now)
	}
	m.pushLocked(e)
}

// Status returns the status that the last Report or Finish of the pod computed, and whether
// there is one. The caller owns it.
func (m *Manager) Status(uid types.UID) (v1.PodStatus, bool) {
	m.mu.Lock()
	e := m.pods[uid].last()
	if e == nil || e.forgotten || e.version == 0 {
		m.mu.Unlock()
		return v1.PodStatus{}, false
	}
	status := e.status
	m.mu.Unlock()
	return *status.DeepCopy(), true
}

// openLocked returns the newest incarnation of the pod, with pod as its object, and creates
// it if necessary.
func (m *Manager) openLocked(pod *v1.Pod) *entry {
	e := m.pods[pod.UID].last()
	switch {
	case e == nil:
		e = new(entry)
		m.pods[pod.UID] = e
	case e.forgotten: // added again before its deletion was delivered
		e.next = new(entry)
		e = e.next
	}
	if e.version == 0 {
		e.begin(pod, e == m.pods[pod.UID], m.cfg.Restore)
	}
	e.pod = pod
	return e
}

// begin sets the status delivered before the first report: that of the pod object, or for the
// first incarnation the restored one.
func (e *entry) begin(pod *v1.Pod, first bool, restore func(types.UID) (v1.PodStatus, bool)) {
	e.published, e.ready = phaseOf(&pod.Status), IsReady(&pod.Status)
	if !first || restore == nil || pod.Status.StartTime != nil {
		return
	}
	if was, ok := restore(pod.UID); ok {
		e.status, e.published, e.ready = was, phaseOf(&was), IsReady(&was)
	}
}

// last returns the newest incarnation, or nil if e is nil.
func (e *entry) last() *entry {
	for e != nil && e.next != nil {
		e = e.next
	}
	return e
}

// setLocked replaces the status of e, queues its delivery if necessary, and reports whether
// the status changed. withhold reports that its terminal phase must not be delivered yet.
func (m *Manager) setLocked(e *entry, status v1.PodStatus, withhold bool, observed *runtime.PodStatus, now time.Time) bool {
	held := !Terminal(e.published.Phase) && (withhold ||
		observed == nil && e.withheld && Terminal(status.Phase)) // not observed again
	changed := e.version == 0 || !equal(&e.status, &status)
	if changed || e.withheld && !held {
		e.markChanged(now)
	}
	if e.withheld && !held {
		status = released(status, &e.pod.Status, now)
	}
	e.status, e.withheld = status, held
	m.pushLocked(e)
	return changed
}

// bump marks the status of e for delivery.
func (e *entry) markChanged(now time.Time) {
	e.version++
	if e.since.IsZero() {
		e.since = now
	}
}
