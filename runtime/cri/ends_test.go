package cri_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/status"
)

// hangingVolumes are volumes that cannot be mounted.
type hangingVolumes struct{}

func (hangingVolumes) Mount(ctx context.Context, _ *v1.Pod) (map[string]runtime.Volume, error) {
	return nil, hangs(ctx)
}
func (hangingVolumes) Unmount(context.Context, *v1.Pod) error { return nil }

// An endable is a pod whose first sync hangs, on a node of its own.
type endable struct {
	*fakeCRI
	workers *podworker.Workers
	pod     *v1.Pod
	sink    status.MemorySink
}

// update passes a changed pod as its source does.
func (e *endable) update(change func(*v1.Pod)) {
	e.pod = e.pod.DeepCopy()
	change(e.pod)
	e.workers.Update(e.pod, false)
}

// Everything that ends a pod cancels a sync in progress, in whichever step it is, and the pod
// terminates. A call that creates or starts something in the runtime may take five more seconds, so
// that its result is not lost.
//
// A failed liveness probe does not end a pod, and does not cancel a sync: the container is restarted
// by the next one. Otherwise a container that fails again and again would keep another one of its pod
// from ever getting its image.
func TestWhateverEndsAPodCancelsItsSync(t *testing.T) {
	const grace = 5 * time.Second
	evict := func(e *endable) {
		e.workers.Kill(e.pod.UID, podworker.KillOptions{Evict: true, Termination: runtime.Termination{Failed: true, Reason: "Evicted"}})
	}
	ends := map[string]func(e *endable){
		"deadline": func(*endable) {}, // it is passed after a minute
		"deadline that is set during the sync": func(e *endable) {
			e.update(func(p *v1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(60)) })
		},
		"deletion": func(e *endable) {
			e.update(func(p *v1.Pod) {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
			})
		},
		"removal from the source": func(e *endable) { e.workers.Remove(e.pod.UID) },
		"terminal phase by another writer": func(e *endable) {
			pod := e.pod.DeepCopy()
			pod.Status.Phase = v1.PodFailed
			e.workers.Update(pod, false)
		},
		"eviction": evict,
		"shutdown": func(e *endable) {
			e.workers.Kill(e.pod.UID, podworker.KillOptions{GracePeriodSeconds: new(int64(1)), Termination: runtime.Termination{Failed: true, Reason: "Terminated"}})
		},
		"preemption": func(e *endable) {
			critical := podOf(container("critical"))
			critical.Name, critical.UID = "critical", "critical"
			e.workers.Update(critical, true)
		},
	}
	steps := map[string]func(f *slowpoke, cfg *pipeline.Config, pod *v1.Pod){
		"pull": func(f *slowpoke, _ *pipeline.Config, _ *v1.Pod) {
			must(f.RemoveImage(context.Background(), &runtimeapi.ImageSpec{Image: "img:1"}))
			f.pull = func(ctx context.Context, _ string) error { return hangs(ctx) }
		},
		"hook": func(f *slowpoke, _ *pipeline.Config, pod *v1.Pod) {
			pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: execHook("hang")}
			f.exec = func(ctx context.Context, _ string, _ []string) error { return hangs(ctx) }
		},
		"sandbox creation": func(f *slowpoke, _ *pipeline.Config, _ *v1.Pod) { f.slow = "RunPodSandbox" },
		"mount": func(_ *slowpoke, cfg *pipeline.Config, _ *v1.Pod) {
			cfg.Resources.Volumes = hangingVolumes{}
		},
		"admission": func(_ *slowpoke, cfg *pipeline.Config, pod *v1.Pod) {
			next := cfg.Admission.Admitter
			cfg.Admission.Admitter = pipeline.AdmitFunc(func(ctx context.Context, p *v1.Pod) *runtime.Rejection {
				if p.UID == pod.UID {
					return &runtime.Rejection{Reason: "Late", Message: hangs(ctx).Error()}
				}
				return next.Admit(ctx, p)
			})
		},
	}
	for end, ends := range ends {
		for step, hang := range steps {
			t.Run(end+"/"+step, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &slowpoke{fakeCRI: newFake()}
					f.has("img:1")
					e := &endable{fakeCRI: f.fakeCRI, pod: podOf(container("web"))}
					rt, _ := f.engine(t, cri.Config{Runtime: f})
					statuses, err := status.New(status.Config{Sink: &e.sink})
					require.NoError(t, err)
					cfg := pipeline.Config{Runtime: rt, Status: statuses, Admission: pipeline.Admission{
						Admitter: pipeline.AdmitFunc(func(_ context.Context, p *v1.Pod) *runtime.Rejection {
							if p.Name == "critical" {
								return &runtime.Rejection{Reason: "OutOfcpu", Preempt: []types.UID{e.pod.UID}}
							}
							return nil
						}),
					}}
					hang(f, &cfg, e.pod)
					if end == "deadline" {
						e.pod.Spec.ActiveDeadlineSeconds = new(int64(60))
					}
					pipeline, err := pipeline.New(cfg)
					require.NoError(t, err)
					e.workers, err = podworker.New(podworker.Config{Handler: pipeline, StatusCache: looks{rt}})
					require.NoError(t, err)
					ctx, stop := context.WithCancel(t.Context())
					var wg sync.WaitGroup
					wg.Go(func() { assert.NoError(t, e.workers.Run(ctx)) })
					wg.Go(func() { assert.NoError(t, statuses.Run(ctx)) })
					defer wg.Wait()
					defer stop()

					e.workers.Update(e.pod, true)
					time.Sleep(time.Minute - time.Millisecond)
					state, _ := e.workers.Table().State(e.pod.UID)
					require.Equal(t, podworker.Syncing, state)
					ends(e)
					time.Sleep(grace + time.Second)
					state, _ = e.workers.Table().State(e.pod.UID)
					assert.GreaterOrEqual(t, state, podworker.Cleaning, "its containers have terminated")
					assert.NotContains(t, f.running(), "web")
					if end == "deadline" || end == "deadline that is set during the sync" {
						s, _ := e.sink.Status(e.pod.UID)
						assert.Equal(t, v1.PodFailed, s.Phase)
						assert.Equal(t, "DeadlineExceeded", s.Reason)
					}
				})
			})
		}
	}
}
