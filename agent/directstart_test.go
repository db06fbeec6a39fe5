//go:build unix

package agent_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
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
	"github.com/kubeparts/kubeparts/podsource/manifest"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// A requests is a podsource.PodSource of pods that a program requests one by one. It is a
// podsource.Func with the current set, and removes a pod when the sink has its final status.
type requests struct {
	arrived chan *v1.Pod
	ended   chan types.UID
}

func (r *requests) run(ctx context.Context, set func([]*v1.Pod)) error {
	var pods []*v1.Pod
	remove := func(uid types.UID) {
		pods = slices.DeleteFunc(pods, func(p *v1.Pod) bool { return p.UID == uid })
	}
	for {
		set(slices.Clone(pods))
		select {
		case <-ctx.Done():
			return nil
		case pod := <-r.arrived:
			pods = append(pods, pod)
		case uid := <-r.ended:
			remove(uid)
		}
		for more := true; more; { // all that has changed meanwhile is one set
			select {
			case pod := <-r.arrived:
				pods = append(pods, pod)
			case uid := <-r.ended:
				remove(uid)
			default:
				more = false
			}
		}
	}
}

// directTimes are the times of the pods of a benchmark.
type directTimes struct {
	source *requests

	mu       sync.Mutex
	set      map[types.UID]time.Time // passed to the source
	exits    map[types.UID]time.Time // of the containers, that the test has observed
	written  map[types.UID]time.Time // the first status with the exit
	ended    map[types.UID]bool      // the final status is in the sink
	accepted []time.Duration         // from set to SyncPod
	synced   []time.Duration         // from set to the end of SyncPod
	reported []time.Duration         // from the exit of the container to the sink
	writes   atomic.Int64            // of the sink
	done     chan types.UID          // a pod of ended
	took     time.Duration           // from the first set to the last final status, without the life of a container
}

// stepped records the first SyncPod of each pod.
func (d *directTimes) stepped(i pipeline.StepInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.set[i.UID]; ok && i.Step == pipeline.SyncContainers {
		d.accepted, d.synced = append(d.accepted, i.Begin.Sub(at)), append(d.synced, i.End.Sub(at))
		delete(d.set, i.UID)
	}
}

// exit records the exit of a container. A runtime in memory publishes the event before it
// calls the test, so that the status may be written by then.
func (d *directTimes) exit(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.exits[uid] = time.Now()
	if _, ok := d.written[uid]; ok {
		d.reported = append(d.reported, 0)
	}
}

// UpdatePodStatus implements status.Sink.
func (d *directTimes) UpdatePodStatus(_ context.Context, pod *v1.Pod, s v1.PodStatus) error {
	d.writes.Add(1)
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.written[pod.UID]; !ok && len(s.ContainerStatuses) > 0 && s.ContainerStatuses[0].State.Terminated != nil {
		d.written[pod.UID] = now
		if at, ok := d.exits[pod.UID]; ok {
			d.reported = append(d.reported, now.Sub(at))
		}
	}
	if status.Terminal(s.Phase) && !d.ended[pod.UID] { // delivery is at least once
		d.ended[pod.UID] = true
		d.source.ended <- pod.UID
		d.done <- pod.UID
	}
	return nil
}

// DeletePod implements status.Sink.
func (d *directTimes) DeletePod(context.Context, *v1.Pod) error { return nil }

// directLife is how long a container runs.
const directLife = 100 * time.Millisecond

// directPod returns a pod of one container.
func directPod(n int) *v1.Pod {
	name := fmt.Sprint("call-", n)
	return manifest.Default(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main", Image: "function:1"}}},
	})
}

// directRuntimes returns runtimes in memory: one that implements runtime.Runtime, and the CRI engine over
// a CRI runtime with faults. They call exited at the exit of a container.
func directRuntimes(tb testing.TB, faults func(fake.Call) fake.Fault) map[string]func(exited func(types.UID)) runtime.Runtime {
	exits := fake.Behavior{Exit: &fake.Exit{After: directLife}}
	return map[string]func(func(types.UID)) runtime.Runtime{
		"runtimetest": func(exited func(types.UID)) runtime.Runtime {
			rt := new(runtimetest.Runtime)
			rt.Observe = func(c runtimetest.Change) {
				if c.Container != nil && c.Container.State == runtime.ContainerExited && !c.Removed {
					exited(c.UID)
				}
			}
			rt.Behave("function:1", exits)
			return rt
		},
		"fakecri": func(exited func(types.UID)) runtime.Runtime {
			f, err := fakecri.New(fakecri.Config{
				Faults: faults, Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{"main": exits}},
				Observe: func(c fakecri.Change) {
					if c.Container != "" && c.To == fakecri.Exited {
						exited(types.UID(c.Pod))
					}
				},
			})
			require.NoError(tb, err)
			_, err = f.PullImage(context.Background(), &runtimeapi.ImageSpec{Image: "function:1"}, nil, nil)
			require.NoError(tb, err)
			dir := tb.TempDir()
			engine, err := cri.New(cri.Config{Name: "fakecri", Runtime: f, Images: f, Dirs: cri.Dirs{PodLogs: dir + "/logs", Root: dir}})
			require.NoError(tb, err)
			return engine
		},
	}
}

