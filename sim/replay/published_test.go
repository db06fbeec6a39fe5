package replay_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

var update = flag.Bool("update", false, "record testdata/published again")

// A published is a situation in which the kubelet had a published defect. Its recording is in testdata/published.
type published struct {
	name    string
	happens func(m *machine)
	check   func(t *testing.T, o *observer)
}

// The threads are issues of kubernetes/kubernetes.
var publishedDefects = []published{{
	// 104107, "Kubelet reporting 137 exit code for a container whose exit code 0 was previously known": the kubelet
	// had observed the exit, and the container was removed before the last status of the deleted pod. That status reported
	// ContainerStatusUnknown with exit code 137.
	name: "lost-status",
	happens: func(m *machine) {
		job := pod("job", container("main", "once"), container("side", "nginx"))
		job.Spec.RestartPolicy = v1.RestartPolicyNever
		m.run(true, func() {
			m.source.Set(job)
			time.Sleep(20 * time.Second)
			for _, c := range m.fake.Containers(string(job.UID)) {
				if c.Name == "main" {
					require.NoError(m, m.fake.RemoveContainer(m.Context(), c.ID))
				}
			}
			time.Sleep(10 * time.Second)
			m.source.Add(deleted(job))
			time.Sleep(20 * time.Second)
			m.source.Remove(job.UID)
			time.Sleep(5 * time.Second)
		})
	},
	check: func(t *testing.T, o *observer) {
		known := false
		for _, s := range o.statuses {
			end := stateOf(t, s, "main").Terminated
			known = known || end != nil
			if known {
				require.NotNil(t, end, "the exit is reported until the end")
				assert.Equal(t, int32(0), end.ExitCode)
				assert.Equal(t, "Completed", end.Reason)
			}
		}
		assert.True(t, known)
		assert.Equal(t, int32(143), stateOf(t, o.statuses[len(o.statuses)-1], "side").Terminated.ExitCode)
		assert.Equal(t, 1, o.count("CreateContainer main"))
		assert.Equal(t, 1, o.count("DeletePod"))
	},
}, {
	// 116954, "Completed pod stuck in Terminating state after kubelet restart": the kubelet that started after the
	// deletion of a completed pod did not confirm it.
	name: "stuck-terminating",
	happens: func(m *machine) {
		job := pod("job", container("main", "once"))
		job.Spec.RestartPolicy = v1.RestartPolicyNever
		m.run(false, func() {
			m.source.Set(job)
			time.Sleep(20 * time.Second)
		})
		job = deleted(job)
		job.Status, _ = m.sink.Status(job.UID)
		require.Equal(m, v1.PodSucceeded, job.Status.Phase)
		m.run(true, func() {
			m.source.Set(job)
			time.Sleep(20 * time.Second)
			require.True(m, m.sink.Deleted(job.UID))
			m.source.Remove(job.UID)
			time.Sleep(5 * time.Second)
		})
	},
	check: func(t *testing.T, o *observer) {
		assert.Equal(t, 1, o.count("DeletePod"))
		assert.Zero(t, o.count("RunPodSandbox"))
		assert.Zero(t, o.count("CreateContainer"))
		for _, s := range o.statuses {
			assert.Equal(t, v1.PodSucceeded, s.Phase)
		}
	},
}, {
	// 139670, "kubelet creates duplicate running containers": StartContainer exceeded its deadline in the kubelet and
	// took effect in containerd. The kubelet created another instance, and both ran.
	name: "duplicate-containers",
	happens: func(m *machine) {
		starts := 0
		m.fault = func(c fake.Call) (f fake.Fault) {
			if c.Method == "StartContainer" {
				if starts++; starts == 2 {
					f = fake.Fault{Delay: 2 * time.Second, Lost: true, Err: status.Error(codes.DeadlineExceeded, "context deadline exceeded")}
				}
			}
			return f
		}
		m.run(true, func() {
			m.source.Set(pod("web", container("main", "crashonce")))
			time.Sleep(time.Minute)
		})
	},
	check: func(t *testing.T, o *observer) {
		assert.Equal(t, []string{
			"RunPodSandbox", "CreateContainer main 0", "StartContainer main 0", "CreateContainer main 1", "StartContainer main 1: error",
		}, o.actions)
		last := o.statuses[len(o.statuses)-1]
		assert.NotNil(t, stateOf(t, last, "main").Running)
		assert.True(t, last.ContainerStatuses[0].Ready)
		assert.Equal(t, int32(1), last.ContainerStatuses[0].RestartCount)
	},
}, {
	// 60645, "Kubelet leaves orphaned directories and mounts after downtime": a pod was deleted while the kubelet
	// did not run. The next one confirmed the deletion before it had reconstructed the volumes, which remained mounted.
	name: "volumes-after-restart",
	happens: func(m *machine) {
		web := pod("web", container("main", "slow"))
		web.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		web.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
		dir := filepath.Join(m.state, "pods", string(web.UID), "volumes", "kubernetes.io~empty-dir", "data")
		m.run(false, func() {
			m.source.Set(web)
			time.Sleep(20 * time.Second)
			require.DirExists(m, dir)
		})
		m.run(true, func() {
			m.source.Set(deleted(web))
			time.Sleep(20 * time.Second)
			require.NoDirExists(m, dir)
			m.source.Remove(web.UID)
			time.Sleep(5 * time.Second)
		})
	},
	check: func(t *testing.T, o *observer) {
		assert.Equal(t, []string{"StopContainer", "unmounted", "DeletePod"}, o.actions)
	},
}, {
	// 113646, "Containers with readinessProbe become not ready when kubelet restart", and 125397, "After the kubelet
	// restarted, the ready state of the pod should not change.": the results of probes were lost, and the startup probe
	// ran again.
	name: "probes-after-restart",
	happens: func(m *machine) {
		web := pod("web", probed(container("main", "nginx")))
		web.Spec.Containers[0].StartupProbe = web.Spec.Containers[0].LivenessProbe.DeepCopy()
		m.run(false, func() {
			m.source.Set(web)
			time.Sleep(time.Minute)
		})
		m.run(true, func() {
			m.source.Set(web)
			time.Sleep(time.Minute)
		})
	},
	check: func(t *testing.T, o *observer) {
		require.NotEmpty(t, o.statuses)
		for _, s := range o.statuses {
			assert.True(t, s.ContainerStatuses[0].Ready)
			assert.True(t, *s.ContainerStatuses[0].Started)
		}
		assert.Zero(t, o.count("Startup probe"))
		assert.Positive(t, o.count("Readiness probe"))
		assert.Positive(t, o.count("Liveness probe"))
	},
}}

