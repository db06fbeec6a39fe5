package agent_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/prober"
)

func TestEventsThatAreNotRecordedAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer // slog's handler has a lock
		n := start(t, agent.Config{
			Subsystems: agent.Subsystems{Probes: prober.Handlers{TCPSocket: scripted{}}},
			Logger:     slog.New(slog.NewTextHandler(&log, nil)),
		})
		dead := newPod("dead")
		dead.Spec.Containers[0].LivenessProbe = &v1.Probe{
			ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{}}, PeriodSeconds: 10, FailureThreshold: 1, SuccessThreshold: 1, TimeoutSeconds: 1,
		}
		n.source.Set(dead)
		time.Sleep(time.Minute)
		assert.NoError(t, n.stop())
		assert.Contains(t, log.String(), `msg="Event occurred" object=default/dead kind=Pod type=Warning reason=Unhealthy message="Liveness probe failed: not yet"`)
	})
}
