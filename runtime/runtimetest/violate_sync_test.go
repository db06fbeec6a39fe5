package runtimetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// edited passes a modified pod to SyncPod and KillPod.
func edited(edit func(pod *v1.Pod)) func(b *broken, rt *runtimetest.Runtime) {
	return func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			req.Pod = req.Pod.DeepCopy()
			edit(req.Pod)
			return rt.SyncPod(ctx, req)
		}
	}
}

// afterwards calls do after each successful SyncPod.
func afterwards(do func(rt *runtimetest.Runtime, pod *v1.Pod, s *runtime.PodStatus)) func(b *broken, rt *runtimetest.Runtime) {
	return func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			res, err := rt.SyncPod(ctx, req)
			if err == nil {
				if s, err := rt.PodStatus(ctx, req.Pod.UID); err == nil {
					do(rt, req.Pod, s)
				}
			}
			return res, err
		}
	}
}

// forgetful is a restart of the agent after which counts start at 0.
func forgetful(_ *testing.T, rt runtime.Runtime) runtime.Runtime {
	b := rt.(*broken)
	inner := b.status
	b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
		s, err := inner(ctx, uid)
		if err != nil {
			return nil, err
		}
		for i := range s.Containers {
			s.Containers[i].RestartCount = 0
		}
		return s, nil
	}
	return b
}