// count returns the number of actions that begin with text.
func (o *observer) count(text string) (n int) {
	for _, a := range o.actions {
		if strings.HasPrefix(a, text) {
			n++
		}
	}
	return n
}

func stateOf(t *testing.T, s v1.PodStatus, container string) v1.ContainerState {
	for _, c := range s.ContainerStatuses {
		if c.Name == container {
			return c.State
		}
	}
	require.Failf(t, "no status", "container %s", container)
	return v1.ContainerState{}
}

// go test ./sim/replay -run TestPublishedDefects -update records them again.
func TestPublishedDefects(t *testing.T) {
	for _, p := range publishedDefects {
		t.Run(p.name, func(t *testing.T) {
			path := filepath.Join("testdata", "published", p.name+".kprec")
			if *update {
				files, err := record.Files(recordMachine(t, p.happens))
				require.NoError(t, err)
				require.Len(t, files, 1)
				data, err := os.ReadFile(files[0])
				require.NoError(t, err)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, data, 0o644))
			}
			info, err := os.Stat(path)
			require.NoError(t, err)
			assert.Less(t, info.Size(), int64(50_000))
			var o observer
			r := open(t, path)
			result, err := replay.Run(t.Context(), r, o.options())
			require.NoError(t, err)
			t.Log(strings.Join(o.actions, "\n"))
			assert.Nil(t, result.Divergence, "%v", result.Divergence)
			assert.NoError(t, r.Damage)
			p.check(t, &o)
		})
	}
}

// The state that an earlier agent has left is a part of the recording: without it the replayed agent acts differently.
func TestTheStateOfAnEarlierAgentIsReplayed(t *testing.T) {
	i := slices.IndexFunc(publishedDefects, func(p published) bool { return p.name == "probes-after-restart" })
	files, err := record.Files(recordMachine(t, publishedDefects[i].happens))
	require.NoError(t, err)
	run := func(with bool) *replay.Divergence {
		var frames []record.Frame
		found := 0
		for f, err := range record.ReadFiles(files...) {
			require.NoError(t, err)
			if f.State != nil {
				found++
				assert.False(t, f.State.Damaged)
			}
			if f.State == nil || with {
				frames = append(frames, f)
			}
		}
		assert.Positive(t, found)
		r, err := replay.Read(sequence(frames))
		require.NoError(t, err)
		result, err := replay.Run(context.Background(), r, replay.Options{})
		require.NoError(t, err)
		return result.Divergence
	}
	assert.Nil(t, run(true))
	assert.NotNil(t, run(false))
}
