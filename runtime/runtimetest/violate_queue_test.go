package runtimetest_test

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// queueViolations break requirements of runtimes that queue starts.
var queueViolations = map[string]func(b *broken, rt *runtimetest.Runtime){
	"QueuedContainerIsListed": func(b *broken, rt *runtimetest.Runtime) {
		rt.Behave("long", fake.Behavior{QueueDelay: time.Second})
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := rt.PodStatus(ctx, uid)
			if err == nil {
				s.Containers = slices.DeleteFunc(s.Containers, func(c runtime.ContainerStatus) bool { return c.State == runtime.ContainerCreated })
			}
			return s, err
		}
	},
	"KillCancelsQueuedStart": func(b *broken, rt *runtimetest.Runtime) {
		rt.Behave("long", fake.Behavior{QueueDelay: time.Second})
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			s, err := rt.PodStatus(ctx, req.UID)
			if err != nil {
				return err
			}
			for _, c := range s.Containers {
				if c.State == runtime.ContainerCreated { // it stays in the queue
					time.AfterFunc(500*time.Millisecond, func() { rt.Start(req.UID, c.Name) })
				}
			}
			return rt.KillPod(ctx, req)
		}
	},
}