// syncViolations break requirements of SyncPod and KillPod.
var syncViolations = map[string]func(b *broken, rt *runtimetest.Runtime){
	"SyncErrorJoinsActionErrors": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			res, err := rt.SyncPod(ctx, req)
			if err != nil && ctx.Err() == nil && len(res.Actions) > 0 {
				err = errBroken
			}
			return res, err
		}
	},
	"ContainerWithReadyVolumesStarts": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			req.Volumes = nil
			return rt.SyncPod(ctx, req)
		}
	},
	"DeletedPodIsNotStarted": edited(func(pod *v1.Pod) { pod.DeletionTimestamp = nil }),
	"FailedProbeRestartsContainer": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			req.Probes = nil
			return rt.SyncPod(ctx, req)
		}
	},
	"EphemeralContainerIsStartedOnce": func(b *broken, rt *runtimetest.Runtime) {
		edited(func(pod *v1.Pod) { // takes them for regular ones
			for _, e := range pod.Spec.EphemeralContainers {
				pod.Spec.Containers = append(pod.Spec.Containers, v1.Container(e.EphemeralContainerCommon))
			}
			pod.Spec.EphemeralContainers = nil
		})(b, rt)
	},
	"HostNetworkIsReported": edited(func(pod *v1.Pod) { pod.Spec.HostNetwork = false }),
	"SyncPodDoesNotWaitForContainers": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			res, err := rt.SyncPod(ctx, req)
			for len(req.Pod.Spec.InitContainers) > 0 && err == nil {
				s, look := rt.PodStatus(ctx, req.Pod.UID)
				if c := s.Container("first"); look != nil || c == nil || c.State != runtime.ContainerRunning || time.Since(c.StartedAt) > time.Minute {
					return res, errors.Join(err, look)
				}
				<-time.After(time.Second)
			}
			return res, err
		}
	},
	"InitContainersRunOnce": afterwards(func(rt *runtimetest.Runtime, pod *v1.Pod, s *runtime.PodStatus) {
		if c := s.Container("flappy"); c != nil && c.RestartCount > 0 && s.Container("first") != nil && s.Container("first").RestartCount == 0 {
			rt.Start(pod.UID, "first")
		}
	}),
	"SidecarsStartInOrder": edited(func(pod *v1.Pod) { // takes them for regular ones
		pod.Spec.InitContainers = slices.DeleteFunc(pod.Spec.InitContainers, func(c v1.Container) bool {
			if c.RestartPolicy == nil {
				return false
			}
			pod.Spec.Containers = append(pod.Spec.Containers, c)
			return true
		})
	}),
	"SidecarsAreRestarted": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			s, err := rt.PodStatus(ctx, req.Pod.UID)
			if err != nil {
				return runtime.SyncResult{}, err
			}
			for _, c := range req.Pod.Spec.InitContainers {
				if at := s.Container(c.Name); c.RestartPolicy != nil && at != nil && at.State == runtime.ContainerExited {
					return runtime.SyncResult{}, nil
				}
			}
			return rt.SyncPod(ctx, req)
		}
	},
	"SidecarsDoNotKeepPodRunning": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			s, err := rt.PodStatus(ctx, req.Pod.UID)
			if err != nil {
				return runtime.SyncResult{}, err
			}
			if c := s.Container("main"); c != nil && c.State == runtime.ContainerExited {
				return runtime.SyncResult{}, nil // proxy continues to run
			}
			return rt.SyncPod(ctx, req)
		}
	},
	"SidecarsStopLast": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			if req.Pod != nil {
				for _, c := range req.Pod.Spec.InitContainers {
					_ = rt.Exit(req.UID, c.Name, 143) // if it runs
				}
			}
			return rt.KillPod(ctx, req)
		}
	},
	"ReportedExitDoesNotChange": func(b *broken, rt *runtimetest.Runtime) {
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := rt.PodStatus(ctx, uid)
			if err != nil {
				return nil, err
			}
			for i := range s.Containers {
				if s.Containers[i].State == runtime.ContainerExited && !s.Running() {
					s.Containers[i].FinishedAt = s.ObservedAt // the time of the exit is lost
				}
			}
			return s, nil
		}
	},
	"ContainerRestartPolicyOverridesPodPolicy": edited(func(pod *v1.Pod) {
		for i := range pod.Spec.Containers {
			if len(pod.Spec.Containers[i].RestartPolicyRules) == 0 {
				pod.Spec.Containers[i].RestartPolicy = nil
			}
		}
	}),
	"RestartPolicyRulesAreObeyed": edited(func(pod *v1.Pod) {
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].RestartPolicyRules = nil
		}
	}),
	"RestartCountsSurviveAgentRestart": func(*broken, *runtimetest.Runtime) {}, // broken by Reopen
	"BackOffIsBounded": func(b *broken, rt *runtimetest.Runtime) {
		rt.Backoff = time.Second
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			res, err := rt.SyncPod(ctx, req)
			if !res.RetryAt.IsZero() {
				res.RetryAt = res.RetryAt.Add(time.Hour)
			}
			return res, err
		}
	},
	"BackOffIsPerContainer": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			s, err := rt.PodStatus(ctx, req.Pod.UID)
			if err != nil {
				return runtime.SyncResult{}, err
			}
			if c := s.Container("flappy"); c != nil && c.RestartCount > 0 && s.Container("late") != nil { // waits for good
				return runtime.SyncResult{RetryAt: time.Now().Add(time.Minute)}, errBroken
			}
			if c := s.Container("flappy"); c != nil && c.State == runtime.ContainerExited && s.Container("late") != nil {
				req.Pod = req.Pod.DeepCopy()
				req.Pod.Spec.Containers = req.Pod.Spec.Containers[:1]
			}
			return rt.SyncPod(ctx, req)
		}
	},
	"KillWithZeroGracePeriodIsPrompt": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			if req.GracePeriodSeconds != nil && *req.GracePeriodSeconds == 0 && req.Pod != nil {
				req.GracePeriodSeconds = nil
			}
			return rt.KillPod(ctx, req)
		}
	},
	"KillAcceptsStatusOfCaller": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			if req.Status != nil {
				return nil
			}
			return rt.KillPod(ctx, req)
		}
	},
	"NothingStartsAfterKill": func(b *broken, rt *runtimetest.Runtime) {
		rt.Behave("a", fake.Behavior{StartDelay: 3 * time.Millisecond})
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			res, err := rt.SyncPod(ctx, req)
			if errors.Is(err, context.DeadlineExceeded) {
				time.AfterFunc(50*time.Millisecond, func() { rt.Start(req.Pod.UID, "a") })
			}
			return res, err
		}
	},
	"KillsRunConcurrently": func(b *broken, rt *runtimetest.Runtime) {
		turn := make(chan struct{}, 1)
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			select {
			case turn <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Minute):
				return errBroken
			}
			defer func() { <-turn }()
			return rt.KillPod(ctx, req)
		}
	},
	"OrphanSurvivesAgentRestart": func(*broken, *runtimetest.Runtime) {}, // broken by Reopen
	"GarbageCollectionKeepsRunningContainers": func(b *broken, rt *runtimetest.Runtime) {
		b.collect = func(ctx context.Context, policy runtime.GCPolicy) error {
			if policy.MaxContainers == 1 {
				pods, err := rt.Pods(ctx)
				if err != nil {
					return err
				}
				for _, p := range pods {
					rt.Remove(p.UID)
				}
			}
			return rt.CollectGarbage(ctx, policy)
		}
	},
	"GarbageCollectionObeysMaxContainers": func(b *broken, rt *runtimetest.Runtime) {
		b.collect = func(ctx context.Context, policy runtime.GCPolicy) error {
			policy.MaxContainers = 0
			return rt.CollectGarbage(ctx, policy)
		}
	},
}
