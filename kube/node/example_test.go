package node_test

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/kube/node"
)

// The status that a node reports, without an API server.
func ExampleReport() {
	setter := node.Report(func(context.Context) (node.Facts, error) {
		return node.Facts{
			Machine: &node.Machine{MaxPods: 110, Capacity: v1.ResourceList{
				"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "ephemeral-storage": resource.MustParse("1Ti"),
			}},
			Pressure: &node.Pressure{Disk: true},
			Health:   node.Health{Network: errors.New("cni plugin not initialized")},
		}, nil
	})
	draft := &node.Draft{Node: node.Spec{Name: "n1"}.Object()}
	if err := setter.Set(context.Background(), draft); err != nil {
		fmt.Println(err)
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
