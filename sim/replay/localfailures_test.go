package replay_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// unreadServices have not been read until a time.
type unreadServices struct {
	cri.Objects
	until *time.Time
}

func (o unreadServices) Services(context.Context, string) ([]*v1.Service, bool) {
	return nil, !time.Now().Before(*o.until)
}

// An attempt to create a container that failed before a call of the CRI is known from the status.
func TestALocalFailureIsReplayed(t *testing.T) {
	until := new(time.Time)
	cfg := nodeConfig{latency: 20 * time.Millisecond, seed: 1}
	cfg.adjust = adjusting(func(c *cri.Config) { c.Providers.Objects = unreadServices{until: until} })
	r := open(t, recordNode(t, cfg, func(n node) {
		*until = time.Now().Add(45 * time.Second)
		n.source.Set(pod("web", container("main", "nginx")))
		time.Sleep(3 * time.Minute)
	}))
	reasons, creations := map[string]bool{}, 0
	for f := range r.Frames() {
		if f.Status != nil && f.Status.Status != nil && f.Status.Status.ContainerStatuses[0].State.Waiting != nil {
			reasons[f.Status.Status.ContainerStatuses[0].State.Waiting.Reason] = true
		}
		if f.Call != nil && f.Call.Method == "CreateContainer" {
			creations++
		}
	}
	require.Contains(t, reasons, "CreateContainerConfigError")
	require.Equal(t, 1, creations)
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
}
