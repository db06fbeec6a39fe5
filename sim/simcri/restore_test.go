package simcri_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/simcri"
)

// A pod whose init container has exited, with a checkpoint of which another one is restored.
const restoreSchedule = `
	0s  add web policy=OnFailure grace=2 init:i=exit=0@2s side:s=run main:c=exit=0@1m main:d=run hook:d=100ms
	20s checkpoint web
	40s restore copy from=web`

// A life is what the trace has of the containers of a pod.
type life struct {
	starts   map[string]int
	began    map[string]time.Duration // the first start
	ended    map[string]time.Duration // the first exit
	restored int                      // sandboxes
	ready    int                      // sandboxes at the end
}

func lifeOf(r *sim.Report, pod string) life {
	l := life{starts: map[string]int{}, began: map[string]time.Duration{}, ended: map[string]time.Duration{}}
	for _, e := range r.Trace {
		if string(e.UID) != pod {
			continue
		}
		switch e.Kind {
		case sim.Started:
			if l.starts[e.Container.Name]++; l.starts[e.Container.Name] == 1 {
				l.began[e.Container.Name] = e.At
			}
		case sim.Exited:
			if l.ended[e.Container.Name] == 0 {
				l.ended[e.Container.Name] = e.At
			}
		case sim.PodRestored:
			l.restored++
		case sim.SandboxReady:
			l.ready++
		case sim.SandboxStopped:
			l.ready--
		}
	}
	return l
}

// restores runs restoreSchedule with further steps. No invariant is violated.
func restores(t *testing.T, steps string) (report *sim.Report) {
	t.Helper()
	schedule, err := sim.Parse(restoreSchedule + "\n" + steps)
	require.NoError(t, err)
	dir := memoryDir(t)
	synctest.Test(t, func(t *testing.T) {
		report, err = sim.Run(t.Context(), sim.Config{Schedule: schedule, Machine: simcri.MachineIn(dir)})
		require.NoError(t, err)
	})
	require.Empty(t, report.Violations)
	return report
}

// unaffected checks that the source of a checkpoint has run without it as with it, and returns the report.
func unaffected(t *testing.T, report *sim.Report) *sim.Report {
	t.Helper()
	web := lifeOf(report, "web")
	assert.Equal(t, map[string]int{"i": 1, "s": 1, "c": 1, "d": 1}, web.starts)
	assert.Equal(t, time.Minute, (web.ended["c"] - web.began["c"]).Round(time.Second), "the source continues")
	assert.NotContains(t, web.ended, "d")
	return report
}

func TestAPodIsRestoredFromACheckpointOfAnother(t *testing.T) {
	report := unaffected(t, restores(t, ""))
	web, copied := lifeOf(report, "web"), lifeOf(report, "copy")
	assert.Equal(t, map[string]int{"s": 1, "c": 1, "d": 1}, copied.starts, "its init container does not run")
	assert.Equal(t, 1, copied.restored)
	assert.Equal(t, 1, copied.ready)
	ran := 20*time.Second - web.began["c"] // at the checkpoint
	assert.InDelta(t, time.Minute-ran, copied.ended["c"]-copied.began["c"], float64(100*time.Millisecond), "it continues")
}

// Each restored container is started once, whatever fails meanwhile.
func TestARestoreSurvivesFaults(t *testing.T) {
	faults := map[string]string{
		"the restore fails":             "39s fault RestorePod kind=error for=20s",
		"the restore hangs":             "39s fault RestorePod kind=hung for=10s",
		"the restore loses its answer":  "39s fault RestorePod kind=lost for=10s",
		"no start":                      "39s fault StartContainer kind=error for=20s",
		"a start hangs":                 "39s fault StartContainer kind=hung for=2s",
		"starts lose their answers":     "39s fault StartContainer kind=lost for=20s",
		"the runtime is away":           "39s fault runtime kind=error for=20s",
		"the checkpoint is made slowly": "19s fault CheckpointPod kind=slow delay=3s for=10s",
	}
	for n := range 30 {
		for _, when := range []string{"before", "after"} {
			faults[fmt.Sprintf("the agent is killed %s call %d", when, n+1)] = fmt.Sprintf("40s kill calls=%d when=%s down=5s", n+1, when)
		}
	}
	for name, steps := range faults {
		t.Run(name, func(t *testing.T) {
			copied := lifeOf(unaffected(t, restores(t, steps)), "copy")
			assert.Equal(t, map[string]int{"s": 1, "c": 1, "d": 1}, copied.starts)
			assert.Equal(t, 1, copied.ready)
		})
	}
}

func TestAPodIsRestoredWithoutTheSource(t *testing.T) {
	copied := lifeOf(restores(t, "30s delete web"), "copy")
	assert.Equal(t, map[string]int{"s": 1, "c": 1, "d": 1}, copied.starts)
}

// Without a complete checkpoint there is nothing to restore: the step has no effect, as the API server's admission
// would reject the pod.
func TestACheckpointThatFailedIsNotRestored(t *testing.T) {
	for name, steps := range map[string]string{
		"the call fails":        "19s fault CheckpointPod kind=error for=5s",
		"it hangs":              "19s fault CheckpointPod kind=hung for=5s",
		"it loses its answer":   "19s fault CheckpointPod kind=lost for=5s",
		"the agent is killed":   "20s kill calls=1 when=before down=5s",
		"and so after the call": "20s kill calls=8 when=before down=5s",
	} {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, lifeOf(unaffected(t, restores(t, steps)), "copy").starts)
		})
	}
}

// The sandbox of a restored pod is lost: before all of its containers have been started it is restored again, later it is
// created from its spec.
func TestARestoredPodLosesItsSandbox(t *testing.T) {
	copied := lifeOf(restores(t, "50s crash copy"), "copy")
	assert.Equal(t, 1, copied.starts["i"])
	assert.Equal(t, 1, copied.restored)

	copied = lifeOf(restores(t, "39s fault StartContainer kind=hung for=1s500ms\n45s crash copy"), "copy")
	assert.Equal(t, map[string]int{"s": 1, "c": 1, "d": 1}, copied.starts)
	assert.Equal(t, 2, copied.restored)
}
