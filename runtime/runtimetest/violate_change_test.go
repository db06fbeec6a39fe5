package runtimetest_test

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// changeViolations break requirements on replaced and restarted containers, on hints and
// on the cost of a list.
var changeViolations = map[string]func(b *broken, rt *runtimetest.Runtime){
	"ChangedImageReplacesContainer": edited(func(pod *v1.Pod) {
		for i := range pod.Spec.Containers {
			if c := &pod.Spec.Containers[i]; c.Image == "long-2" {
				c.Image = "long"
			}
		}
	}),
	"TerminationMessageIsKept": func(b *broken, _ *runtimetest.Runtime) {
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := b.full.PodStatus(ctx, uid)
			if err != nil {
				return nil, err
			}
			for i := range s.Containers {
				if c := &s.Containers[i]; c != s.Container(c.Name) {
					c.Message = ""
				}
			}
			return s, nil
		}
	},
	"LostSandboxIsReplaced": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			s, err := rt.PodStatus(ctx, req.Pod.UID)
			if err == nil && len(s.Sandboxes) > 0 && s.Sandboxes[0].State != runtime.SandboxReady {
				return runtime.SyncResult{}, nil
			}
			return rt.SyncPod(ctx, req)
		}
	},
	"RestartAllContainersRestartsPod": edited(func(pod *v1.Pod) {
		for _, c := range pod.Spec.Containers {
			for i := range c.RestartPolicyRules {
				c.RestartPolicyRules[i].Action = v1.ContainerRestartRuleActionRestart
			}
		}
	}),
	"EventsFollowVisibleChanges": func(b *broken, rt *runtimetest.Runtime) {
		b.watch = func(ctx context.Context, changed func(types.UID)) error {
			return rt.Watch(ctx, func(uid types.UID) {
				s, err := rt.PodStatus(ctx, uid)
				if err == nil && !slices.ContainsFunc(s.Containers, func(c runtime.ContainerStatus) bool { return c.State == runtime.ContainerExited }) {
					changed(uid)
				}
			})
		}
	},
	"ListCostIsIndependentOfPodCount": func(b *broken, rt *runtimetest.Runtime) {
		b.pods = func(ctx context.Context) ([]*runtime.Pod, error) {
			pods, err := rt.Pods(ctx)
			for _, p := range pods {
				if _, err := b.full.PodStatus(ctx, p.UID); err != nil {
					return nil, err
				}
			}
			return pods, err
		}
	},
	"StreamExecResizesTerminal": func(b *broken, _ *runtimetest.Runtime) {
		b.stream = func(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
			if s.Resize != nil {
				first := make(chan runtime.TerminalSize, 1)
				first <- <-s.Resize
				s.Resize = first
			}
			return b.full.StreamExec(ctx, id, cmd, s)
		}
	},
}
