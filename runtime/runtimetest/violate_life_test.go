package runtimetest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// lifeViolations break requirements on the lifecycle of pods.
var lifeViolations = map[string]func(b *broken, rt *runtimetest.Runtime){
	"UnknownPodHasEmptyStatus": func(b *broken, rt *runtimetest.Runtime) {
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := rt.PodStatus(ctx, uid)
			if err == nil && s.Pod() == nil {
				return nil, errBroken
			}
			return s, err
		}
	},
	"PodsAndPodStatusAgree": func(b *broken, rt *runtimetest.Runtime) {
		b.pods = func(ctx context.Context) ([]*runtime.Pod, error) {
			pods, err := rt.Pods(ctx)
			for _, p := range pods {
				p.Containers = slices.DeleteFunc(p.Containers, func(c runtime.Container) bool { return c.State == runtime.ContainerExited })
			}
			return pods, err
		}
	},
	"ListsAreSortedNewestFirst": func(b *broken, rt *runtimetest.Runtime) {
		b.pods = func(ctx context.Context) ([]*runtime.Pod, error) {
			pods, err := rt.Pods(ctx)
			slices.Reverse(pods)
			return pods, err
		}
	},
	"ObservedAtPrecedesRead": func(b *broken, rt *runtimetest.Runtime) {
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := rt.PodStatus(ctx, uid)
			s.ObservedAt = s.ObservedAt.Add(time.Nanosecond)
			return s, err
		}
	},
	"CallerOwnsResult": func(b *broken, rt *runtimetest.Runtime) {
		var mu sync.Mutex
		last := map[types.UID]*runtime.PodStatus{}
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := rt.PodStatus(ctx, uid)
			mu.Lock()
			defer mu.Unlock()
			if old := last[uid]; old != nil && len(old.Containers) == len(s.Containers) && len(s.Containers) > 0 {
				return old, err
			}
			last[uid] = s
			return s, err
		}
	},
	"StateSurvivesAgentRestart": func(*broken, *runtimetest.Runtime) {}, // broken by Reopen, below
	"SyncPodStartsAllContainers": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			req.Pod = req.Pod.DeepCopy()
			if seen, err := rt.PodStatus(ctx, req.Pod.UID); err == nil && seen.Pod() == nil {
				req.Pod.Spec.Containers = req.Pod.Spec.Containers[:1]
			}
			return rt.SyncPod(ctx, req)
		}
	},
	"SyncPodIsIdempotent": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			res, err := rt.SyncPod(ctx, req)
			if err == nil && len(res.Actions) == 0 {
				rt.Start(req.Pod.UID, req.Pod.Spec.Containers[0].Name)
			}
			return res, err
		}
	},
	"SyncPodDoesNotModifyPod": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			req.Pod.Labels = map[string]string{"seen": "yes"}
			return rt.SyncPod(ctx, req)
		}
	},
	"MissingVolumeIsConfigError": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			req.Volumes = map[string]runtime.Volume{"data": {Path: "/anywhere"}}
			return rt.SyncPod(ctx, req)
		}
	},
	"InitContainersRunInOrder": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			var all runtime.SyncResult
			for range 10 { // takes all steps at once
				res, err := rt.SyncPod(ctx, req)
				all.Actions = append(all.Actions, res.Actions...)
				if err != nil || len(req.Pod.Spec.InitContainers) == 0 {
					return all, err
				}
				<-time.After(time.Millisecond)
			}
			return all, nil
		}
	},
	"FailedInitContainerBlocksPod": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			seen, err := rt.PodStatus(ctx, req.Pod.UID)
			if err != nil {
				return runtime.SyncResult{}, err
			}
			if c := seen.Container("first"); c != nil && c.ExitCode != 0 {
				req.Pod = req.Pod.DeepCopy()
				req.Pod.Spec.InitContainers = nil
			}
			return rt.SyncPod(ctx, req)
		}
	},
	"PodsAreIdentifiedByUID": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			pods, err := rt.Pods(ctx)
			for _, p := range pods {
				if req.Pod != nil && p.Name == req.Pod.Name {
					err = errors.Join(err, rt.KillPod(ctx, runtime.KillRequest{UID: p.UID}))
				}
			}
			return err
		}
	},
	"PodsSyncConcurrently": func(b *broken, rt *runtimetest.Runtime) {
		var busy sync.Mutex
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			if !busy.TryLock() {
				return runtime.SyncResult{}, errBroken
			}
			defer busy.Unlock()
			<-time.After(time.Millisecond)
			return rt.SyncPod(ctx, req)
		}
	},
	"SyncPodObeysItsContext": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			return rt.SyncPod(context.WithoutCancel(ctx), req)
		}
	},
	"CanceledSyncLeavesNoDuplicate": func(b *broken, rt *runtimetest.Runtime) {
		rt.Behave("a", fake.Behavior{StartDelay: 3 * time.Millisecond})
		cut := map[types.UID]bool{}
		var mu sync.Mutex
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			res, err := rt.SyncPod(ctx, req)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				cut[req.Pod.UID] = true
			} else if cut[req.Pod.UID] {
				rt.Start(req.Pod.UID, "a")
			}
			return res, err
		}
	},
	"ExitCodeAndTimesAreReported": func(b *broken, rt *runtimetest.Runtime) {
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := rt.PodStatus(ctx, uid)
			for i := range s.Containers {
				s.Containers[i].ExitCode = 0
			}
			return s, err
		}
	},
	"RestartCreatesNewInstance": func(b *broken, rt *runtimetest.Runtime) {
		b.status = func(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
			s, err := rt.PodStatus(ctx, uid)
			for i := range s.Containers {
				s.Containers[i].RestartCount = 0
			}
			return s, err
		}
	},
	"BackOffReportsRetryAt": func(b *broken, rt *runtimetest.Runtime) {
		rt.Backoff = 10 * time.Second
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			res, err := rt.SyncPod(ctx, req)
			res.RetryAt = time.Time{}
			return res, err
		}
	},
	"RestartPolicyNeverIsObeyed":     withPolicy(v1.RestartPolicyNever, v1.RestartPolicyOnFailure),
	"RestartPolicyOnFailureIsObeyed": withPolicy(v1.RestartPolicyOnFailure, v1.RestartPolicyAlways),
	"CompletedPodIsNotChanged": func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			res, err := rt.SyncPod(ctx, req)
			if req.Pod.Spec.RestartPolicy == v1.RestartPolicyNever {
				res.Actions = append(res.Actions, runtime.Action{Kind: runtime.KillPodSandbox})
			}
			return res, err
		}
	},
	"KillSendsSIGTERM": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			rt.Crash(req.UID)
			return nil
		}
	},
	"KillIsIdempotent": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			if s, err := rt.PodStatus(ctx, req.UID); err != nil || !s.Running() {
				return errors.Join(errBroken, err)
			}
			return rt.KillPod(ctx, req)
		}
	},
	"KillSendsSIGKILLAfterGracePeriod": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error { // does not wait
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_ = rt.KillPod(ctx, req)
			return nil
		}
	},
	"KillUsesGracePeriodOfPod": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			if req.Pod != nil {
				req.Pod = req.Pod.DeepCopy()
				req.Pod.DeletionGracePeriodSeconds = nil
			}
			return rt.KillPod(ctx, req)
		}
	},
	"KillStopsOrphan": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			if req.Pod == nil && req.GracePeriodSeconds == nil {
				req.GracePeriodSeconds = new(int64(2))
			}
			return rt.KillPod(ctx, req)
		}
	},
	"KillObeysItsContext": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			return rt.KillPod(context.WithoutCancel(ctx), req)
		}
	},
	"KillOfCompletedPodSucceeds": func(b *broken, rt *runtimetest.Runtime) {
		b.kill = func(ctx context.Context, req runtime.KillRequest) error {
			err := rt.KillPod(ctx, req)
			rt.Remove(req.UID)
			return err
		}
	},
	"CheckReportsHealthyRuntime": func(_ *broken, rt *runtimetest.Runtime) {
		rt.SetHealth(runtime.Health{Runtime: errBroken})
	},
	"WatchReportsChanges": func(b *broken, _ *runtimetest.Runtime) {
		b.watch = func(ctx context.Context, _ func(types.UID)) error {
			<-ctx.Done()
			return nil
		}
	},
	"ExecReturnsOutputAndExitCode": func(b *broken, rt *runtimetest.Runtime) {
		b.exec = func(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
			res, err := rt.Exec(ctx, id, cmd, timeout)
			if res.ExitCode != 0 {
				return res, errBroken
			}
			return res, err
		}
	},
	"ExecObeysTimeoutAndContext": func(b *broken, rt *runtimetest.Runtime) {
		b.exec = func(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
			res, err := rt.Exec(ctx, id, cmd, timeout)
			if errors.Is(err, context.DeadlineExceeded) {
				return res, nil
			}
			return res, err
		}
	},
	"StreamExecReturnsOutputAndExitCode": func(b *broken, rt *runtimetest.Runtime) {
		b.stream = func(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
			_, err := rt.StreamExec(ctx, id, cmd, s)
			return 0, err
		}
	},
	"GarbageCollectionKeepsNewestInstances": func(b *broken, rt *runtimetest.Runtime) {
		b.collect = func(ctx context.Context, policy runtime.GCPolicy) error {
			policy.MaxPerContainer = 0
			return rt.CollectGarbage(ctx, policy)
		}
	},
	"GarbageCollectionRemovesDeletedPods": func(b *broken, rt *runtimetest.Runtime) {
		b.collect = func(ctx context.Context, policy runtime.GCPolicy) error {
			policy.Keep = nil
			return rt.CollectGarbage(ctx, policy)
		}
	},
}

func withPolicy(from, to v1.RestartPolicy) func(b *broken, rt *runtimetest.Runtime) {
	return func(b *broken, rt *runtimetest.Runtime) {
		b.sync = func(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			if req.Pod.Spec.RestartPolicy == from {
				req.Pod = req.Pod.DeepCopy()
				req.Pod.Spec.RestartPolicy = to
			}
			return rt.SyncPod(ctx, req)
		}
	}
}
