package cri_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/runtime"
)

func execHook(script string) *v1.LifecycleHandler {
	return &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"sh", "-c", script}}}
}

// hooksOnContainerd checks the effects of hooks on a container and on the duration of
// its stop (section 4.12).
func hooksOnContainerd(t *testing.T, s *sharedEngine) {
	t.Run("postStart runs in the container rt-99", func(t *testing.T) {
		t.Parallel()
		web := script("web", serves)
		web.Lifecycle = &v1.Lifecycle{PostStart: execHook("echo hooked > /proc/1/fd/1")}
		a := s.enginePod(t, web)
		a.runs()
		a.waitsForLine("web", "hooked\n")
		assert.Equal(t, 1, strings.Count(a.log("web", 0), "hooked\n"))
	})

	t.Run("a postStart that fails stops the container rt-103", func(t *testing.T) {
		t.Parallel()
		web := script("web", serves)
		web.Lifecycle = &v1.Lifecycle{PostStart: execHook("echo out of luck; exit 7")}
		a := s.enginePod(t, web)
		a.pod.Spec.RestartPolicy = v1.RestartPolicyNever
		failed := a.failsWith("web", "PostStartHookError")
		assert.Equal(t, runtime.StartContainer, failed.Kind)
		assert.Contains(t, failed.Message, "out of luck")
		st := a.until("stopped", func(st *runtime.PodStatus) bool { return is(st, "web", runtime.ContainerExited) })
		assert.EqualValues(t, 0, st.Container("web").ExitCode, "the container received TERM")
		assert.Equal(t, []int64{2}, a.graces(st.Container("web")))
		seen := a.events()
		assert.Contains(t, seen, "Warning FailedPostStartHook spec.containers{web}: PostStartHook failed")
		assert.Contains(t, seen, "Normal Killing spec.containers{web}: FailedPostStartHook")
	})

	t.Run("preStop spends the grace rt-105", func(t *testing.T) {
		t.Parallel()
		web := script("web", "trap '' TERM; echo up; while true; do sleep 0.1; done")
		web.Lifecycle = &v1.Lifecycle{PreStop: execHook("sleep 3; echo hooked > /proc/1/fd/1")}
		a := s.enginePod(t, web)
		a.pod.Spec.TerminationGracePeriodSeconds = new(int64(10))
		a.runs()
		a.waitsForLine("web", "up\n")
		c := a.kill().Container("web")
		assert.EqualValues(t, 137, c.ExitCode, "the container ignores TERM")
		assert.Equal(t, "up\nhooked\n", a.log("web", 0))
		graces := a.graces(c)
		require.Len(t, graces, 1)
		assert.GreaterOrEqual(t, graces[0], int64(2))
		assert.LessOrEqual(t, graces[0], int64(7), "the hook took three seconds of ten")
	})

	t.Run("preStop may sleep rt-102", func(t *testing.T) {
		t.Parallel()
		web := script("web", "trap 'exit 5' TERM; echo up; while true; do sleep 0.1; done")
		web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 1}}}
		a := s.enginePod(t, web)
		a.pod.Spec.TerminationGracePeriodSeconds = new(int64(30))
		a.runs()
		a.waitsForLine("web", "up\n")
		c := a.kill().Container("web")
		assert.EqualValues(t, 5, c.ExitCode)
		graces := a.graces(c)
		require.Len(t, graces, 1)
		assert.LessOrEqual(t, graces[0], int64(29))
	})

	t.Run("a hook requests a server of the container rt-100", func(t *testing.T) {
		t.Parallel()
		web := script("web", "mkdir /www; httpd -f -vv -p 8080 -h /www & trap 'exit 0' TERM; "+
			"until wget -q -O- http://127.0.0.1:8080/ready 2>&1 | grep -q 404; do sleep 0.1; done; echo up; while true; do sleep 0.1; done")
		web.Ports = []v1.ContainerPort{{Name: "http", ContainerPort: 8080}}
		web.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/bye", Port: intstr.FromString("http")}}}
		a := s.enginePod(t, web)
		a.pod.Spec.TerminationGracePeriodSeconds = new(int64(10))
		a.runs()
		a.waitsForLine("web", "up\n")
		a.kill()
		assert.Contains(t, a.log("web", 0), "/bye")
		for _, e := range a.events() {
			assert.NotContains(t, e, "FailedPreStopHook", "404 is a success (rt-101)")
		}
	})

	t.Run("a hook that hangs does not keep the pod from being deleted", func(t *testing.T) {
		t.Parallel()
		web := script("web", serves)
		web.Lifecycle = &v1.Lifecycle{PostStart: execHook("echo hooked > /proc/1/fd/1; sleep 1000"), PreStop: execHook("sleep 1000")}
		a := s.enginePod(t, web)
		a.pod.Spec.TerminationGracePeriodSeconds = new(int64(3))
		ctx, deleted := context.WithCancel(t.Context())
		defer deleted()
		done := make(chan error, 1)
		go func() {
			_, err := a.rt.SyncPod(ctx, runtime.SyncRequest{Pod: a.pod})
			done <- err
		}()
		for !is(a.status(), "web", runtime.ContainerRunning) {
			wait(t, 50*time.Millisecond)
		}
		a.waitsForLine("web", "hooked\n")
		deleted()
		require.ErrorIs(t, <-done, context.Canceled)
		begun := time.Now()
		c := a.kill().Container("web")
		assert.Equal(t, runtime.ContainerExited, c.State)
		assert.Less(t, time.Since(begun), time.Minute, "the hook is cut off")
		graces := a.graces(c)
		require.Len(t, graces, 1)
		assert.LessOrEqual(t, graces[0], int64(2), "the hook took the grace, and TERM has the least there is")
	})

	t.Run("a stopSignal", func(t *testing.T) {
		t.Parallel()
		web := script("web", "trap 'exit 11' USR1; trap 'exit 15' TERM; echo up; while true; do sleep 0.1; done")
		web.Lifecycle = &v1.Lifecycle{StopSignal: new(v1.SIGUSR1)}
		a := s.enginePod(t, web)
		a.pod.Spec.TerminationGracePeriodSeconds = new(int64(10))
		a.runs()
		a.waitsForLine("web", "up\n")
		want := int32(11)
		if strings.HasPrefix(s.daemon.Version, "1.") {
			want = 15 // it does not know the field, and sends TERM
		}
		ended := a.kill().Container("web")
		assert.Equal(t, want, ended.ExitCode)
		if want == 11 {
			assert.Equal(t, v1.SIGUSR1, ended.StopSignal)
		}
	})
}
