package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

// A meter measures the volumes of each pod periodically and caches the results. A volume that does not
// answer occupies its slot for callWait only, and is not asked again before its call has returned.
type meter struct {
	m     *Manager
	start time.Time
	wake  chan struct{}

	// mu guards the fields below. It may be taken while Manager.mu is held.
	mu    sync.Mutex
	pods  map[types.UID]*podUsage
	calls map[Place]bool // Stats or Health of the volume has not returned
}

// A podUsage is the cached usage of one pod.
type podUsage struct {
	next  time.Time
	busy  bool
	usage map[Place]volumeUsage

	checked bool // health has been read by this agent
	health  []v1.PodVolumeHealth
}

// A volumeUsage is the usage of one volume of a pod, once for each of its names.
type volumeUsage struct {
	ephemeral bool
	stats     []statsapi.VolumeStats
}

func newMeter(m *Manager) *meter {
	return &meter{
		m: m, start: time.Now(), wake: make(chan struct{}, 1), pods: map[types.UID]*podUsage{}, calls: map[Place]bool{},
	}
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
		s.pods[uid] = &podUsage{usage: map[Place]volumeUsage{}, next: s.next(s.m.cfg.StatsPeriod/12, s.m.cfg.StatsPeriod)}
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

// errNoAnswer means that a call for a volume has not returned in time; its result is used once it does.
var errNoAnswer = errors.New("volume does not answer")

// ask calls f for the volume in a goroutine of its own and waits for it until the time by, at least for
// leastWait. It returns errNoAnswer if f has not returned, or was not called because an earlier call for
// the volume has not returned.
func (s *meter) ask(ctx context.Context, at Place, by time.Time, f func()) error {
	s.mu.Lock()
	outstanding := s.calls[at]
	s.calls[at] = true
	s.mu.Unlock()
	if outstanding {
		return errNoAnswer
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, at)
	}()
	if await(ctx, done, max(time.Until(by), leastWait)) {
		return nil
	}
	if ctx.Err() == nil {
		s.m.log.Warn("Volume does not answer; it is not measured until it does", "podUID", at.PodUID, "volumeName", at.Name, "plugin", at.Plugin)
	}
	return errNoAnswer
}

// A measurement is a volume to measure.
type measurement struct {
	plugin Plugin
	spec   *Spec
	pod    *v1.Pod
	place  Place
	ready  SetUpResult
	names  []string
}

// measure measures the volumes of a pod. Volumes that cannot be measured are omitted from the cache; the
// error contains their errors. The usage of a volume that does not answer remains until it does.
func (m *Manager) measure(ctx context.Context, uid types.UID) error {
	var jobs []measurement
	m.mu.Lock()
	for _, v := range m.world.of(uid) {
		if v.state != inPlace || v.place.Block || v.plugin == nil {
			continue
		}
		j := measurement{plugin: v.plugin, spec: v.spec, pod: v.pod, place: v.place, ready: v.ready}
		for name := range v.names {
			j.names = append(j.names, name)
		}
		slices.Sort(j.names)
		jobs = append(jobs, j)
	}
	m.mu.Unlock()
	p := m.stats.begin(uid, jobs)
	by := time.Now().Add(callWait)
	var errs []error
	for _, j := range jobs {
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		var failed error // of the call, once it has returned
		if err := m.stats.ask(ctx, j.place, by, func() { failed = m.measureVolume(ctx, j, p) }); err != nil {
			errs = append(errs, fmt.Errorf("volume: measure %s: %w", j.place, err))
		} else if failed != nil {
			errs = append(errs, failed)
		}
	}
	return errors.Join(errs...)
}

// begin returns the cached usage of the pod, without volumes that are not measured; nil if the pod is not
// measured.
func (s *meter) begin(uid types.UID, jobs []measurement) *podUsage {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[uid]
	if p != nil {
		maps.DeleteFunc(p.usage, func(at Place, _ volumeUsage) bool {
			return !slices.ContainsFunc(jobs, func(j measurement) bool { return j.place == at })
		})
	}
	return p
}

// measureVolume measures one volume and caches its usage in p, unless p is nil.
func (m *Manager) measureVolume(ctx context.Context, j measurement, p *podUsage) error {
	stats, err := j.plugin.Stats(ctx, j.place, j.ready.Volume)
	if err == nil && m.cfg.Hooks.Measured != nil {
		m.cfg.Hooks.Measured(j.pod, j.spec, stats)
	}
	u := volumeUsage{ephemeral: isEphemeral(j.spec.Volume)}
	for _, name := range j.names {
		of := statsapi.VolumeStats{FsStats: stats, Name: name}
		if j.spec.Claim != nil {
			of.PVCRef = &statsapi.PVCReference{Name: j.spec.Claim.Name, Namespace: j.spec.Claim.Namespace}
		}
		u.stats = append(u.stats, of)
	}
	m.stats.mu.Lock()
	defer m.stats.mu.Unlock()
	switch {
	case p == nil:
	case err != nil:
		delete(p.usage, j.place)
	default:
		p.usage[j.place] = u
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// of returns the cached usage, sorted by name.
func (p *podUsage) of(ephemeral bool) []statsapi.VolumeStats {
	var list []statsapi.VolumeStats
	for _, u := range p.usage {
		if u.ephemeral == ephemeral {
			list = append(list, u.stats...)
		}
	}
	slices.SortFunc(list, func(a, b statsapi.VolumeStats) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// VolumeStats returns the cached usage of the volumes of a pod, sorted by name: those that count towards
// the pod's ephemeral storage, and the others. It does not measure. The caller owns the results. Safe
// for concurrent use.
func (m *Manager) VolumeStats(uid types.UID) (ephemeral, persistent []statsapi.VolumeStats) {
	m.stats.mu.Lock()
	defer m.stats.mu.Unlock()
	if p := m.stats.pods[uid]; p != nil {
		return p.of(true), p.of(false)
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
