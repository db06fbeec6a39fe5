package prober_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestTheAddressToProbe(t *testing.T) {
	ready := runtime.SandboxStatus{ID: "2", State: runtime.SandboxReady, IPs: []string{"10.0.0.2", "fd00::2"}}
	ended := runtime.SandboxStatus{ID: "1", State: runtime.SandboxNotReady, IPs: []string{"10.0.0.1"}}
	for name, tc := range map[string]struct {
		status runtime.PodStatus
		host   bool
		want   string
	}{
		"of the pod":                     {status: runtime.PodStatus{IPs: []string{"10.0.0.9"}, Sandboxes: []runtime.SandboxStatus{ready}}, want: "10.0.0.9"},
		"else of the newest sandbox":     {status: runtime.PodStatus{Sandboxes: []runtime.SandboxStatus{ready, ended}}, want: "10.0.0.2"},
		"not of one that is not ready":   {status: runtime.PodStatus{Sandboxes: []runtime.SandboxStatus{ended, ready}}, want: ""},
		"of the node in its own network": {status: runtime.PodStatus{Sandboxes: []runtime.SandboxStatus{ready}}, host: true, want: "192.0.2.1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				tc.status.Containers = []runtime.ContainerStatus{{ID: "c", Name: "web", State: runtime.ContainerRunning}}
				m, err := prober.New(prober.Config{
					Handlers: prober.Handlers{TCPSocket: handler(func(_ context.Context, t prober.Target) (prober.Outcome, error) {
						got = append(got, t.PodIP)
						return success.Outcome, nil
					})},
					Status:  func(types.UID) (*runtime.PodStatus, error) { return &tc.status, nil },
					HostIPs: func() []string { return []string{"192.0.2.1"} },
				})
				require.NoError(t, err)
				defer run(t, m)()
				p := pod("u", container("web", "R", nil))
				p.Spec.HostNetwork = tc.host
				m.Add(p)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				require.NotEmpty(t, got)
				assert.Equal(t, tc.want, got[0])
			})
		})
	}
}

func TestAProbeThatCannotBeCarriedOutIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log output
		var failed atomic.Pointer[string]
		m, err := prober.New(prober.Config{
			Handlers: prober.Handlers{TCPSocket: handler(func(context.Context, prober.Target) (prober.Outcome, error) {
				if text := failed.Load(); text != nil {
					return prober.Outcome{}, errors.New(*text)
				}
				return success.Outcome, nil
			})},
			Status: func(types.UID) (*runtime.PodStatus, error) {
				return &runtime.PodStatus{Containers: []runtime.ContainerStatus{{ID: "c", Name: "web", State: runtime.ContainerRunning}}}, nil
			},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, err)
		defer run(t, m)()
		failed.Store(new("the pod has no IP yet"))
		m.Add(pod("u", container("web", "R", nil)))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), "not for each run")
		assert.Contains(t, log.String(), `msg="Failed to run probe, will retry" pod=default/pod-u podUID=u containerName=web probe=Readiness err="the pod has no IP yet"`)

		failed.Store(nil)
		time.Sleep(time.Minute)
		failed.Store(new("exec: no such runtime"))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 2, strings.Count(log.String(), "level=WARN"))
	})
}

// An output is a log that goroutines may write to.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
