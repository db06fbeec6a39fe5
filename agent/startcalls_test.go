package agent_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/status"
)

// bareStart is the calls of a client that only starts a pod of one container: the lower bound.
var bareStart = map[string]float64{
	"RunPodSandbox": 1, "PodSandboxStatus": 1, "ImageStatus": 1, "CreateContainer": 1, "StartContainer": 1,
}

// A callTally counts calls by method. Methods of the engine, which make those of the CRI, begin with "-".
type callTally struct {
	writeTime time.Duration // of calls that start a pod, up to twice that

	mu    sync.Mutex
	calls map[string]int
}

func (c *callTally) add(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[method]++
}

// The durations of the calls of the simulated runtime, and of other parts of a start.
const (
	readTime  = time.Millisecond
	eventTime = 200 * time.Microsecond // from a change to its event
	stepTime  = time.Microsecond       // from the end of SyncPod to the request of a relist
)

// fault counts and delays a call. Starts take different times.
func (c *callTally) fault(call fake.Call) fake.Fault {
	c.add(call.Method)
	switch call.Method {
	case "RunPodSandbox", "CreateContainer", "StartContainer":
		return fake.Fault{Delay: c.writeTime + time.Duration(call.Number%10)*c.writeTime/10}
	case "GetContainerEvents":
		return fake.Fault{}
	default:
		return fake.Fault{Delay: readTime}
	}
}

// A tallied is the engine, whose calls are counted and whose events arrive after eventTime.
type tallied struct {
	*cri.Runtime
	tally *callTally
}

func (r tallied) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	r.tally.add("- SyncPod")
	return r.Runtime.SyncPod(ctx, req)
}

func (r tallied) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	r.tally.add("- PodStatus")
	return r.Runtime.PodStatus(ctx, uid)
}

func (r tallied) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	r.tally.add("- Pods")
	return r.Runtime.Pods(ctx)
}

func (r tallied) Watch(ctx context.Context, changed func(uid types.UID)) error {
	return r.Runtime.Watch(ctx, func(uid types.UID) { time.AfterFunc(eventTime, func() { changed(uid) }) })
}

// A laterRelister lets time pass before a request, as it does between any two statements in
// real time.
type laterRelister struct{ pipeline.Relister }

func (r laterRelister) RequestRelist(uid types.UID) {
	time.Sleep(stepTime)
	r.Relister.RequestRelist(uid)
}

// The calls of the runtime from the first sync of 110 pods until the status of each is Running, and for
// ten seconds after that. Time is virtual, so the count does not depend on the machine.
func TestStartingPodsMakesFewCalls(t *testing.T) {
	for _, writeTime := range []time.Duration{20 * time.Millisecond, 250 * time.Millisecond} {
		t.Run(writeTime.String(), func(t *testing.T) { testCallsOfStarts(t, writeTime) })
	}
}

func testCallsOfStarts(t *testing.T, writeTime time.Duration) {
	const podCount = 110
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		tally := &callTally{writeTime: writeTime, calls: map[string]int{}}
		fake, err := fakecri.New(fakecri.Config{Faults: tally.fault})
		require.NoError(t, err)
		_, err = fake.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "main"}, nil, nil)
		require.NoError(t, err)
		engine, err := cri.New(cri.Config{Name: "fakecri", Runtime: fake, Images: fake, Dirs: cri.Dirs{PodLogs: dir + "/logs", Root: dir}})
		require.NoError(t, err)
		var specs []*v1.Pod
		for i := range podCount {
			name := fmt.Sprint("pod-", i)
			specs = append(specs, &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
				Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyAlways, Containers: []v1.Container{{Name: "main", Image: "main"}}},
			})
		}
		source, sink := new(podsource.Memory), new(status.MemorySink)
		source.Set()
		cfg := agent.Config{
			Runtime: tallied{engine, tally}, Sources: map[string]podsource.PodSource{podsource.FileSource: source}, Sink: sink,
		}
		cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *pipeline.Config) { c.Relister = laterRelister{c.Relister} }))
		a, err := agent.New(cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, a.Run(ctx)) })
		time.Sleep(5 * time.Second) // the lists after the start
		tally.mu.Lock()
		clear(tally.calls)
		tally.mu.Unlock()
		begun := time.Now()
		source.Set(specs...)
		for _, pod := range specs {
			_, err := sink.Wait(ctx, pod.UID, func(s v1.PodStatus) bool { return s.Phase == v1.PodRunning })
			require.NoError(t, err)
		}
		t.Logf("all pods are Running after %v", time.Since(begun))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		table, sum := callsPerPod(tally.calls, podCount)
		t.Log(table)
		assert.InDelta(t, 5, sum/podCount, 0.1, "the lower bound: the last event of a start has the status of the pod")
		assert.LessOrEqual(t, tally.calls["- PodStatus"], podCount+podCount/20)
		cancel()
		wg.Wait()
	})
}

// callsPerPod formats calls as a table, and returns the sum of the calls of the runtime.
func callsPerPod(calls map[string]int, pods int) (table string, sum float64) {
	var b strings.Builder
	fmt.Fprintf(&b, "%d pods of one container\n%-22s %8s %8s %12s\n", pods, "method", "calls", "per pod", "bare client")
	for _, method := range slices.Sorted(maps.Keys(calls)) {
		if !strings.HasPrefix(method, "-") {
			sum += float64(calls[method])
		}
		fmt.Fprintf(&b, "%-22s %8d %8.2f %12.0f\n", method, calls[method], float64(calls[method])/float64(pods), bareStart[method])
	}
	bare := 0.0
	for _, n := range bareStart {
		bare += n
	}
	fmt.Fprintf(&b, "%-22s %8.0f %8.2f %12.0f\n", "all CRI calls", sum, sum/float64(pods), bare)
	return b.String(), sum
}
