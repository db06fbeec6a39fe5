package replay_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// An inspected runtime counts the lists of single pods: the inspections that make calls.
type inspectedRuntime struct {
	internalapi.RuntimeService
	count *atomic.Int64
}

func (r inspectedRuntime) ListPodSandbox(ctx context.Context, filter *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	if len(filter.GetLabelSelector()) > 0 {
		r.count.Add(1)
	}
	return r.RuntimeService.ListPodSandbox(ctx, filter)
}

// losesEvery loses one of so many events of a seed. It does not lose those of removals, which the agent waits for.
func losesEvery(n, seed uint64) func(*runtimeapi.ContainerEventResponse) bool {
	return func(e *runtimeapi.ContainerEventResponse) bool {
		h := fnv.New64a()
		fmt.Fprint(h, seed, e.ContainerId, e.ContainerEventType)
		return h.Sum64()%n == 0
	}
}

// A replayed agent has the announced statuses that the recorded one had, and makes the calls that the recorded one made.
func TestAnnouncedStatusesAreReplayed(t *testing.T) {
	for seed := range *seeds {
		for name, cfg := range map[string]nodeConfig{
			"announced":      {},
			"with losses":    {loses: losesEvery(4, seed)},
			"with errors":    {errors: 20, loses: losesEvery(8, seed)},
			"without events": {loses: losesEvery(1, seed)},
			"reads":          {reads: true},
			"reads, losses":  {reads: true, loses: losesEvery(4, seed)},
		} {
			cfg.seed, cfg.latency = seed, 20*time.Millisecond
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				r := open(t, recordNode(t, cfg, busy))
				recorded, announced := 0, 0
				for f := range r.Frames() {
					if f.Announced != nil {
						announced++
					}
					if f.Call != nil && f.Call.Method == "ListPodSandbox" && strings.Contains(string(f.Call.Request), "labelSelector") {
						recorded++
					}
				}
				var count atomic.Int64
				result, err := replay.Run(t.Context(), r, replay.Options{AdjustRuntime: func(c *cri.Config) { c.Runtime = inspectedRuntime{c.Runtime, &count} }})
				require.NoError(t, err)
				t.Logf("compared %d, unrecorded %d, announced %d, inspections with calls: recorded %d, replayed %d", result.Compared, result.Unrecorded, announced, recorded, count.Load())
				assert.Nil(t, result.Divergence, "%v", result.Divergence)
				assert.Equal(t, cfg.reads || name == "without events", announced == 0)
				assert.InDelta(t, recorded, count.Load(), float64(recorded)/5+4, "inspections with calls")
			})
		}
	}
}

func TestAnAnnouncedFrameOfAHostileRecordingIsHarmless(t *testing.T) {
	header := record.Frame{Header: &record.Header{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), File: 1}}
	frames := []record.Frame{header, {At: time.Second, Event: &record.Event{Message: []byte(`{"podSandboxStatus":{"metadata":{"uid":"u"}},"containersStatuses":[{},{"id":"c"}]}`)}}}
	for _, uid := range []string{"", "u", "v"} {
		for _, empty := range []bool{false, true} {
			f := record.Frame{At: 2 * time.Second, Announced: &record.Announced{Empty: empty}}
			f.Announced.Pod = types.UID(uid)
			frames = append(frames, f)
		}
	}
	r, err := replay.Read(sequence(frames))
	require.NoError(t, err)
	_, err = replay.Run(t.Context(), r, replay.Options{})
	assert.NoError(t, err)
}
