package scheduler_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/sim/scheduler"
)

// 10,000 pods of 100 apps are placed on 100 nodes in 3 zones.
func BenchmarkPlaceTenThousandPods(b *testing.B) {
	for name, edit := range map[string]editPod{
		"resources":     func(*v1.Pod) {},
		"spread":        func(p *v1.Pod) { spreads(zones, 1, v1.DoNotSchedule)(p) },
		"anti-affinity": func(p *v1.Pod) { affine(true, p.Labels["app"], host, 10)(p) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := scheduler.NewCluster()
				for i := range 100 {
					c.SetNode(newNode(fmt.Sprintf("node-%d", i), zone(fmt.Sprint(i%3))))
				}
				for i := range 10_000 {
					pod := newPod(fmt.Sprintf("app%d-%d", i%100, i), requests("cpu", "50m", "memory", "64Mi"), edit)
					node, err := c.Place(pod)
					if err != nil {
						b.Fatal(err)
					}
					c.SetPod(pod, node)
				}
			}
		})
	}
}
