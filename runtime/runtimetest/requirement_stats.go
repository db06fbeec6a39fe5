package runtimetest

import (
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// statsRequirements are the requirements of [runtime.StatsProvider] and
// [runtime.ImageFSReporter].
var statsRequirements = []requirement{
	{
		name:     "ContainerStatsIdentifyContainer",
		text:     "ContainerStats of a running container has its ID and name, and counters that do not decrease; for a container that does not exist it returns ErrNotFound.",
		contract: "StatsProvider.ContainerStats, ContainerStats",
		cause:    "the backend's ID is returned without the runtime's name, or a rate is reported as a counter",
		needs:    []string{"StatsProvider"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyAlways, named("long", t.suite.Containers.Long))
			c := t.container(t.up(pod), "long")
			rt := as[runtime.StatsProvider](t)
			var last *runtime.ContainerStats
			for range 3 {
				s := t.stats(c.ID)
				if s.ID != c.ID || s.Name != c.Name {
					t.Errorf("ContainerStats of %s, %s, returned those of %s, %s", c.Name, c.ID, s.Name, s.ID)
				}
				if last != nil && last.CPU != nil && s.CPU != nil && last.CPU.CoreNanos != nil && s.CPU.CoreNanos != nil &&
					*s.CPU.CoreNanos < *last.CPU.CoreNanos {
					t.Errorf("the CPU time was %d ns and is %d", *last.CPU.CoreNanos, *s.CPU.CoreNanos)
				}
				last = s
				t.pause(t.suite.Timing.PollInterval)
			}
			if s, err := rt.ContainerStats(t.Context(), c.ID+"-not"); !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("ContainerStats of a container that does not exist returned %+v, %v", s, err)
			}
		},
	},
	{
		name:     "StatsHaveTimes",
		text:     "A measurement has a time that is not in the future.",
		contract: "CPUUsage, MemoryUsage",
		cause:    "a measurement without a time, or with that of another clock",
		needs:    []string{"StatsProvider"},
		check: func(t *checkT) {
			c := t.running()
			s := t.stats(c.ID)
			now := time.Now().Add(time.Second)
			if s.CPU != nil && (s.CPU.At.IsZero() || s.CPU.At.After(now)) {
				t.Errorf("the time of the CPU usage is %v", s.CPU.At)
			}
			if s.Memory != nil && (s.Memory.At.IsZero() || s.Memory.At.After(now)) {
				t.Errorf("the time of the memory usage is %v", s.Memory.At)
			}
		},
	},
	{
		name:     "PodStatsListRunningPods",
		text:     "PodStats has each running pod once, with its UID, name and namespace and its running containers, and no terminated pod.",
		contract: "StatsProvider.PodStats, PodStats",
		cause:    "pods are identified by name, or terminated ones are included",
		needs:    []string{"StatsProvider"},
		check: func(t *checkT) {
			pod := t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long), named("short", t.suite.Containers.Exit(0)))
			over := t.pod(v1.RestartPolicyNever, named("long", t.suite.Containers.Long))
			t.up(over)
			t.kill(over, nil)
			t.sync(pod)
			t.await(pod.UID, "short has exited", exited("short"))
			id := t.container(t.look(pod.UID), "long").ID
			t.stats(id) // some runtimes need time for the first values
			all, err := as[runtime.StatsProvider](t).PodStats(t.Context())
			if err != nil {
				t.unlessUnsupported(err)
				t.Fatalf("PodStats: %v", err)
			}
			found := 0
			for _, s := range all {
				switch s.UID {
				case pod.UID:
					found++
					if s.Name != pod.Name || s.Namespace != pod.Namespace {
						t.Errorf("the stats of pod %s/%s have the name %s/%s", pod.Namespace, pod.Name, s.Namespace, s.Name)
					}
					if len(s.Containers) != 1 || s.Containers[0].ID != id || s.Containers[0].Name != "long" {
						t.Errorf("the stats are not those of the running container alone: %+v", s.Containers)
					}
				case over.UID:
					t.Errorf("a terminated pod has stats: %+v", s)
				}
			}
			if found != 1 {
				t.Errorf("PodStats contains the pod %d times", found)
			}
		},
	},
	{
		name:     "ImageFSHasMountPointAndTime",
		text:     "ImageFS returns at least one image file system, each with its mount point and a time that is not in the future.",
		contract: "ImageFSReporter.ImageFS, FSUsage",
		cause:    "an empty result of the backend is returned",
		needs:    []string{"ImageFSReporter"},
		check: func(t *checkT) {
			images, containers, err := as[runtime.ImageFSReporter](t).ImageFS(t.Context())
			if err != nil {
				t.unlessUnsupported(err)
				t.Fatalf("ImageFS: %v", err)
			}
			if len(images) == 0 {
				t.Error("ImageFS returned no file system for images")
			}
			for _, list := range [][]runtime.FSUsage{images, containers} {
				for _, fs := range list {
					if fs.Mountpoint == "" || fs.At.After(time.Now().Add(time.Second)) {
						t.Errorf("ImageFS returned %+v", fs)
					}
				}
			}
		},
	},
}

// stats returns those of a container that runs, as soon as there are any: a
// runtime may collect them now and then.
func (t *checkT) stats(id string) *runtime.ContainerStats {
	t.Helper()
	for begun := time.Now(); ; t.pause(5 * t.suite.Timing.PollInterval) {
		s, err := as[runtime.StatsProvider](t).ContainerStats(t.Context(), id)
		if err == nil && s != nil {
			return s
		}
		t.unlessUnsupported(err)
		if time.Since(begun) > t.suite.Timing.Timeout {
			t.Fatalf("ContainerStats of a container that runs: %+v, %v", s, err)
		}
	}
}
