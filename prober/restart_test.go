package prober_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// prober-70: across a restart of the agent nothing changes for a healthy container:
// results come from the sink's status, or from a newer file.
func TestARestartOfTheAgentChangesNothingForContainers(t *testing.T) {
	for _, tc := range []struct {
		name         string
		file, status bool
		want         string
	}{
		{"nothing is kept", false, false, "1 startup=unknown, web startup=unknown readiness=failure"},
		{"the published status", false, true, "1 startup=success, web startup=success readiness=success"},
		{"a file", true, false, "1 startup=success, web startup=success readiness=success"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				cfg := prober.Config{}
				if tc.file {
					cfg.Path = filepath.Join(t.TempDir(), "probes.json")
				}
				p := pod("u", container("web", "SR", nil))
				n.starts("u", "web", "1")
				m, stop := n.manager(cfg)
				m.Add(p)
				time.Sleep(5 * time.Second)
				assert.Contains(t, shown(m, p), "startup=success readiness=success")
				stop()

				time.Sleep(time.Hour)
				n.take(&n.changes)
				if tc.status {
					p = p.DeepCopy()
					p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "web", ContainerID: "1", Ready: true, Started: new(true)}}
				}
				n.say("web", failure) // the time of the run is not the time of the result
				cfg.Schedule.Rand = func() float64 { return 0.5 }
				m, stop = n.manager(cfg)
				defer stop()
				if tc.file { // a status may be required before the pod is probed
					assert.Equal(t, map[string]runtime.ProbeStatus{"web": {Startup: runtime.ProbeSuccess, Readiness: runtime.ProbeSuccess}}, m.Containers("u"))
				}
				m.Add(p)
				if tc.file || tc.status { // at no time
					assert.Equal(t, map[string]runtime.ProbeStatus{"web": {Startup: runtime.ProbeSuccess, Readiness: runtime.ProbeSuccess}}, m.Containers("u"))
				}
				assert.Equal(t, tc.want, shown(m, p))
				if tc.want != "" && (tc.file || tc.status) {
					for _, c := range n.take(&n.changes) {
						assert.NotContains(t, c, "failure")
					}
					time.Sleep(20 * time.Second)
					assert.Contains(t, shown(m, p), "readiness=success", "two failures are not three")
					time.Sleep(10 * time.Second)
					assert.Contains(t, shown(m, p), "readiness=failure")
				}
			})
		})
	}
}

func TestTheFileIsNewerThanTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		cfg := prober.Config{Path: filepath.Join(t.TempDir(), "probes.json")}
		n.starts("u", "web", "1")
		n.starts("v", "web", "2")
		n.say("web", failure)
		p := pod("u", container("web", "R", nil))
		m, stop := n.manager(cfg)
		m.Add(p)
		m.Add(pod("v", container("web", "R", nil)))
		time.Sleep(35 * time.Second)
		stop()
		p = p.DeepCopy()
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "web", ContainerID: "1", Ready: true}}
		for i := range 2 { // unused results are kept for a while
			n.starts("v", "web", fmt.Sprint("another ", i))
			m, stop := n.manager(cfg)
			m.Add(pod("v", container("web", "R", nil)))
			time.Sleep(time.Minute)
			stop()
		}
		m, stop = n.manager(cfg)
		m.Add(p)
		assert.Equal(t, "web startup=unknown readiness=failure", shown(m, p))
		stop()

		require.NoError(t, os.WriteFile(cfg.Path, []byte("rubbish"), 0o600))
		m, stop = n.manager(cfg)
		m.Add(p)
		assert.Equal(t, "web startup=unknown readiness=success", shown(m, p), "a file that cannot be read is as good as none")
		stop()
	})
}

func TestAFileThatCannotBeWrittenIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		dir := filepath.Join(t.TempDir(), "missing")
		cfg := prober.Config{Path: filepath.Join(dir, "probes.json")}
		n.starts("u", "web", "1")
		m, stop := n.manager(cfg)
		m.Add(pod("u", container("web", "R", nil)))
		time.Sleep(5 * time.Second)
		assert.NoFileExists(t, cfg.Path)
		require.NoError(t, os.Mkdir(dir, 0o700))
		stop()
		assert.FileExists(t, cfg.Path)
	})
}
