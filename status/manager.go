package status

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// Config is what a [Manager] works with.
type Config struct {
	// Sink gets the statuses. Required.
	Sink StatusSink

	// Parallel is how many calls of the sink may be under way at once, for
	// different pods. 0 means 8. More puts more load on an API server, fewer
	// delay the statuses of all pods when the sink is slow.
	Parallel int

	// RetryMin and RetryMax bound the wait before a pod's failed call is made
	// again: it starts at RetryMin and doubles with each failure in a row. 0
	// means 1s and 1m. Other pods are not held up.
	RetryMin, RetryMax time.Duration

	// HostIPs returns the addresses of the node, the primary one first; see
	// Facts.HostIPs. It is called with each report and must be quick. Nil:
	// the addresses are not known.
	HostIPs func() []string

	// Probes returns what the probes of a pod said last; see Facts.Probes.
	// It is called with each report and must be quick. Nil: no prober is
	// wired, every probe counts as passed.
	Probes func(uid types.UID) map[string]Probed

	// RecursiveReadOnly reports whether the pod's runtime handler can mount
	// recursively read-only; see there in Facts. It is called with each report and
	// must be quick. Nil: it is not known, and less is not taken for more.
	RecursiveReadOnly func(pod *v1.Pod) bool

	// Health returns how the devices of a pod's containers are; see Facts.Health. It
	// is called with each report and must be quick. Nil: nobody watches over them.
	Health func(uid types.UID) map[string][]v1.ResourceStatus

	// Resize returns how a resize of a pod stands; see Facts.Resize. It is
	// called with each report and must be quick. Nil: nobody resizes.
	Resize func(uid types.UID) Resize

	// Unready returns why a pod is to get no traffic; see Facts.Unready. It is called
	// with each report and must be quick. Nil: nothing is held against any.
	Unready func(uid types.UID) Unready

	// Earlier returns what an earlier agent said last of a pod whose source does
	// not give it back: Snapshot.Status. It is called once for a pod, before its
	// first report, and must be quick. Nil: what the source gives back counts.
	Earlier func(uid types.UID) (v1.PodStatus, bool)

	// Record takes events about pods, such as that a pod's addresses and the node's
	// are of different families (st-44). It must be quick. Nil: none.
	Record func(runtime.Event)

	// Logger gets refused statuses and failed calls. Nil discards.
	Logger *slog.Logger

	Hooks Hooks
}

// A Manager keeps the status of each pod of the node and sees that the last
// one reaches a [StatusSink].
//
// Report, Finish and Forget only take note and never wait for the sink; [Run]
// does the talking. For one pod they are called one after the other, in the
// order of its life; for different pods at will.
type Manager struct {
	cfg Config
	ran runonce.Guard

	mu sync.Mutex // guards the fields below; nothing that blocks is called under it

	// pods holds, per UID, the oldest incarnation that is not done with; a
	// newer one hangs behind it (entry.next) until it is.
	pods map[types.UID]*entry

	queue    queue
	inFlight int // calls of the sink under way; at most cfg.Parallel

	// changed is closed when there may be something new to do for those in
	// drive; nil while nobody waits.
	changed chan struct{}
}

// An entry is what the manager knows of one incarnation of a pod: from its
// first report to its last delivery. A static pod that is removed and comes
// back under its UID is a second incarnation.
type entry struct {
	pod    *v1.Pod      // as last reported; not ours to change
	status v1.PodStatus // never changed in place, so that it may be lent out

	// version grows with each change worth delivering; sent is the version
	// the sink has. Equal means nothing to do.
	version, sent uint64

	since time.Time // of the oldest change that no call has taken up; zero if none

	said  Said // what the sink has
	ready bool // and whether it is that the pod is ready

	held     bool // the phase is terminal and may not be said yet
	finished bool // Finish was called: the status is final
	gone     bool // Forget was called
	deleted  bool // the sink's DeletePod returned nil

	// shown is what the record shows, as far as it has not been compared with what
	// was said; else nil. edited: it was, and it differs, as it did corrections
	// times before, the last time at corrected.
	shown       *v1.PodStatus
	edited      bool
	corrections int
	corrected   time.Time

	mixed bool // the addresses are of different families, which was told

	refused error // what the last report wanted to say and may not; nil: nothing

	failures int // calls in a row that failed
	lastErr  error
	spot     spot
	retryAt  time.Time // while spot is delayed
	index    int       // while spot is delayed: where in queue.delayed

	next *entry // the incarnation after this one
}

// New returns a Manager. It starts nothing.
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

