//go:build linux

package adopt

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// endingScripts are the scripts of pods that are deleted. The first exits 12 seconds after the
// signal to terminate, the second does not exit.
var endingScripts = map[string]string{
	"exits":   `i=0; while [ $i -lt 12 ]; do sleep 1; i=$((i+1)); done; echo ended > /dev/termination-log; exit 9`,
	"ignores": `while :; do sleep 1; done`,
}

// endingGrace is the grace period of these pods, in seconds.
const endingGrace = 30

// ending is the manifest of a pod that creates a file in the control directory when it is
// to terminate.
func ending(name, script string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %[1]s}
spec:
  terminationGracePeriodSeconds: %[3]d
  volumes: [{name: control, hostPath: {path: CONTROL}}]
  containers:
  - name: main
    image: kubeparts.test/busybox:1
    command: [sh, -c, "trap 'told=1' TERM; while [ -z \"$told\" ]; do sleep 0.2; done; touch /control/%[1]s; %[2]s"]
    volumeMounts: [{name: control, mountPath: /control}]
`, name, script, endingGrace)
}

// Exits of pods of an API server while no kubelet runs are reported once, and so is the
// end of pods that are deleted before the change-over, or while no kubelet runs.
func TestIntegrationEndingPodsOfAnAPIServerAreTakenOver(t *testing.T) {
	policies := map[string]v1.RestartPolicy{"never": v1.RestartPolicyNever, "onfailure": v1.RestartPolicyOnFailure, "always": v1.RestartPolicyAlways}
	for _, real := range kubelets(t) {
		t.Run(real.name, func(t *testing.T) {
			m := newMember(t)
			m.start(real)
			m.untilReady()
			programs := []program{kubeparts(t), real, kubeparts(t)}
			var names []string
			for i := range programs {
				for name, policy := range policies {
					m.createManifest(waiting(fmt.Sprint(name, i), policy))
					names = append(names, fmt.Sprint(name, i))
				}
				for name, script := range endingScripts {
					for _, when := range []string{"before", "between", "removed"} {
						m.createManifest(ending(fmt.Sprint(name, when, i), script))
						names = append(names, fmt.Sprint(name, when, i))
					}
				}
			}
			m.untilObserved(names)
			for i, next := range programs {
				m.changeOverWhilePodsEnd(next, i, policies)
			}
			m.checkExits(slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "removed") }))
		})
	}
}

// changeOverWhilePodsEnd ends the pods with this number and starts the next program.
func (m *member) changeOverWhilePodsEnd(next program, number int, policies map[string]v1.RestartPolicy) {
	m.t.Helper()
	signaled := map[string]time.Time{} // when a pod was told to terminate
	for kind := range endingScripts {
		name := fmt.Sprint(kind, "before", number)
		m.deletePod(name, -1)
		m.untilSignaled(name, signaled)
	}
	m.stop()
	for name := range policies {
		m.exitNow(fmt.Sprint(name, number))
	}
	for kind := range endingScripts {
		m.deletePod(fmt.Sprint(kind, "between", number), -1)
		m.deletePod(fmt.Sprint(kind, "removed", number), 0)
	}
	m.start(next)
	for kind := range endingScripts {
		m.untilSignaled(fmt.Sprint(kind, "between", number), signaled)
	}
	m.until(next.name+" reports the exits", func() error {
		for name, policy := range policies {
			name = fmt.Sprint(name, number)
			if err := exitedOnce(m.observed.last(name), policy); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(signaled)) {
		m.untilDeleted(name)
		m.checkEnd(next, name, signaled[name])
	}
	m.until("the containers of removed pods have stopped", func() error {
		list, err := lab.List(m.t.Context(), m.daemon.Endpoint)
		for _, c := range list.Containers {
			if name := c.Labels["io.kubernetes.pod.name"]; strings.HasSuffix(name, fmt.Sprint("removed", number)) && strings.HasSuffix(c.State.String(), "RUNNING") {
				err = fmt.Errorf("%s: %v", name, c.State)
			}
		}
		return err
	})
	m.passSyncs()
	for name, policy := range policies {
		name = fmt.Sprint(name, number)
		assert.NoError(m.t, exitedOnce(m.observed.last(name), policy), "%s: %s", next.name, name)
	}
}

// untilTold waits until a pod has received the signal to terminate.
func (m *member) untilSignaled(name string, signaled map[string]time.Time) {
	m.t.Helper()
	m.until(name+" is told to terminate", func() error {
		info, err := os.Stat(filepath.Join(m.dir, "control", name))
		if err == nil {
			signaled[name] = info.ModTime()
		}
		return err
	})
}

func (m *member) untilDeleted(name string) {
	m.t.Helper()
	m.until(name+" is deleted", func() error {
		if m.observed.of(name).deleted {
			return nil
		}
		return fmt.Errorf("its phase is %s", m.observed.last(name).Status.Phase)
	})
}

// checkEnd checks how a deleted pod has ended: by itself within its grace period, or
// killed after it.
func (m *member) checkEnd(next program, name string, signaled time.Time) {
	m.t.Helper()
	pod := m.observed.last(name)
	require.Len(m.t, pod.Status.ContainerStatuses, 1, name)
	c := pod.Status.ContainerStatuses[0]
	if !assert.NotNil(m.t, c.State.Terminated, "%s: %s: %+v", next.name, name, c) {
		return
	}
	end := *c.State.Terminated
	after := end.FinishedAt.Sub(signaled.Truncate(time.Second)).Seconds()
	m.t.Logf("%s: %s: exit code %d (%s) %v seconds after the signal", next.name, name, end.ExitCode, end.Reason, after)
	if strings.HasPrefix(name, "exits") {
		assert.Equal(m.t, "9 Error ended\n", fmt.Sprintf("%d %s %s", end.ExitCode, end.Reason, end.Message), "%s: %s", next.name, name)
		return
	}
	assert.EqualValues(m.t, 137, end.ExitCode, "%s: %s", next.name, name)
	assert.GreaterOrEqual(m.t, after, float64(endingGrace-1), "%s: %s", next.name, name)
	assert.Zero(m.t, c.RestartCount, "%s: %s", next.name, name)
}
