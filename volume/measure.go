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
)

// measureParallel is how many pods are measured at a time.
const measureParallel = 4

// A meter measures the volumes of pods, each pod at its own time, and remembers
// (vol-76).
type meter struct {
	m    *Manager
	wake chan struct{}

	// mu guards the field below. It may be taken while Manager.mu is held.
	mu   sync.Mutex
	pods map[types.UID]*measured
}

// measured is what is known of one pod.
type measured struct {
	next                  time.Time
	busy                  bool
	ephemeral, persistent []statsapi.VolumeStats
}

func newMeter(m *Manager) *meter {
	return &meter{m: m, wake: make(chan struct{}, 1), pods: map[types.UID]*measured{}}
}

// add begins to measure a pod: first at some time within the period, so that the
// pods of a node which starts don't all come at once.
func (s *meter) add(uid types.UID) {
	if s.m.cfg.StatsPeriod < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[uid] == nil {
		s.pods[uid] = &measured{next: time.Now().Add(rand.N(s.m.cfg.StatsPeriod))}
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

// run measures what is due, until ctx ends.
func (s *meter) run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	slots := make(chan struct{}, measureParallel)
	for ctx.Err() == nil {
		due, at := s.due(time.Now())
		for _, uid := range due {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			working.Go(func() {
				_ = s.m.Measure(ctx, uid)
				s.again(uid)
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

// due returns the pods to be measured now, and when the next one is.
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

// again says when the pod is measured next.
func (s *meter) again(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[uid]; p != nil {
		p.busy, p.next = false, time.Now().Add(s.m.cfg.StatsPeriod+rand.N(s.m.cfg.StatsPeriod))
		s.wakeUp()
	}
}

// Measure measures the volumes of a pod now. What cannot be measured is left out;
// the error tells of it.
func (m *Manager) Measure(ctx context.Context, uid types.UID) error {
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
		if v.state != InPlace || v.place.Block || v.plugin == nil {
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
			if Ephemeral(j.spec.Volume) {
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

// VolumeStats returns what the volumes of a pod were last measured to hold,
// sorted by name: those that count as the pod's own use of the node's disk, and
// the others. Nothing is measured for it. The caller owns the result.
func (m *Manager) VolumeStats(uid types.UID) (ephemeral, persistent []statsapi.VolumeStats) {
	m.stats.mu.Lock()
	defer m.stats.mu.Unlock()
	if p := m.stats.pods[uid]; p != nil {
		return slices.Clone(p.ephemeral), slices.Clone(p.persistent)
	}
	return nil, nil
}

// Stats returns all that VolumeStats does in one list, as the Summary has it.
func (m *Manager) Stats(uid types.UID) []statsapi.VolumeStats {
	ephemeral, persistent := m.VolumeStats(uid)
	return append(ephemeral, persistent...)
}

// Ephemeral reports whether what is in the volume counts as its pod's use of the
// node's disk (vol-79): an emptyDir that is not in memory, or a copy of a
// ConfigMap. Secrets, projections and the downward API are in memory.
func Ephemeral(v *v1.Volume) bool {
	switch {
	case v == nil:
		return false
	case v.EmptyDir != nil:
		return v.EmptyDir.Medium == v1.StorageMediumDefault
	}
	return v.ConfigMap != nil || v.GitRepo != nil
}
