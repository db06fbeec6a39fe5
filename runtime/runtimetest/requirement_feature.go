package runtimetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/runtime"
)

// featureRequirements are the requirements of [runtime.FeatureReporter],
// [runtime.CgroupDriverReporter], [runtime.Checkpointer],
// [runtime.PodCheckpointer] and [runtime.ResourceUpdater].
var featureRequirements = []requirement{
	{
		name:     "FeaturesAreReported",
		text:     "Features returns no error and the same result each time; if it reports handlers, the default one (\"\") is among them.",
		contract: "FeatureReporter.Features, Features",
		cause:    "an old backend without this call is treated as failed",
		needs:    []string{"FeatureReporter"},
		check: func(t *checkT) {
			rt := as[runtime.FeatureReporter](t)
			f, err := rt.Features(t.Context())
			if err != nil {
				t.Fatalf("Features: %v", err)
			}
			if _, ok := f.Handlers[""]; f.Handlers != nil && !ok {
				t.Errorf("the default handler is not among %v", f.Handlers)
			}
			again, err := rt.Features(t.Context())
			if err != nil || len(again.Handlers) != len(f.Handlers) || again.SupplementalGroupsPolicy != f.SupplementalGroupsPolicy {
				t.Errorf("Features returned %+v, and then %+v, %v", f, again, err)
			}
			clear(f.Handlers)
			if again, err = rt.Features(t.Context()); err != nil || (again.Handlers == nil) != (f.Handlers == nil) || f.Handlers != nil && len(again.Handlers) == 0 {
				t.Errorf("after its result was modified, Features returns %+v, %v", again, err)
			}
		},
	},
	{
		name:     "CgroupDriverIsReported",
		text:     "CgroupDriver returns systemd, cgroupfs, or nothing; a runtime that cannot report it returns no error.",
		contract: "CgroupDriverReporter.CgroupDriver",
		cause:    "an old backend without this call is treated as failed",
		needs:    []string{"CgroupDriverReporter"},
		check: func(t *checkT) {
			d, err := as[runtime.CgroupDriverReporter](t).CgroupDriver(t.Context())
			if err != nil {
				t.Errorf("CgroupDriver: %v", err)
			}
			switch d {
			case "", runtime.CgroupDriverSystemd, runtime.CgroupDriverCgroupfs:
			default:
				t.Errorf("the driver is %q", d)
			}
		},
	},
	{
		name:     "CheckpointRejectsInvalidRequests",
		text:     "Checkpoint returns an error for a container that does not exist and for a path that is not absolute; nothing is written, and the container continues.",
		contract: "Checkpointer.Checkpoint; errors of package runtime",
		cause:    "the location is used before the request is checked",
		needs:    []string{"Checkpointer"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			want := t.up(pod)
			id := t.container(want, "long").ID
			rt := as[runtime.Checkpointer](t)
			location := filepath.Join(t.TempDir(), "archive.tar")
			for _, refused := range []struct{ what, id, location string }{
				{"a container that does not exist", id + "-not", location},
				{"a container, to a relative path,", id, "archive.tar"},
				{"a container, to no path,", id, ""},
			} {
				err := t.calm("Checkpoint", func() error { return rt.Checkpoint(t.Context(), refused.id, refused.location, time.Second) })
				if err == nil {
					t.Errorf("Checkpoint of %s returned no error", refused.what)
				}
			}
			if _, err := os.Stat(location); err == nil {
				t.Errorf("an archive of a container that does not exist was written")
			}
			if got := t.look(pod.UID); format(got) != format(want) {
				t.Errorf("the pod was\n%s\nand after the rejected checkpoints it is\n%s", describe(want), describe(got))
			}
		},
	},
	{
		name:     "PodCheckpointKeepsContainersRunning",
		text:     "CheckpointPod writes to an empty directory, and the containers continue; for a path that is not absolute and for a pod without containers it returns an error and writes nothing.",
		contract: "PodCheckpointer.CheckpointPod",
		cause:    "the containers are stopped, or the location is used before the request is checked",
		needs:    []string{"PodCheckpointer"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			want := t.up(pod)
			rt := as[runtime.PodCheckpointer](t)
			location := t.TempDir()
			files := func() int {
				list, err := os.ReadDir(location)
				if err != nil {
					t.Fatalf("the directory of the checkpoint: %v", err)
				}
				return len(list)
			}
			for _, refused := range []struct {
				what, location string
				pod            *v1.Pod
			}{
				{"a pod without containers", location, t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))},
				{"a pod, to a relative path,", filepath.Base(location), pod},
				{"a pod, to no path,", "", pod},
			} {
				err := t.calm("CheckpointPod", func() error { return rt.CheckpointPod(t.Context(), refused.pod, refused.location) })
				if err == nil {
					t.Errorf("CheckpointPod of %s returned no error", refused.what)
				}
			}
			if files() > 0 {
				t.Errorf("a checkpoint that failed was written")
			}
			if err := rt.CheckpointPod(t.Context(), pod, location); err != nil {
				t.unlessUnsupported(err)
				t.Errorf("CheckpointPod: %v", err)
			} else if files() == 0 {
				t.Errorf("CheckpointPod wrote nothing")
			}
			if got := t.look(pod.UID); format(got) != format(want) {
				t.Errorf("the pod was\n%s\nand after its checkpoint it is\n%s", describe(want), describe(got))
			}
		},
	},
	{
		name:     "ResourcesAreUpdatedInPlace",
		text:     "UpdateResources changes the limits of a running container without restarting it; for a container that does not exist it returns ErrNotFound.",
		contract: "ResourceUpdater.UpdateResources",
		cause:    "the container is recreated, or an update without a running container succeeds",
		needs:    []string{"ResourceUpdater"},
		check: func(t *checkT) {
			c := named("long", t.suite.Containers.Long)
			limits := func(memory string) v1.ResourceRequirements {
				return v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse(memory)}}
			}
			c.Resources = limits("64Mi")
			pod := t.pod(v1.RestartPolicyAlways, c)
			want := t.up(pod)
			id := t.container(want, "long").ID
			rt := as[runtime.ResourceUpdater](t)
			if err := rt.UpdateResources(t.Context(), id+"-not", limits("96Mi")); !errors.Is(err, runtime.ErrNotFound) {
				t.unlessUnsupported(err)
				t.Errorf("UpdateResources of a container that does not exist returned %v", err)
			}
			if err := rt.UpdateResources(t.Context(), id, limits("96Mi")); err != nil {
				t.unlessUnsupported(err)
				t.Errorf("UpdateResources: %v", err)
			}
			if got := t.look(pod.UID); len(got.Containers) != 1 || t.container(got, "long").ID != id || !in(got, "long", runtime.ContainerRunning) {
				t.Errorf("the pod was\n%s\nand after an update is\n%s", describe(want), describe(got))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := rt.UpdateResources(ctx, id, limits("96Mi")); err != nil && !ended(err) {
				t.Errorf("with a canceled context, UpdateResources returned %v", err)
			}
		},
	},
}
