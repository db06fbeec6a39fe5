package provider_test

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A plain runtime has no optional interfaces, and its pods have no addresses.
type plain struct{ runtime.Runtime }

func (plain) Unwrap() any { return nil }

func (p plain) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	s, err := p.Runtime.PodStatus(ctx, uid)
	if err == nil {
		s.IPs = nil
		for i := range s.Sandboxes {
			s.Sandboxes[i].IPs = nil
		}
	}
	return s, err
}

// Without the log, the pod would not become ready and nothing would report why.
func TestProbesThatTheRuntimeCannotCarryOutAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		p, err := provider.New(provider.Config{
			Runtime: plain{new(runtimetest.Runtime)},
			Logger:  slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		pod := web("a")
		probe := func(h v1.ProbeHandler) *v1.Probe {
			return &v1.Probe{ProbeHandler: h, PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
		}
		pod.Spec.Containers[0].ReadinessProbe = probe(v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt32(80)}})
		pod.Spec.Containers[0].LivenessProbe = probe(v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"true"}}})
		require.NoError(t, p.CreatePod(ctx, pod))
		time.Sleep(time.Minute)
		cancel()
		require.NoError(t, <-done)
		warnings := regexp.MustCompile(`(?m)msg="Failed to run probe, will retry".* containerName=app probe=(\w+) err=(.*)$`).FindAllStringSubmatch(log.String(), -1)
		errs := map[string]string{}
		for _, w := range warnings {
			errs[w[1]] = w[2]
		}
		assert.Len(t, warnings, 2, "one per probe, in 60 periods:\n%s", &log)
		assert.Contains(t, errs["Readiness"], "no IP")
		assert.Contains(t, errs["Liveness"], "no handler for exec")
	})
}
