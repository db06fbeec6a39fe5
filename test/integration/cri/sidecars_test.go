package cri_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// scriptSidecar returns an init container that runs as long as the pod does.
func scriptSidecar(name, text string) v1.Container {
	c := script(name, text)
	c.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	return c
}

// probeOf returns a probe that is never run; tests set its results.
func probeOf(command string) *v1.Probe {
	return &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{command}}}}
}

// tracer returns the script of a container that appends a line to the pod's trace
// when it starts and when it receives SIGTERM.
func tracer(name string) string {
	return "trap 'echo " + name + " stops >> /v/trace; exit 0' TERM; echo " + name + " >> /v/trace; while true; do sleep 0.1; done"
}

// sidecarsOnContainerd checks the order in which the containers of a pod start and stop
// (sections 4.8 and 4.14).
func sidecarsOnContainerd(t *testing.T, s *sharedEngine) {
	t.Run("begin in order and end in reverse rt-61, rt-116", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", tracer("web")))
		a.pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
		a.pod.Spec.InitContainers = []v1.Container{
			script("first", "echo first >> /v/trace"),
			scriptSidecar("net", tracer("net")),
			// It waits for the sidecar that was started before it.
			script("second", "until grep -q net /v/trace; do sleep 0.1; done; echo second >> /v/trace"),
			scriptSidecar("proxy", "until grep -q second /v/trace; do sleep 0.1; done; "+tracer("proxy")),
		}
		trace := filepath.Join(a.volume(), "trace")
		a.runs()
		a.until("all have begun", func(*runtime.PodStatus) bool {
			text := readFile(t, trace)
			return strings.Contains(text, "proxy\n") && strings.Contains(text, "web\n")
		})
		st := a.kill()
		lines := strings.Fields(strings.ReplaceAll(readFile(t, trace), " stops", "-stops"))
		require.Len(t, lines, 8)
		assert.Equal(t, []string{"first", "net", "second"}, lines[:3])
		assert.ElementsMatch(t, []string{"proxy", "web"}, lines[3:5], "a running sidecar counts as started")
		assert.Equal(t, []string{"web-stops", "proxy-stops", "net-stops"}, lines[5:])
		for _, name := range []string{"web", "proxy", "net"} {
			assert.EqualValues(t, 0, st.Container(name).ExitCode, name)
		}
		assert.False(t, st.Container("second").StartedAt.Before(st.Container("net").StartedAt))
		assert.False(t, st.Container("web").StartedAt.Before(st.Container("proxy").StartedAt))
	})

	t.Run("are restarted during initialization rt-63", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", serves))
		a.pod.Spec.RestartPolicy = v1.RestartPolicyNever // which is not for sidecars
		a.pod.Spec.InitContainers = []v1.Container{
			scriptSidecar("net", "echo net >> /v/net; [ $(wc -l < /v/net) = 2 ] || exit 1; "+serves),
			script("setup", "until [ $(wc -l < /v/net) = 2 ]; do sleep 0.1; done"),
		}
		a.volume()
		st := a.runs()
		assert.EqualValues(t, 1, st.Container("net").RestartCount)
		assert.Equal(t, runtime.ContainerRunning, st.Container("net").State)
		assert.EqualValues(t, 0, st.Container("setup").RestartCount)
		assert.EqualValues(t, 0, st.Container("setup").ExitCode)
	})

	t.Run("are waited for until they have started up rt-60", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", serves))
		net := scriptSidecar("net", serves)
		net.StartupProbe, net.LivenessProbe = probeOf("true"), probeOf("true")
		a.pod.Spec.InitContainers = []v1.Container{net}
		a.probes = &runtime.ProbeResults{}
		st := a.until("the sidecar runs", func(st *runtime.PodStatus) bool { return is(st, "net", runtime.ContainerRunning) })
		for range 3 {
			a.sync(nil)
		}
		require.Nil(t, a.status().Container("web"))
		a.probes = &runtime.ProbeResults{Startup: map[string]runtime.ProbeResult{st.Container("net").ID: runtime.ProbeSuccess}}
		assert.EqualValues(t, 0, a.runs().Container("net").RestartCount)

		// A later failure is a failure of its liveness probe (rt-62).
		a.probes.Liveness = map[string]runtime.ProbeResult{st.Container("net").ID: runtime.ProbeFailure}
		st = a.until("it was started again", func(st *runtime.PodStatus) bool {
			c := st.Container("net")
			return c.RestartCount == 1 && c.State == runtime.ContainerRunning
		})
		assert.EqualValues(t, 0, st.Container("web").RestartCount)
		require.Empty(t, a.failures)
	})

	t.Run("go when the main containers are done rt-50", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", "sleep 0.3"))
		a.pod.Spec.RestartPolicy = v1.RestartPolicyNever
		a.pod.Spec.InitContainers = []v1.Container{scriptSidecar("net", serves)}
		st := a.until("the pod is at its end", func(st *runtime.PodStatus) bool {
			return is(st, "web", runtime.ContainerExited) && !st.Running()
		})
		assert.Equal(t, runtime.ContainerExited, st.Container("net").State)
	})

	t.Run("an init container is tried again rt-64", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", serves))
		a.pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
		a.pod.Spec.InitContainers = []v1.Container{
			script("setup", "echo try >> /v/tries; [ $(wc -l < /v/tries) = 3 ]"),
			script("then", "true"),
		}
		a.volume()
		st := a.runs()
		assert.EqualValues(t, 2, st.Container("setup").RestartCount)
		assert.EqualValues(t, 0, st.Container("setup").ExitCode)
		assert.EqualValues(t, 0, st.Container("then").RestartCount)
		assert.False(t, st.Container("then").StartedAt.Before(st.Container("setup").FinishedAt))
	})

	t.Run("a pod that may not retry is stopped rt-64", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", serves))
		a.pod.Spec.RestartPolicy = v1.RestartPolicyNever
		a.pod.Spec.InitContainers = []v1.Container{scriptSidecar("net", serves), script("setup", "exit 3"), script("then", "true")}
		st := a.until("the pod is stopped", func(st *runtime.PodStatus) bool {
			return is(st, "setup", runtime.ContainerExited) && !st.Running()
		})
		assert.EqualValues(t, 3, st.Container("setup").ExitCode)
		for range 3 {
			a.sync(nil)
		}
		st = a.status()
		assert.False(t, st.Running(), "the pod is not restarted")
		assert.Nil(t, st.Container("then"))
		assert.Nil(t, st.Container("web"))
		assert.EqualValues(t, 0, st.Container("setup").RestartCount)
		require.Empty(t, a.failures)
	})
}
