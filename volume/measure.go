package volume

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/internal/pause"
)

// maxMeasuring is the number of pods that are measured concurrently.
const maxMeasuring = 4

// A meter measures the volumes of each pod periodically and caches the results.
type meter struct {
	m     *Manager
	start time.Time
	wake  chan struct{}

	// mu guards the field below. It may be taken while Manager.mu is held.
	mu   sync.Mutex
	pods map[types.UID]*podUsage
}

// A podUsage is the cached usage of one pod.
type podUsage struct {
	next                  time.Time
	busy                  bool
	ephemeral, persistent []statsapi.VolumeStats

	checked bool // health has been read by this agent
	health  []v1.PodVolumeHealth
}

func newMeter(m *Manager) *meter {
	return &meter{m: m, start: time.Now(), wake: make(chan struct{}, 1), pods: map[types.UID]*podUsage{}}
}

// add schedules the measurements of a pod. The first is at a random time within the period, to spread
// the load after a start, but not before the volumes are usually in place.
func (s *meter) add(uid types.UID) {
	if s.m.cfg.StatsPeriod < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[uid] == nil {
		s.pods[uid] = &podUsage{next: s.next(s.m.cfg.StatsPeriod/12, s.m.cfg.StatsPeriod)}
		s.wakeUp()
	}
}

func (s *meter) drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, uid)
}

func (s *meter) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run measures pods that are due until ctx is done.
func (s *meter) run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	slots := make(chan struct{}, maxMeasuring)
	for ctx.Err() == nil {
		due, at := s.due(time.Now())
		for _, uid := range due {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			working.Go(func() {
				_ = s.m.measure(ctx, uid)
				if s.m.cfg.HealthChanged != nil {
					s.m.checkHealth(ctx, uid)
				}
				s.reschedule(uid)
				<-slots
			})
		}
		var alarm <-chan time.Time
		if !at.IsZero() {
			alarm = time.After(time.Until(at))
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-alarm:
		}
	}
}

// due returns the pods to measure now and the time at which the next one is due.
func (s *meter) due(now time.Time) (due []types.UID, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uid, p := range s.pods {
		switch {
		case p.busy:
		case !p.next.After(now):
			p.busy = true
			due = append(due, uid)
		case at.IsZero() || p.next.Before(at):
			at = p.next
		}
	}
	slices.Sort(due)
	return due, at
}

// reschedule schedules the next measurement of the pod.
func (s *meter) reschedule(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[uid]; p != nil {
		p.busy, p.next = false, s.next(s.m.cfg.StatsPeriod, 2*s.m.cfg.StatsPeriod)
		s.wakeUp()
	}
}

// next returns a time that is between least and most away. It is one of twelve in a period, so that
// several pods are measured at once.
func (s *meter) next(least, most time.Duration) time.Time {
	now := time.Now()
	return now.Add(pause.Aligned(now.Sub(s.start), least, most, s.m.cfg.StatsPeriod/12, rand.IntN))
}

// measure measures the volumes of a pod. Volumes that cannot be measured are omitted from the cache; the
// error contains their errors.
func (m *Manager) measure(ctx context.Context, uid types.UID) error {
	type job struct {
		plugin Plugin
		spec   *Spec
		pod    *v1.Pod
		place  Place
		ready  SetUpResult
		names  []string
	}
	var jobs []job
	m.mu.Lock()
	for _, v := range m.world.of(uid) {
		if v.state != inPlace || v.place.Block || v.plugin == nil {
			continue
		}
		j := job{plugin: v.plugin, spec: v.spec, pod: v.pod, place: v.place, ready: v.ready}
		for name := range v.names {
			j.names = append(j.names, name)
		}
		slices.Sort(j.names)
		jobs = append(jobs, j)
	}
	m.mu.Unlock()
	var ephemeral, persistent []statsapi.VolumeStats
	var errs []error
	for _, j := range jobs {
		stats, err := j.plugin.Stats(ctx, j.place, j.ready.Volume)
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if m.cfg.Hooks.Measured != nil {
			m.cfg.Hooks.Measured(MeasuredInfo{Pod: j.pod, Spec: j.spec, Plugin: j.place.Plugin, Stats: stats})
		}
		for _, name := range j.names {
			of := statsapi.VolumeStats{FsStats: stats.FsStats, Name: name}
			if j.spec.Claim != nil {
				of.PVCRef = &statsapi.PVCReference{Name: j.spec.Claim.Name, Namespace: j.spec.Claim.Namespace}
			}
			if isEphemeral(j.spec.Volume) {
				ephemeral = append(ephemeral, of)
			} else {
				persistent = append(persistent, of)
			}
		}
	}
	byName := func(a, b statsapi.VolumeStats) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(ephemeral, byName)
	slices.SortFunc(persistent, byName)
	m.stats.mu.Lock()
	defer m.stats.mu.Unlock()
	if p := m.stats.pods[uid]; p != nil {
		p.ephemeral, p.persistent = ephemeral, persistent
	}
	return errors.Join(errs...)
}

// VolumeStats returns the cached usage of the volumes of a pod, sorted by name: those that count towards
// the pod's ephemeral storage, and the others. It does not measure. The caller owns the results. Safe
// for concurrent use.
func (m *Manager) VolumeStats(uid types.UID) (ephemeral, persistent []statsapi.VolumeStats) {
	m.stats.mu.Lock()
	defer m.stats.mu.Unlock()
	if p := m.stats.pods[uid]; p != nil {
		return slices.Clone(p.ephemeral), slices.Clone(p.persistent)
	}
	return nil, nil
}

// isEphemeral reports whether the volume counts towards the ephemeral storage of its pod: an emptyDir
// that is not in memory, or a ConfigMap (rule vol-79).
func isEphemeral(v *v1.Volume) bool {
	switch {
	case v == nil:
		return false
	case v.EmptyDir != nil:
		return v.EmptyDir.Medium == v1.StorageMediumDefault
	}
	return v.ConfigMap != nil || v.GitRepo != nil
}
