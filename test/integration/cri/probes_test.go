package cri_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

// probesOnContainerd checks the handlers of package prober with containers of a real
// runtime.
func probesOnContainerd(t *testing.T, s *sharedEngine) {
	target := func(a *enginePod, probe v1.ProbeHandler) prober.Target {
		st := a.status()
		to := prober.Target{
			Pod: a.pod, Container: &a.pod.Spec.Containers[0], Probe: &v1.Probe{ProbeHandler: probe},
			ContainerID: st.Container("web").ID, Timeout: time.Minute,
		}
		if len(st.IPs) > 0 {
			to.PodIP = st.IPs[0]
		}
		return to
	}
	shell := func(text string) v1.ProbeHandler {
		return v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", text}}}
	}
	exec := prober.Exec{Runtime: s.rt}

	t.Run("the exit code of a command is the result prober-35 prober-36", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", serves))
		a.pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "WORD", Value: "fine"}}
		a.runs()
		out, err := exec.Probe(t.Context(), target(a, shell("echo $(WORD); echo aside >&2")))
		require.NoError(t, err)
		assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: "fine\naside\n"}, out)
		out, err = exec.Probe(t.Context(), target(a, shell("echo sick; exit 3")))
		require.NoError(t, err)
		assert.Equal(t, prober.Outcome{Result: runtime.ProbeFailure, Output: "sick\n"}, out)
		out, err = exec.Probe(t.Context(), target(a, shell("head -c 1000000 /dev/zero | tr '\\0' x")))
		require.NoError(t, err)
		assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: strings.Repeat("x", 10<<10)}, out)

		// A command that cannot run is an error, not a failed probe (prober-38).
		to := target(a, shell("true"))
		to.ContainerID = "containerd://unknown"
		_, err = exec.Probe(t.Context(), to)
		require.Error(t, err)
	})

	t.Run("100 commands that time out leave no process prober-37 prober-39", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", serves))
		a.runs()
		to := target(a, v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"sleep", "1234"}}})
		to.Timeout = time.Second
		slots := make(chan struct{}, 10)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				out, err := exec.Probe(t.Context(), to)
				assert.NoError(t, err)
				assert.Equal(t, prober.Outcome{Result: runtime.ProbeFailure, Output: `command timed out: "sleep 1234" timed out after 1s`}, out)
			})
		}
		wg.Wait()
		assert.NotContains(t, a.exec(a.status().Container("web"), "ps"), "sleep 1234")
	})

	t.Run("a command whose children hold its output fails in time prober-37", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", serves))
		a.runs()
		to := target(a, shell("sleep 600; true"))
		to.Timeout = time.Second
		begun := time.Now()
		out, err := exec.Probe(t.Context(), to)
		require.NoError(t, err)
		assert.Equal(t, prober.Outcome{Result: runtime.ProbeFailure, Output: `command timed out: "sh -c sleep 600; true" timed out after 1s`}, out)
		assert.Less(t, time.Since(begun), 90*time.Second)
	})

	t.Run("a port of a pod prober-41 prober-55", func(t *testing.T) {
		t.Parallel()
		a := s.enginePod(t, script("web", "mkdir -p /www && echo welcome >/www/index.html && exec httpd -f -p 8080 -h /www"))
		a.runs()
		get := target(a, v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt(8080)}})
		end := time.Now().Add(time.Minute)
		for {
			out, err := prober.HTTPGet{}.Probe(t.Context(), get)
			require.NoError(t, err)
			if out.Result == runtime.ProbeSuccess {
				assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess, Output: "welcome\n"}, out)
				break
			}
			require.True(t, time.Now().Before(end), "%v", out)
			wait(t, 50*time.Millisecond)
		}
		get.Probe.HTTPGet.Path = "/nowhere"
		out, err := prober.HTTPGet{}.Probe(t.Context(), get)
		require.NoError(t, err)
		assert.Equal(t, "HTTP probe failed with statuscode: 404", out.Output)
		assert.Contains(t, out.Detail, "404")

		knock := target(a, v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(8080)}})
		out, err = prober.TCPSocket{}.Probe(t.Context(), knock)
		require.NoError(t, err)
		assert.Equal(t, prober.Outcome{Result: runtime.ProbeSuccess}, out)
		knock.Probe.TCPSocket.Port = intstr.FromInt(8081)
		out, err = prober.TCPSocket{}.Probe(t.Context(), knock)
		require.NoError(t, err)
		assert.Equal(t, runtime.ProbeFailure, out.Result)
		assert.Contains(t, out.Output, "connection refused")
	})
}