// Report computes the status of pod from what is known of it now and what was
// said before, and hands it to the sink if it says anything new. It returns
// the pod's status, which the caller may keep and change.
//
// A terminal phase in it may reach the sink later: when a report, or Finish,
// shows that nothing of the pod runs (inv-6). Until then the sink is told the
// phase it knows, with the rest as it is.
//
// That a container comes back which had exited for good is refused, logged and
// told to Hooks.Refused, once until it is over: the end of that container stands,
// and the rest is said as it is (st-50). After Finish a report only
// brings a newer pod object, such as one with a deletionTimestamp.
func (m *Manager) Report(pod *v1.Pod, observed *runtime.PodStatus, starts map[string]runtime.Waiting, end runtime.Termination) v1.PodStatus {
	f := Facts{Pod: pod, Observed: observed, Waiting: starts, Termination: end, Now: time.Now()}
	if m.cfg.HostIPs != nil {
		f.HostIPs = m.cfg.HostIPs()
	}
	if m.cfg.Probes != nil {
		f.Probes = m.cfg.Probes(pod.UID)
	}
	if m.cfg.RecursiveReadOnly != nil {
		f.RecursiveReadOnly = m.cfg.RecursiveReadOnly(pod)
	}
	if m.cfg.Health != nil {
		f.DeviceHealth = m.cfg.Health(pod.UID)
	}
	if m.cfg.Resize != nil {
		f.Resize = m.cfg.Resize(pod.UID)
	}
	if m.cfg.Unready != nil {
		f.Unready = m.cfg.Unready(pod.UID)
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
	status, refused := computeLegal(f)
	news := refused != nil && (e.refused == nil || e.refused.Error() != refused.Error())
	e.refused = refused
	changed := m.setLocked(e, status, observed, f.Now)
	mixed := mixedFamilies(&status)
	tellMixed := mixed != "" && !e.mixed
	e.mixed = mixed != ""
	m.mu.Unlock()

	if tellMixed && m.cfg.Record != nil {
		m.cfg.Record(runtime.Event{Object: runtime.PodRef(pod), Type: v1.EventTypeWarning, Reason: "HostIPsIPFamilyMismatch", Message: mixed})
	}
	if news {
		m.cfg.Logger.Error("status refused", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "err", refused)
		if m.cfg.Hooks.Refused != nil {
			m.cfg.Hooks.Refused(RefusedInfo{Pod: pod, Err: refused})
		}
	}

	if changed {
		m.cfg.Hooks.tell(pod, &old, &status)
	}
	return *status.DeepCopy()
}

// Finish says that the pod's containers have stopped and all it held on the
// node was given back. Its status becomes final (see [Terminate]) and is
// delivered; if the pod has a deletionTimestamp, DeletePod follows. Calling it
// again only brings a newer pod object.
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
	if e.version == 0 && e.status.Phase == "" { // the first that anybody hears of it is its end
		old = pod.Status
	}
	status := Terminate(pod, old, now)
	e.finished = true
	changed := m.setLocked(e, status, new(runtime.PodStatus), now)
	m.pushLocked(e) // a deletion may be due though nothing changed
	m.mu.Unlock()

	if changed {
		m.cfg.Hooks.tell(pod, &old, &status)
	}
}

// Forget says that the pod has left its source and nothing of it is on the
// node. What the sink has not been told yet is delivered, then DeletePod is
// called unless it was before, and then the manager knows nothing of the pod.
// A pod that is not known is no error.
func (m *Manager) Forget(pod *v1.Pod) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.pods[pod.UID].last()
	if e == nil || e.gone {
		return
	}
	e.pod, e.gone = pod, true
	if e.held { // nothing runs any more
		e.held = false
		e.bump(now)
		e.status = released(e.status, &pod.Status, now)
	}
	m.pushLocked(e)
}

// Status returns the status of the pod as last reported, and whether the pod
// is known. The caller may change it.
func (m *Manager) Status(uid types.UID) (v1.PodStatus, bool) {
	m.mu.Lock()
	e := m.pods[uid].last()
	if e == nil || e.gone || e.version == 0 {
		m.mu.Unlock()
		return v1.PodStatus{}, false
	}
	status := e.status
	m.mu.Unlock()
	return *status.DeepCopy(), true
}

// openLocked returns the incarnation of the pod that reports are about, after
// taking over the newer object.
func (m *Manager) openLocked(pod *v1.Pod) *entry {
	e := m.pods[pod.UID].last()
	switch {
	case e == nil:
		e = new(entry)
		m.pods[pod.UID] = e
	case e.gone: // it is back before the sink has heard that it was gone
		e.next = new(entry)
		e = e.next
	}
	if e.version == 0 {
		e.begin(pod, e == m.pods[pod.UID], m.cfg.Earlier)
	}
	e.pod = pod
	return e
}

// begin takes over what was said of the pod before its first report: by its
// source, else, in its first life here, by an earlier agent.
func (e *entry) begin(pod *v1.Pod, first bool, earlier func(types.UID) (v1.PodStatus, bool)) {
	e.said, e.ready = said(&pod.Status), IsReady(&pod.Status)
	if !first || earlier == nil || pod.Status.StartTime != nil {
		return
	}
	if was, ok := earlier(pod.UID); ok {
		e.status, e.said, e.ready = was, said(&was), IsReady(&was)
	}
}

// last returns the newest incarnation; nil of nil.
func (e *entry) last() *entry {
	for e != nil && e.next != nil {
		e = e.next
	}
	return e
}

// setLocked stores a status, and queues its delivery if that would tell the
// sink anything new. It reports whether the status says anything new.
func (m *Manager) setLocked(e *entry, status v1.PodStatus, observed *runtime.PodStatus, now time.Time) bool {
	held := !Terminal(e.said.Phase) && (Held(&status, observed) ||
		observed == nil && e.held && Terminal(status.Phase)) // nobody looked again
	changed := e.version == 0 || !Equal(&e.status, &status)
	if changed || e.held && !held {
		e.bump(now)
	}
	if e.held && !held {
		status = released(status, &e.pod.Status, now)
	}
	e.status, e.held = status, held
	m.pushLocked(e)
	return changed
}

// bump makes the entry's status one that the sink is to be told.
func (e *entry) bump(now time.Time) {
	e.version++
	if e.since.IsZero() {
		e.since = now
	}
}
