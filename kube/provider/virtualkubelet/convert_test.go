package virtualkubelet

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestLogOptions(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	assert.Equal(t, &v1.PodLogOptions{}, logOptions(api.ContainerLogOpts{}))
	assert.Equal(t, &v1.PodLogOptions{
		Follow: true, Previous: true, Timestamps: true, TailLines: new(int64(1)), LimitBytes: new(int64(2)),
		SinceSeconds: new(int64(3)), SinceTime: new(metav1.NewTime(at)),
	}, logOptions(api.ContainerLogOpts{Follow: true, Previous: true, Timestamps: true, Tail: 1, LimitBytes: 2, SinceSeconds: 3, SinceTime: at}))
}

func TestTheTotalOfANodeDoesNotDecrease(t *testing.T) {
	pod := func(uid string, core, memory uint64) statsv1alpha1.PodStats {
		return statsv1alpha1.PodStats{
			PodRef: statsv1alpha1.PodReference{UID: uid},
			CPU:    &statsv1alpha1.CPUStats{UsageCoreNanoSeconds: &core, UsageNanoCores: new(uint64(5))},
			Memory: &statsv1alpha1.MemoryStats{WorkingSetBytes: &memory},
		}
	}
	unmeasured := statsv1alpha1.PodStats{PodRef: statsv1alpha1.PodReference{UID: "a"}}
	var total total
	for i, step := range []struct {
		pods         []statsv1alpha1.PodStats
		core, memory uint64
	}{
		{pods: []statsv1alpha1.PodStats{pod("a", 10, 1), pod("b", 20, 2)}, core: 30, memory: 3},
		{pods: []statsv1alpha1.PodStats{pod("a", 15, 1), pod("b", 20, 4)}, core: 35, memory: 5},
		{pods: []statsv1alpha1.PodStats{unmeasured, pod("b", 21, 4)}, core: 36, memory: 4},
		{pods: []statsv1alpha1.PodStats{pod("b", 30, 4)}, core: 45, memory: 4},
		{pods: []statsv1alpha1.PodStats{pod("b", 1, 4)}, core: 46, memory: 4}, // restarted
	} {
		var n statsv1alpha1.NodeStats
		total.add(&n, step.pods)
		assert.Equal(t, step.core, *n.CPU.UsageCoreNanoSeconds, "step %d", i)
		assert.Equal(t, step.memory, *n.Memory.WorkingSetBytes, "step %d", i)
	}
	var n statsv1alpha1.NodeStats
	total.add(&n, nil)
	assert.Nil(t, n.Memory, "no pod was measured")
	assert.EqualValues(t, 46, *n.CPU.UsageCoreNanoSeconds, "of terminated pods")
}

// terminal is an api.AttachIO with sizes alone.
type terminal struct {
	api.AttachIO
	sizes chan api.TermSize
}

func (terminal) Stdin() io.Reader              { return nil }
func (terminal) Stdout() io.WriteCloser        { return nil }
func (terminal) Stderr() io.WriteCloser        { return nil }
func (terminal) TTY() bool                     { return true }
func (t terminal) Resize() <-chan api.TermSize { return t.sizes }

// A size that is not received, and a channel that is not closed, leave no goroutine.
func TestSizesArePassedOnUntilTheCallReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		from := terminal{sizes: make(chan api.TermSize, 2)}
		from.sizes <- api.TermSize{Width: 80, Height: 24}
		from.sizes <- api.TermSize{Width: 81, Height: 25}
		s := streams(ctx, from)
		assert.True(t, s.TTY)
		assert.True(t, s.Stdin == nil && s.Stdout == nil && s.Stderr == nil)
		assert.Equal(t, runtime.TerminalSize{Width: 80, Height: 24}, <-s.Resize)
		cancel()

		closed := terminal{sizes: make(chan api.TermSize)}
		close(closed.sizes)
		streams(t.Context(), closed)
	})
}
