package runtimetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// inspectViolations break requirements on inspection, health and events.
var inspectViolations = map[string]func(b *broken, rt *runtimetest.Runtime){
	"InspectionHasNoSideEffects": func(b *broken, rt *runtimetest.Runtime) {
		b.pods = func(ctx context.Context) ([]*runtime.Pod, error) {
			pods, err := rt.Pods(ctx)
			for _, p := range pods { // restarts failed containers
				for _, c := range p.Containers {
					if c.State == runtime.ContainerExited && len(p.Containers) == 2 && c.Name == "short" {
						rt.Start(p.UID, c.Name)
					}
				}
			}
			return pods, err
		}
	},
	"KilledPodIsListed": func(b *broken, rt *runtimetest.Runtime) {
		b.pods = func(ctx context.Context) ([]*runtime.Pod, error) {
			pods, err := rt.Pods(ctx)
			return slices.DeleteFunc(pods, func(p *runtime.Pod) bool { return p.Sandboxes[0].State != runtime.SandboxReady }), err
		}
	},
	"IDsAreUnique": func(b *broken, rt *runtimetest.Runtime) {
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := rt.PodStatus(ctx, uid)
			for i := range s.Sandboxes {
				s.Sandboxes[i].ID = "sandbox-" + string(rune('0'+s.Sandboxes[i].Attempt))
			}
			return s, err
		}
	},
	"IPsAreThoseOfReadySandbox": func(b *broken, rt *runtimetest.Runtime) {
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := rt.PodStatus(ctx, uid)
			if err == nil && len(s.Sandboxes) > 0 {
				s.IPs = slices.Clone(s.Sandboxes[0].IPs) // ready or not
			}
			return s, err
		}
	},
	"InspectionObeysItsContext": func(b *broken, rt *runtimetest.Runtime) {
		b.pods = func(ctx context.Context) ([]*runtime.Pod, error) {
			if ctx.Err() != nil {
				return []*runtime.Pod{}, errBroken
			}
			return rt.Pods(ctx)
		}
	},
	"ListsAreConsistentDuringChanges": func(b *broken, rt *runtimetest.Runtime) {
		var mu sync.Mutex
		changing := 0
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			mu.Lock()
			changing++
			mu.Unlock()
			defer func() {
				mu.Lock()
				changing--
				mu.Unlock()
			}()
			<-time.After(10 * time.Millisecond)
			return rt.SyncPod(ctx, req)
		}
		b.pods = func(ctx context.Context) ([]*runtime.Pod, error) {
			pods, err := rt.Pods(ctx)
			mu.Lock()
			defer mu.Unlock()
			if changing > 0 && len(pods) > 0 {
				pods = pods[:len(pods)-1]
			}
			return pods, err
		}
	},
	"ResultsShareNoMemory": func(b *broken, rt *runtimetest.Runtime) {
		var mu sync.Mutex
		var at time.Time
		var last []*runtime.Pod
		b.pods = func(ctx context.Context) ([]*runtime.Pod, error) {
			pods, err := rt.Pods(ctx)
			mu.Lock()
			defer mu.Unlock()
			if at.Equal(time.Now()) && len(last) == len(pods) {
				return last, err
			}
			at, last = time.Now(), pods
			return pods, err
		}
	},
	"CheckObeysItsContext": func(b *broken, rt *runtimetest.Runtime) {
		b.check = func(ctx context.Context) (runtime.Health, error) {
			h, err := rt.Check(ctx)
			if err != nil {
				err = errBroken
			}
			return h, err
		}
	},
	"EachWatchReceivesEvents": func(b *broken, rt *runtimetest.Runtime) {
		var mu sync.Mutex
		watching := false
		b.watch = func(ctx context.Context, changed func(types.UID)) error {
			mu.Lock()
			first := !watching
			watching = true
			mu.Unlock()
			if !first {
				changed = func(types.UID) {}
			}
			return rt.Watch(ctx, changed)
		}
	},
	"RequestsWithoutUIDAreRejected": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			if req.UID == "" && req.Pod == nil {
				return nil
			}
			return rt.KillPod(ctx, req)
		}
	},
	"UnusualNamesAreHandled": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			if slices.Contains([]byte(req.Pod.Name), '/') {
				panic("open ../../up: is a directory")
			}
			return rt.SyncPod(ctx, req)
		}
	},
	"LargePodsAreHandled": func(b *broken, rt *runtimetest.Runtime) {
		var mu sync.Mutex
		big := map[types.UID]bool{}
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			if len(req.Pod.Labels) > 1000 {
				mu.Lock()
				big[req.Pod.UID] = true
				mu.Unlock()
			}
			return rt.SyncPod(ctx, req)
		}
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			mu.Lock()
			defer mu.Unlock()
			if big[uid] {
				return nil, errors.New("the message is too big")
			}
			return rt.PodStatus(ctx, uid)
		}
	},
	"GoroutinesAreNotLeaked": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			go func() { <-b.over }()
			return rt.KillPod(ctx, req)
		}
	},
}