// quantile returns a quantile of durations.
func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

// directStarts passes count pods to an agent one by one, at a rate per second, and waits for their ends.
func directStarts(tb testing.TB, newRuntime func(exited func(types.UID)) runtime.Runtime, rate, count int) *directTimes {
	source := &requests{arrived: make(chan *v1.Pod, count), ended: make(chan types.UID, count)}
	times := &directTimes{source: source, set: map[types.UID]time.Time{}, exits: map[types.UID]time.Time{}, written: map[types.UID]time.Time{}, ended: map[types.UID]bool{}, done: make(chan types.UID, count)}
	a, err := agent.New(agent.Config{
		Runtime: newRuntime(times.exit), Sources: map[string]podsource.PodSource{podsource.APISource: podsource.Func(source.run)}, Sink: times,
		Adjust: []compose.Adjustment{compose.Adjust(func(c *pipeline.Config) { c.Hooks.Stepped = times.stepped })},
	})
	require.NoError(tb, err)
	ctx, cancel := context.WithCancel(tb.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- a.Run(ctx) }()
	time.Sleep(200 * time.Millisecond) // the lists after the start

	pods := make([]*v1.Pod, count)
	for i := range pods {
		pods[i] = directPod(i)
	}
	begun := time.Now()
	for i, pod := range pods {
		due := begun.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due)) // returns at once if the agent or the machine is late
		times.mu.Lock()
		times.set[pod.UID] = due
		times.mu.Unlock()
		source.arrived <- pod
	}
	for range pods {
		<-times.done
	}
	times.took = time.Since(begun) - directLife
	cancel()
	require.NoError(tb, <-stopped)
	return times
}

// BenchmarkDirectStarts measures pods that a program passes to the agent one by one, at a fixed rate, without
// an API server: the rate at which they end, the time from the set of a pod to its SyncPod, and from the exit
// of its container to the sink.
func BenchmarkDirectStarts(b *testing.B) {
	for name, newRuntime := range directRuntimes(b, nil) {
		for _, rate := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/%d per second", name, rate), func(b *testing.B) {
				for b.Loop() {
					used, heap := cpuUsed(b), allocated()
					count := 2 * rate
					times := directStarts(b, newRuntime, rate, count)
					perPod := func(n uint64) float64 { return float64(n) / float64(count) }
					millis := func(d []time.Duration, q float64) float64 { return float64(quantile(d, q).Microseconds()) / 1000 }
					b.ReportMetric(float64(count)/times.took.Seconds(), "pods/s")
					b.ReportMetric(millis(times.accepted, 0.5), "set-sync-p50-ms")
					b.ReportMetric(millis(times.accepted, 0.99), "set-sync-p99-ms")
					b.ReportMetric(millis(times.reported, 0.5), "exit-sink-p50-ms")
					b.ReportMetric(millis(times.reported, 0.99), "exit-sink-p99-ms")
					b.ReportMetric(perPod(uint64(cpuUsed(b)-used))/1000, "cpu-µs/pod")
					b.ReportMetric(perPod(allocated()-heap), "B/pod")
				}
			})
		}
	}
}

// allocated returns the bytes that the process has allocated.
func allocated() uint64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.TotalAlloc
}

// cpuUsed returns the CPU time that the process has used.
func cpuUsed(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The agent adds no delay to the calls of the runtime for pods that arrive at a rate of 1,000 per second: time is
// virtual, so that only queues and delays count.
func TestDirectStartsDoNotQueue(t *testing.T) {
	const rate, count = 1000, 300
	tally := &callTally{writeTime: 2 * time.Millisecond, calls: map[string]int{}}
	for name, newRuntime := range directRuntimes(t, tally.fault) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				times := directStarts(t, newRuntime, rate, count)
				require.Len(t, times.accepted, count)
				require.Len(t, times.reported, count)
				assert.Zero(t, slices.Max(times.accepted), "from set to SyncPod")
				starts := 3*2*tally.writeTime + 2*readTime // sandbox, container, its start; addresses, image
				assert.LessOrEqual(t, slices.Max(times.synced), starts, "from set to the end of SyncPod")
				assert.LessOrEqual(t, slices.Max(times.reported), 4*readTime, "from exit to sink: one inspection")
				tally.mu.Lock()
				defer tally.mu.Unlock()
				table, calls := callsPerPod(tally.calls, count)
				t.Log(table)
				assert.LessOrEqual(t, calls/count, 20.0, "CRI calls of a whole life")
				assert.LessOrEqual(t, times.writes.Load(), int64(4*count), "pending, running, container terminated, succeeded")
			})
		})
	}
}
