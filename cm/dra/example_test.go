package dra_test

import (
	"context"
	"fmt"
	"log"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/state"
)

// objects are the ResourceClaims of an API server, by name.
type objects map[string]*resourceapi.ResourceClaim

func (o objects) GetClaim(_ context.Context, namespace, name string) (*resourceapi.ResourceClaim, error) {
	if c := o[name]; c != nil && c.Namespace == namespace {
		return c, nil
	}
	return nil, fmt.Errorf("resourceclaims %q not found", name)
}

// printing is a driver in the process of the agent.
type printing struct{}

func (printing) Registered(string) bool { return true }

func (printing) Prepare(_ context.Context, driver string, claims []dra.ClaimRef) (map[types.UID]dra.Prepared, error) {
	fmt.Println(driver, "prepares", claims)
	out := map[types.UID]dra.Prepared{}
	for _, c := range claims {
		out[c.UID] = dra.Prepared{Devices: []dra.Device{{Pool: "node", Name: "gpu0", CDI: []string{driver + "/gpu=0"}}}}
	}
	return out, nil
}

func (printing) Unprepare(_ context.Context, driver string, claims []dra.ClaimRef) (map[types.UID]error, error) {
	fmt.Println(driver, "unprepares", claims)
	out := map[types.UID]error{}
	for _, c := range claims {
		out[c.UID] = nil
	}
	return out, nil
}

// A pod with a claim of one device, from its start to its end.
func Example() {
	ctx := context.Background()
	pod := pod("pod-1", "training")
	manager, err := dra.New(dra.Config{
		Claims:  objects{"training": claim("training", "gpu.example.com", "pod-1")},
		Plugins: printing{}, // or a registry.Registry, for drivers with sockets
		Store:   new(state.Memory),
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := manager.PrepareResources(ctx, pod); err != nil {
		log.Fatal(err)
	}
	names, err := manager.CDIDevices(ctx, pod, &pod.Spec.Containers[0])
	fmt.Println(names, err)
	fmt.Println(manager.UnprepareResources(ctx, pod.UID))
	// Output:
	// gpu.example.com prepares [ns/training]
	// [gpu.example.com/gpu=0] <nil>
	// gpu.example.com unprepares [ns/training]
	// <nil>
}
