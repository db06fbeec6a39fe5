package node_test

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/kube/node"
)

// The status that a node reports, without an API server.
func ExampleFacts_Setters() {
	facts := node.Facts{
		Machine: node.Machine{MaxPods: 110, Capacity: func() (v1.ResourceList, error) {
			return v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "ephemeral-storage": resource.MustParse("1Ti")}, nil
		}},
		Pressure: func() node.Pressure { return node.Pressure{Disk: true} },
		Health:   func() node.Health { return node.Health{Network: fmt.Errorf("cni plugin not initialized")} },
	}
	draft := &node.Draft{Node: node.Spec{Name: "n1"}.Object()}
	for _, s := range facts.Setters() {
		if err := s.Set(context.Background(), draft); err != nil {
			fmt.Println(s.Name, err)
		}
	}
	for _, c := range draft.Node.Status.Conditions {
		fmt.Println(c.Type, c.Status, c.Message)
	}
	// Output:
	// MemoryPressure False kubelet has sufficient memory available
	// DiskPressure True kubelet has disk pressure
	// PIDPressure False kubelet has sufficient PID available
	// Ready False container runtime network not ready: cni plugin not initialized
}

func ExampleParseTaints() {
	taints, err := node.ParseTaints("dedicated=db:NoSchedule,slow:PreferNoSchedule")
	fmt.Println(taints[0].Key, taints[1].Effect, err)
	_, err = node.ParseTaints("dedicated=db")
	fmt.Println(err)
	// Output:
	// dedicated PreferNoSchedule <nil>
	// node: taint "dedicated=db": want key=value:effect: the effect must be NoSchedule, PreferNoSchedule or NoExecute
}
