package volume_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A monitoredPlugin is the fake plugin as a HealthReporter.
type monitoredPlugin struct {
	*volumetest.Plugin
	health func(at volume.Place) ([]v1.VolumeHealthCondition, error)
}

func (p *monitoredPlugin) Health(_ context.Context, at volume.Place) ([]v1.VolumeHealthCondition, error) {
	return p.health(at)
}

func condition(status v1.VolumeHealthStatusType, reason, message string) v1.VolumeHealthCondition {
	return v1.VolumeHealthCondition{Status: status, Reason: reason, Message: message}
}

func TestNextHealth(t *testing.T) {
	now := time.Date(2026, 7, 20, 12, 0, 0, 5, time.UTC)
	at, earlier := metav1.NewTime(now.Truncate(time.Second)), metav1.NewTime(now.Add(-time.Hour).Truncate(time.Second))
	degraded, lost := condition(v1.VolumeHealthDegraded, "Slow", "5 ms"), condition(v1.VolumeHealthDataLoss, "BadSectors", "")
	of := func(name string, since metav1.Time, c ...v1.VolumeHealthCondition) v1.PodVolumeHealth {
		return v1.PodVolumeHealth{Name: name, HealthConditions: c, LastTransitionTime: since}
	}
	reports := func(r ...volume.HealthReport) []volume.HealthReport { return r }
	report := volume.NewHealthReport
	down := errors.New("down")
	for name, c := range map[string]struct {
		before  []v1.PodVolumeHealth
		reports []volume.HealthReport
		want    []v1.PodVolumeHealth
	}{
		"healthy":               {nil, reports(report("a", nil)), nil},
		"sorted":                {nil, reports(report("b", nil, degraded), report("a", nil, degraded, lost)), []v1.PodVolumeHealth{of("a", at, lost, degraded), of("b", at, degraded)}},
		"recovered":             {[]v1.PodVolumeHealth{of("a", earlier, degraded)}, reports(report("a", nil)), nil},
		"the same":              {[]v1.PodVolumeHealth{of("a", earlier, degraded)}, reports(report("a", nil, degraded)), []v1.PodVolumeHealth{of("a", earlier, degraded)}},
		"another message":       {[]v1.PodVolumeHealth{of("a", earlier, degraded)}, reports(report("a", nil, condition(v1.VolumeHealthDegraded, "Slow", "9 ms"))), []v1.PodVolumeHealth{of("a", earlier, condition(v1.VolumeHealthDegraded, "Slow", "9 ms"))}},
		"another condition":     {[]v1.PodVolumeHealth{of("a", earlier, degraded)}, reports(report("a", nil, lost, degraded)), []v1.PodVolumeHealth{of("a", at, lost, degraded)}},
		"an error":              {[]v1.PodVolumeHealth{of("a", earlier, degraded)}, reports(report("a", down), report("b", down)), []v1.PodVolumeHealth{of("a", earlier, degraded)}},
		"no longer monitored":   {[]v1.PodVolumeHealth{of("a", earlier, degraded)}, reports(report("a", errors.ErrUnsupported)), nil},
		"a volume that is gone": {[]v1.PodVolumeHealth{of("a", earlier, degraded)}, nil, nil},
		"an unknown category":   {nil, reports(report("a", nil, condition("Haunted", "Ghost", ""))), nil},
		"no reason":             {nil, reports(report("a", nil, condition(v1.VolumeHealthDegraded, "", "m"))), []v1.PodVolumeHealth{of("a", at, condition(v1.VolumeHealthDegraded, "Degraded", "m"))}},
		"duplicates":            {nil, reports(report("a", nil, condition(v1.VolumeHealthDegraded, "Slow", "b"), condition(v1.VolumeHealthDegraded, "Slow", "a"))), []v1.PodVolumeHealth{of("a", at, condition(v1.VolumeHealthDegraded, "Slow", "a"))}},
		"texts too long": {nil, reports(report("a", nil, condition(v1.VolumeHealthDegraded, strings.Repeat("ä", 200), "\xff"+strings.Repeat("x", 2000)))), []v1.PodVolumeHealth{
			of("a", at, condition(v1.VolumeHealthDegraded, strings.Repeat("ä", 128), "\ufffd"+strings.Repeat("x", 1021))),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, volume.NextHealth(c.before, c.reports, now))
		})
	}
	var many []v1.VolumeHealthCondition
	for i := range 100 {
		many = append(many, condition(v1.VolumeHealthDegraded, strings.Repeat("r", i+1), ""))
	}
	assert.Len(t, volume.NextHealth(nil, reports(report("a", nil, many...)), now)[0].HealthConditions, 16)
}

func TestTheHealthOfVolumesIsReadPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		var mu sync.Mutex
		var unwell []v1.VolumeHealthCondition
		var failed error
		set := func(conditions []v1.VolumeHealthCondition, err error) {
			mu.Lock()
			defer mu.Unlock()
			unwell, failed = conditions, err
		}
		p := &monitoredPlugin{Plugin: &volumetest.Plugin{Mounter: n.mounter}}
		p.health = func(at volume.Place) ([]v1.VolumeHealthCondition, error) {
			if at.Name == "plain" {
				return nil, errors.ErrUnsupported
			}
			mu.Lock()
			defer mu.Unlock()
			return unwell, failed
		}
		var changed atomic.Int32
		start(t, n, func(c *volume.Config) {
			c.Plugins, c.StatsPeriod = []volume.Plugin{p}, time.Minute
			c.HealthChanged = func(uid types.UID) {
				assert.Equal(t, types.UID("p"), uid)
				changed.Add(1)
			}
		})
		of := pod("p", "data", "plain")
		old := []v1.PodVolumeHealth{{Name: "data", HealthConditions: []v1.VolumeHealthCondition{condition(v1.VolumeHealthDegraded, "Slow", "")}}}
		of.Status.VolumeHealth = old
		_, err := n.Mount(t.Context(), of)
		require.NoError(t, err)
		assert.Equal(t, old, n.VolumeHealth(of), "of an earlier agent")
		set(nil, errors.New("down"))
		wait(10 * time.Minute)
		assert.Equal(t, old, n.VolumeHealth(of), "an error is no recovery")
		assert.Zero(t, changed.Load())
		set(nil, nil)
		wait(10 * time.Minute)
		assert.Empty(t, n.VolumeHealth(of))
		assert.EqualValues(t, 1, changed.Load())
		lost := []v1.VolumeHealthCondition{condition(v1.VolumeHealthInaccessible, "NoPath", "m")}
		set(lost, nil)
		wait(10 * time.Minute)
		require.Len(t, n.VolumeHealth(of), 1)
		assert.Equal(t, lost, n.VolumeHealth(of)[0].HealthConditions)
		assert.EqualValues(t, 2, changed.Load(), "once for each change")
		n.VolumeHealth(of)[0].HealthConditions[0].Reason = "changed by the caller"
		assert.Equal(t, lost, n.VolumeHealth(of)[0].HealthConditions)
		require.NoError(t, n.Unmount(t.Context(), of))
	})
}

func TestTheHealthOfVolumesIsOffByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{root: t.TempDir(), mounter: new(volumetest.Mounter)}
		p := &monitoredPlugin{Plugin: &volumetest.Plugin{Mounter: n.mounter}}
		p.health = func(volume.Place) ([]v1.VolumeHealthCondition, error) { panic("it is called") }
		start(t, n, func(c *volume.Config) { c.Plugins, c.StatsPeriod = []volume.Plugin{p}, time.Minute })
		_, err := n.Mount(t.Context(), pod("p", "data"))
		require.NoError(t, err)
		wait(time.Hour)
		assert.NotZero(t, p.Count("Stats"))
	})
}
