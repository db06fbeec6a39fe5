package volume

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
)

// The limits of the API for the health of one volume.
const (
	maxHealthConditions = 16
	maxHealthReason     = 256  // bytes
	maxHealthMessage    = 1024 // bytes
)

// A healthReport is the result of HealthReporter.Health for one volume of a pod.
type healthReport struct {
	name       string // in the pod
	conditions []v1.VolumeHealthCondition
	err        error
}

// checkHealth reads the health of the mounted volumes of a pod and caches it.
func (m *Manager) checkHealth(ctx context.Context, uid types.UID) {
	type job struct {
		plugin HealthReporter
		place  Place
		names  []string
	}
	var jobs []job
	var pod *v1.Pod
	m.mu.Lock()
	for _, v := range m.world.of(uid) {
		p, ok := compose.As[HealthReporter](v.plugin)
		if !ok || v.state != inPlace || v.pod == nil {
			continue
		}
		j := job{plugin: p, place: v.place}
		for name := range v.names {
			j.names = append(j.names, name)
		}
		pod, jobs = v.pod, append(jobs, j)
	}
	m.mu.Unlock()
	if pod == nil {
		return
	}
	var reports []healthReport
	by := time.Now().Add(callWait)
	for _, j := range jobs {
		if ctx.Err() != nil {
			return
		}
		var read healthReport // by the call, once it has returned
		err := m.stats.ask(ctx, j.place, by, func() { read.conditions, read.err = j.plugin.Health(ctx, j.place) })
		var conditions []v1.VolumeHealthCondition
		if err == nil {
			conditions, err = read.conditions, read.err
		}
		if err != nil && !errors.Is(err, errors.ErrUnsupported) && ctx.Err() == nil {
			m.log.Debug("Failed to read the health of a volume", "pod", pod.Namespace+"/"+pod.Name, "podUID", uid, "volumeName", j.place.Name, "err", err)
		}
		for _, name := range j.names {
			reports = append(reports, healthReport{name, conditions, err})
		}
	}
	if m.stats.setHealth(pod, reports, time.Now()) {
		m.cfg.HealthChanged(uid)
	}
}

// setHealth updates the cached health of a pod and reports whether it has changed.
func (s *meter) setHealth(pod *v1.Pod, reports []healthReport, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[pod.UID]
	if p == nil {
		return false
	}
	before := p.health
	if !p.checked {
		before = pod.Status.VolumeHealth // of an earlier agent
	}
	p.checked, p.health = true, nextHealth(before, reports, now)
	return !slices.EqualFunc(before, p.health, func(a, b v1.PodVolumeHealth) bool {
		return a.Name == b.Name && slices.Equal(a.HealthConditions, b.HealthConditions) && a.LastTransitionTime.Equal(&b.LastTransitionTime)
	})
}

// VolumeHealth returns the adverse conditions of the pod's volumes for status.volumeHealth, sorted by
// the names of the volumes. A volume without a condition has no entry. Until the volumes have been
// checked for the first time it returns those of pod.Status. The caller owns the result. It does not
// block. Safe for concurrent use.
func (m *Manager) VolumeHealth(pod *v1.Pod) []v1.PodVolumeHealth {
	m.stats.mu.Lock()
	defer m.stats.mu.Unlock()
	health := pod.Status.VolumeHealth
	if p := m.stats.pods[pod.UID]; p != nil && p.checked {
		health = p.health
	}
	var clone []v1.PodVolumeHealth
	for _, h := range health {
		clone = append(clone, *h.DeepCopy())
	}
	return clone
}

// nextHealth returns the health of a pod's volumes that follows before. A failed read is no recovery: it
// leaves the conditions as they were. The time of a volume changes with the set of its conditions, not
// with their messages.
func nextHealth(before []v1.PodVolumeHealth, reports []healthReport, now time.Time) []v1.PodVolumeHealth {
	old := map[string]v1.PodVolumeHealth{}
	for _, h := range before {
		old[h.Name] = h
	}
	next := map[string]v1.PodVolumeHealth{}
	for _, r := range reports {
		was, had := old[r.name]
		if r.err != nil && !errors.Is(r.err, errors.ErrUnsupported) {
			if had {
				next[r.name] = was
			}
			continue
		}
		conditions := validHealth(r.conditions)
		if r.err != nil || len(conditions) == 0 {
			continue
		}
		h := v1.PodVolumeHealth{Name: r.name, HealthConditions: conditions, LastTransitionTime: was.LastTransitionTime}
		if !had || !slices.EqualFunc(was.HealthConditions, conditions, sameHealth) {
			h.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		}
		next[r.name] = h
	}
	var list []v1.PodVolumeHealth
	for _, h := range next {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b v1.PodVolumeHealth) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// validHealth returns the conditions that the API server accepts, sorted: an invalid one would make it
// reject the whole status of the pod. Unknown categories and duplicates are dropped, texts are
// truncated, and a missing reason is the category.
func validHealth(conditions []v1.VolumeHealthCondition) []v1.VolumeHealthCondition {
	var list []v1.VolumeHealthCondition
	for _, c := range conditions {
		switch c.Status {
		case v1.VolumeHealthInaccessible, v1.VolumeHealthDataLoss, v1.VolumeHealthDegraded:
		default:
			continue
		}
		if c.Reason == "" {
			c.Reason = string(c.Status)
		}
		c.Reason, c.Message = truncateText(c.Reason, maxHealthReason), truncateText(c.Message, maxHealthMessage)
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b v1.VolumeHealthCondition) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message))
	})
	list = slices.CompactFunc(list, sameHealth)
	return list[:min(len(list), maxHealthConditions)]
}

// sameHealth reports whether two conditions have the same identity.
func sameHealth(a, b v1.VolumeHealthCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason
}

// truncateText returns the valid UTF-8 of text, at most limit bytes of it.
func truncateText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}
