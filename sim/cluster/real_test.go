package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/cluster"
	"github.com/kubeparts/kubeparts/sim/simcri"
)

// A crashing container restarts as with a complete agent with the engine of
// runtime/cri, but for the latency of its calls.
func TestTheModelRestartsAsAnAgentDoes(t *testing.T) {
	var agent, model []time.Duration
	dir := t.TempDir()
	schedule, err := sim.Parse("0s add web main:c=exit=1@2s")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		_, err := sim.Run(t.Context(), sim.Config{Schedule: schedule, Machine: simcri.MachineIn(dir), OnEntry: func(e sim.Entry) {
			if e.Kind == sim.Started {
				agent = append(agent, e.At)
			}
		}})
		require.NoError(t, err)
	})
	cfg := one(10*time.Minute, cluster.Pod{RunTime: 2 * time.Second, ExitCode: 1})
	cfg.Hooks.Event = func(e cluster.Event) {
		if e.Kind == cluster.ContainerStarted {
			model = append(model, e.At)
		}
	}
	run(t, cfg)
	require.Greater(t, len(agent), 5)
	for i := 1; i < min(len(agent), len(model)); i++ {
		assert.InDelta(t, model[i]-model[i-1], agent[i]-agent[i-1], float64(2*time.Second), "start %d: agent %v, model %v", i, agent, model)
	}
}

// An evicting is one eviction.
type evicting struct {
	pod string
	at  time.Duration
}

// The evictions on a node are those that eviction.Manager carries out for the same usage.
func TestTheModelEvictsAsTheManagerDoes(t *testing.T) {
	const duration = 4 * time.Hour
	thresholds := []eviction.Threshold{
		{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.05}},
		{Signal: eviction.MemoryAvailable, Value: eviction.Value{Percentage: 0.2}, GracePeriod: 2 * time.Minute},
	}
	var pods []cluster.Pod
	for i := range int64(20) {
		pods = append(pods, cluster.Pod{
			Name: fmt.Sprint("p", i), Requests: cluster.Resources{Memory: (100 + 20*i) * mib}, Priority: int32(i % 3),
			Memory: cluster.Growing((150+i)*mib, (i*7%11)*100*mib), StopTime: time.Duration(i%4) * 5 * time.Second,
		})
	}
	cfg := one(duration, pods...)
	cfg.Kubelet.Eviction = eviction.Policy{Thresholds: thresholds, MaxPodGracePeriod: 12}
	var model []evicting
	cfg.Hooks.Event = func(e cluster.Event) {
		if e.Kind == cluster.PodEvicted {
			model = append(model, evicting{e.Pod, e.At})
		}
	}
	run(t, cfg)

	var manager []evicting
	synctest.Test(t, func(t *testing.T) { manager = managed(t, pods, cfg.Kubelet.Eviction, 10*gib, duration) })
	require.Greater(t, len(manager), 5)
	require.Len(t, model, len(manager))
	for i := range manager {
		assert.Equal(t, manager[i].pod, model[i].pod, "eviction %d", i)
		assert.InDelta(t, manager[i].at, model[i].at, float64(15*time.Second), "eviction %d", i)
	}
}

// managedPods are the pods of a node; evict blocks until the pod has terminated.
type managedPods struct {
	pods  *[]*v1.Pod
	evict func(eviction.Victim)
}

func (m *managedPods) Running() []*v1.Pod { return slices.Clone(*m.pods) }

func (m *managedPods) Evict(_ context.Context, v eviction.Victim) error {
	m.evict(v)
	*m.pods = slices.DeleteFunc(*m.pods, func(p *v1.Pod) bool { return p.UID == v.Pod.UID })
	return nil
}

func (m *managedPods) Cleaned(types.UID) bool { return true }

// managed runs an eviction.Manager on a node with the pods and returns its evictions.
func managed(t *testing.T, specs []cluster.Pod, policy eviction.Policy, capacity int64, duration time.Duration) (evictions []evicting) {
	began := time.Now()
	byUID, pods := map[types.UID]cluster.Pod{}, []*v1.Pod{}
	for _, s := range specs {
		byUID[types.UID(s.Name)] = s
		pods = append(pods, &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: s.Name, UID: types.UID(s.Name), CreationTimestamp: metav1.NewTime(began)},
			Spec: v1.PodSpec{Priority: &s.Priority, TerminationGracePeriodSeconds: new(int64(30)), Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceMemory: *resource.NewQuantity(s.Requests.Memory, resource.BinarySI)},
			}}}},
		})
	}
	summary := func(context.Context, bool) (*statsapi.Summary, error) {
		out := new(statsapi.Summary)
		var used int64
		for _, p := range pods {
			bytes := byUID[p.UID].Memory(time.Since(began))
			used += bytes
			out.Pods = append(out.Pods, statsapi.PodStats{PodRef: statsapi.PodReference{UID: string(p.UID)}, Memory: &statsapi.MemoryStats{WorkingSetBytes: new(uint64(bytes))}})
		}
		out.Node.Memory = &statsapi.MemoryStats{Time: metav1.Now(), AvailableBytes: new(uint64(capacity - used)), WorkingSetBytes: new(uint64(used))}
		return out, nil
	}
	manager, err := eviction.New(eviction.Config{Policy: policy, Summary: summary, Pods: &managedPods{&pods, func(v eviction.Victim) {
		evictions = append(evictions, evicting{v.Pod.Name, time.Since(began)})
		time.Sleep(min(byUID[v.Pod.UID].StopTime, time.Duration(v.GracePeriodSeconds)*time.Second))
	}}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	require.NoError(t, manager.Run(ctx))
	return evictions
}
