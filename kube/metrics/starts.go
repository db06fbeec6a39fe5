package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// starts measures how long pods take to start: those that were seen before they
// ran.
type starts struct {
	start, total, sli prometheus.Observer
	first             prometheus.Gauge

	mu   sync.Mutex // guards the field below
	pods map[types.UID]*start

	networked bool // guarded by mu: first has been told
}

// A start is a pod that has yet to start.
type start struct {
	seen         time.Time
	running      bool // counted as running
	pulled, last time.Time
}

func newStarts(s *family.Set) *starts {
	const from = "status.Hooks.Changed"
	buckets := []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600}
	return &starts{
		pods:  map[types.UID]*start{},
		start: s.Histogram(from, "kubelet_pod_start_duration_seconds", "From when a pod was first seen until it was Running.", buckets),
		total: s.Histogram(from, "kubelet_pod_start_total_duration_seconds", "From when a pod was made until all its containers ran.", buckets),
		first: s.Gauge(from, "kubelet_first_network_pod_start_sli_duration_seconds", "What kubelet_pod_start_sli_duration_seconds counted of the first pod with a network of its own."),
		sli:   s.Histogram(from, "kubelet_pod_start_sli_duration_seconds", "As kubelet_pod_start_total_duration_seconds, without the time in which images were pulled and init containers ran; not of pods with volumes that somebody else has to make.", buckets),
	}
}

// changed looks whether a pod has started.
func (s *starts) changed(i status.ChangedInfo) {
	now, uid := time.Now(), i.Pod.UID
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[uid]
	switch {
	case i.New.Phase == v1.PodSucceeded || i.New.Phase == v1.PodFailed:
		defer delete(s.pods, uid) // it may have run so shortly that nobody saw it
	case p == nil && i.New.Phase == v1.PodPending && (i.Old.Phase == v1.PodPending || i.Old.Phase == ""):
		s.pods[uid] = &start{seen: seenAt(i.Pod, now)}
		return
	}
	if p == nil {
		return
	}
	if !p.running && (i.New.Phase == v1.PodRunning || i.New.Phase == v1.PodSucceeded) {
		p.running = true
		s.start.Observe(now.Sub(p.seen).Seconds())
	}
	if i.New.Phase == v1.PodRunning && allRun(&i.New) {
		s.started(i.Pod, &i.New, p, now)
		delete(s.pods, uid)
	}
}

// started counts a pod of which all containers run.
func (s *starts) started(pod *v1.Pod, status *v1.PodStatus, p *start, now time.Time) {
	made := pod.CreationTimestamp.Time
	if made.IsZero() {
		made = p.seen
	}
	took := now.Sub(made)
	s.total.Observe(took.Seconds())
	if runtime.IsStatic(pod) || provisioned(pod) {
		return
	}
	own := max(took-p.last.Sub(p.pulled)-initialised(status), 0).Seconds()
	s.sli.Observe(own)
	if !pod.Spec.HostNetwork && !s.networked {
		s.networked = true
		s.first.Set(own)
	}
}

// pull takes note that an image was pulled for a pod.
func (s *starts) pull(uid types.UID, begun, ended time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[uid]
	if p == nil {
		return
	}
	if p.pulled.IsZero() || begun.Before(p.pulled) {
		p.pulled = begun
	}
	if ended.After(p.last) {
		p.last = ended
	}
}

func (s *starts) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, uid)
}

// ImagePulled takes note that an image was pulled for a pod: that time is no part of
// kubelet_pod_start_sli_duration_seconds. The hooks of package remote call it.
func (m *Metrics) ImagePulled(uid types.UID, begun, ended time.Time) {
	m.starts.pull(uid, begun, ended)
}

// seenAt is when the agent first saw the pod, as its source says, or now.
func seenAt(pod *v1.Pod, now time.Time) time.Time {
	if at, err := time.Parse(time.RFC3339Nano, pod.Annotations[runtime.ConfigSeenAnnotation]); err == nil && !at.After(now) {
		return at
	}
	return now
}

func allRun(s *v1.PodStatus) bool {
	for i := range s.ContainerStatuses {
		if s.ContainerStatuses[i].State.Running == nil {
			return false
		}
	}
	return len(s.ContainerStatuses) > 0
}

// provisioned says whether the pod has volumes that somebody else has to make.
func provisioned(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil {
			return true
		}
	}
	return false
}

// initialised is how long init containers ran, from the start of the first to the
// end of the last.
func initialised(s *v1.PodStatus) time.Duration {
	var first, last time.Time
	for i := range s.InitContainerStatuses {
		t := s.InitContainerStatuses[i].State.Terminated
		if t == nil {
			continue
		}
		if first.IsZero() || t.StartedAt.Time.Before(first) {
			first = t.StartedAt.Time
		}
		if t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last.Sub(first)
}
