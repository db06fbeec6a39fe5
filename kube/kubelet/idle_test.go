package kubelet

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/podwing"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/status"
)

// callCounter counts CRI calls by method.
type callCounter struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *callCounter) count(call fake.Call) fake.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[call.Method]++
	return fake.Fault{}
}

// in returns the calls in d, and their sum.
func (c *callCounter) in(d time.Duration) (calls map[string]int, sum int) {
	c.mu.Lock()
	clear(c.calls)
	c.mu.Unlock()
	time.Sleep(d)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.calls {
		sum += n
	}
	return maps.Clone(c.calls), sum
}

// All components of a node that call the runtime periodically, with a runtime that has events: agent,
// eviction, stats and image garbage collection. The log rotator, which waits for the kernel and
// therefore cannot run in virtual time, lists by listed.Pods, which makes no calls.
func TestAnIdleNodeMakesFewCallsFromTheFirstMinuteOn(t *testing.T) {
	const podCount = 110
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		counter := &callCounter{calls: map[string]int{}}
		fake, err := fakecri.New(fakecri.Config{Faults: counter.count})
		require.NoError(t, err)
		engine, err := cri.New(cri.Config{Name: "fakecri", Runtime: fake, Images: fake, Dirs: cri.Dirs{PodLogs: dir + "/logs", Root: dir}})
		require.NoError(t, err)
		rt := machine.PodRuntime{Runtime: engine}
		var specs []*v1.Pod
		for i := range podCount {
			name := fmt.Sprint("pod-", i)
			specs = append(specs, &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
				Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "main", Image: "main"}}},
			})
		}
		source := new(podsource.Memory)
		source.Set(specs...)
		a, err := agent.New(agent.Config{Runtime: engine, Sources: map[string]podsource.PodSource{podsource.FileSource: source}, Sink: new(status.MemorySink)})
		require.NoError(t, err)
		p := stores.Pods{Table: a.Table()}
		usage, err := stats.New(stats.Config{
			NodeName: "node", Runtime: machine.Listed{PodRuntime: rt, Table: p.Table}, Root: fstest.MapFS{}, NodeDir: "/var",
			Disk: func(string) (stats.Disk, error) { return stats.Disk{Capacity: 1000, Available: 900}, nil },
		})
		require.NoError(t, err)
		policy, _, err := stores.EvictionPolicy(decode(t, ""))
		require.NoError(t, err)
		evictions, err := eviction.New(eviction.Config{
			Policy: policy, Summary: podwing.SummaryOf(usage), Pods: p,
		})
		require.NoError(t, err)
		images, err := imagegc.New(imagegc.Config{Store: engine, Space: imagegc.SpaceOf(engine)})
		require.NoError(t, err)

		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, run := range []func(context.Context) error{a.Run, usage.Run, evictions.Run, images.Run} {
			wg.Go(func() { assert.NoError(t, run(ctx)) })
		}
		starts, sum := counter.in(5 * time.Second)
		t.Logf("start of %d pods: %d calls: %v", podCount, sum, starts)
		require.Equal(t, podCount, starts["StartContainer"])
		for minute := range 10 {
			calls, sum := counter.in(time.Minute)
			t.Logf("minute %d: %d calls: %v", minute+1, sum, calls)
			limit := 8
			if minute%5 == 4 {
				limit = 16 // image garbage collection and PLEG's list
			}
			assert.LessOrEqual(t, sum, limit, "minute %d: %v", minute+1, calls)
		}
		_, sum = counter.in(time.Hour)
		t.Logf("the next hour: %.1f calls a minute", float64(sum)/60)
		assert.Less(t, float64(sum)/60, 9.0)
		clear(counter.calls)
		got, err := machine.Listed{PodRuntime: rt, Table: p.Table}.Pods(ctx)
		require.NoError(t, err)
		assert.Len(t, got, podCount)
		assert.Empty(t, counter.calls)
		cancel()
		wg.Wait()
	})
}
