package cluster_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/sim/cluster"
)

// Two pods leak memory until one of them is evicted: that with the larger excess over its
// request. Its replacement begins without the leaked memory.
func Example() {
	c, err := cluster.New(cluster.Config{
		Nodes: []cluster.Node{{Name: "small", Capacity: cluster.Resources{Memory: 4 << 30}}},
		Pods: []cluster.Pod{
			{Name: "web", Requests: cluster.Resources{Memory: 1 << 30}, Memory: cluster.Growing(1<<30, 100<<20)},
			{Name: "cache", Requests: cluster.Resources{Memory: 512 << 20}, Memory: cluster.Growing(1<<30, 400<<20), Recreate: true},
		},
		Duration: 6 * time.Hour,
		Hooks: cluster.Hooks{Event: func(e cluster.Event) {
			if e.Kind == cluster.PodScheduled || e.Kind == cluster.PodEvicted {
				fmt.Println(e.At.Round(time.Minute), e.Pod, e.Kind, e.Node)
			}
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	report, err := c.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Samples[len(report.Samples)-1])

	// Output:
	// 0s web scheduled small
	// 0s cache scheduled small
	// 3h54m0s cache evicted small
	// 3h54m0s cache.1 scheduled small
	// 6h0m0s: 2 running, 0 pending, 1 evicted, 0 OOM-killed, memory 85%
}

// Pods are evicted by age, the youngest first, instead of by their excess over requests.
func ExamplePolicies() {
	c, err := cluster.New(cluster.Config{
		Nodes: []cluster.Node{{Capacity: cluster.Resources{Memory: 4 << 30}}},
		Pods: []cluster.Pod{
			{Name: "old", Memory: cluster.Growing(1<<30, 1<<30)},
			{Name: "young", Arrival: time.Minute, Memory: cluster.Constant(100 << 20)},
		},
		Duration: 4 * time.Hour,
		Kubelet: cluster.Kubelet{Eviction: eviction.Policy{
			Rank: func(_ eviction.Signal, a, b *eviction.Candidate) (order int, reason string) {
				return b.Created.Compare(a.Created), "least work lost"
			},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	report, err := c.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	if err := report.WritePods(os.Stdout); err != nil {
		log.Fatal(err)
	}

	// Output:
	// pod,priority,node,created_s,scheduled_s,started_s,finished_s,phase,reason,signal,restarts,oom_kills,ran_s,lost_s,peak_memory_bytes
	// old,0,node-0,0.000,0.000,0.000,10454.636,Failed,Evicted,memory.available,0,0,10454.636,10454.636,4191958602
	// young,0,node-0,60.000,60.000,60.000,10103.636,Failed,Evicted,memory.available,0,0,10043.636,10043.636,104857600
}
