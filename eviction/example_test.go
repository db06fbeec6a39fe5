package eviction_test

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/runtime"
)

// examplePod returns a pod with a memory request.
func examplePod(name, memory string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: name, Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)},
		}}}},
	}
}

// exampleSummary is the summary of a node with 4 GiB of memory and two pods, whose usage is
// in MiB.
func exampleSummary(web, batch uint64) *statsapi.Summary {
	const mi = 1 << 20
	available, used := (4096-web-batch)*mi, (web+batch)*mi
	pod := func(name string, n uint64) statsapi.PodStats {
		memory := &statsapi.MemoryStats{WorkingSetBytes: new(n * mi)}
		return statsapi.PodStats{PodRef: statsapi.PodReference{UID: name}, Memory: memory, Containers: []statsapi.ContainerStats{{Name: name, Memory: memory}}}
	}
	return &statsapi.Summary{
		Node: statsapi.NodeStats{Memory: &statsapi.MemoryStats{AvailableBytes: &available, WorkingSetBytes: &used}},
		Pods: []statsapi.PodStats{pod("web", web), pod("batch", batch)},
	}
}

// A plan is a dry run: it reports which pod would be evicted, and why.
func ExampleInputs_Plan() {
	thresholds, err := eviction.Settings{Hard: map[string]string{"memory.available": "10%"}}.Parse()
	if err != nil {
		log.Fatal(err)
	}
	plan := eviction.Inputs{
		Policy:  eviction.Policy{Thresholds: thresholds},
		Now:     time.Now(),
		Summary: exampleSummary(2000, 1900),
		Pods:    []*v1.Pod{examplePod("web", "2Gi"), examplePod("batch", "1Gi")},
	}.Plan()
	fmt.Println(plan.Conditions)
	for _, r := range plan.Ranking {
		fmt.Printf("%s, by %q\n", r.Pod.Name, r.RankReason)
	}
	fmt.Println(plan.Victim(0).Explanation)
	// Output:
	// [MemoryPressure]
	// batch, by "usage above request"
	// web, by ""
	// memory.available was 205520896 of 4294967296, below 10%; default/batch was place 1 of 2, before default/web by usage above request
}

// Rank replaces the ranking: pods of the namespace batch are evicted before all others. Among
// the pods of a namespace the default ranking applies.
func ExampleInputs_rank() {
	thresholds, err := eviction.Settings{Hard: map[string]string{"memory.available": "10%"}}.Parse()
	if err != nil {
		log.Fatal(err)
	}
	web, small, large := examplePod("web", "1Gi"), examplePod("small", "1Gi"), examplePod("large", "1Gi")
	small.Namespace, large.Namespace = "batch", "batch"
	small.Spec.Priority = new(int32(100))
	plan := eviction.Inputs{
		Policy: eviction.Policy{Thresholds: thresholds, Rank: func(_ eviction.Signal, a, b *eviction.Candidate) (int, string) {
			order := map[string]int{"batch": 0, "default": 1}
			return cmp.Compare(order[a.Pod.Namespace], order[b.Pod.Namespace]), "namespace"
		}},
		Now:     time.Now(),
		Summary: exampleSummary(2000, 1900),
		Pods:    []*v1.Pod{web, small, large},
	}.Plan()
	for _, c := range plan.Ranking {
		fmt.Printf("%s/%s precedes the next by %q\n", c.Pod.Namespace, c.Pod.Name, c.RankReason)
	}
	fmt.Println(plan.Victim(1).Explanation)
	// Output:
	// batch/large precedes the next by "priority"
	// batch/small precedes the next by "namespace"
	// default/web precedes the next by ""
	// memory.available was 205520896 of 4294967296, below 10%; batch/small was place 2 of 3, before default/web by namespace
}

// examplePods are the pods of a node in memory.
type examplePods []*v1.Pod

func (p examplePods) Running() []*v1.Pod { return p }

func (examplePods) Evict(_ context.Context, v eviction.Victim) error {
	fmt.Println("kill", v.Pod.Name, "within", v.GracePeriodSeconds, "s")
	return nil
}

func (examplePods) Cleaned(types.UID) bool { return true }

// A pass measures the node, makes a plan and carries it out.
func ExampleManager_Pass() {
	thresholds, err := eviction.Settings{Hard: map[string]string{"memory.available": "400Mi"}}.Parse()
	if err != nil {
		log.Fatal(err)
	}
	manager, err := eviction.New(eviction.Config{
		Policy:  eviction.Policy{Thresholds: thresholds},
		Summary: func(context.Context, bool) (*statsapi.Summary, error) { return exampleSummary(2000, 1900), nil },
		Pods:    examplePods{examplePod("web", "2Gi"), examplePod("batch", "1Gi")},
		Record:  func(e runtime.Event) { fmt.Printf("%s: %q\n", e.Reason, e.Message) },
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := manager.Pass(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(manager.Admit(context.Background(), examplePod("more", "0")))
	// Output:
	// EvictionThresholdMet: "Attempting to reclaim memory"
	// Evicted: "The node was low on resource: memory. Threshold quantity: 400Mi, available: 196Mi. Container batch was using 1900Mi, request is 1Gi, has larger consumption of memory. "
	// kill batch within 1 s
	// The node had condition: [MemoryPressure].
}
