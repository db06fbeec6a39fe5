package fakenode_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// Each lifecycle, as reported to an API server. Times are since the previous moment.
func TestPodsLiveAsTheyAreDeclaredTo(t *testing.T) {
	type moment struct {
		after   time.Duration
		summary string
	}
	const s = time.Second
	for name, c := range map[string]struct {
		behaves string
		edit    func(*v1.Pod)
		lives   []moment
	}{
		"no annotation": {"", nil, []moment{{0, "Running, ready"}, {time.Minute, "Running, ready"}}},
		"ready later":   {"ready=2s", nil, []moment{{0, "Running"}, {1 * s, "Running"}, {2 * s, "Running, ready"}}},
		"never ready":   {"neverReady", nil, []moment{{0, "Running"}, {time.Minute, "Running"}}},
		"flapping":      {"ready=1s,flap=10s", nil, []moment{{0, "Running"}, {2 * s, "Running, ready"}, {10 * s, "Running"}, {10 * s, "Running, ready"}, {10 * s, "Running"}}},
		"completes":     {"exit=0@5s", never, []moment{{0, "Running, ready"}, {5 * s, "Succeeded, ended: 0 Completed"}, {time.Minute, "Succeeded, ended: 0 Completed"}}},
		"fails":         {"exit=3@5s", never, []moment{{4 * s, "Running, ready"}, {2 * s, "Failed, ended: 3 Error"}}},
		"fails at once": {"exit=3", never, []moment{{0, "Failed, ended: 3 Error"}}},
		"out of memory": {"oom@5s", never, []moment{{6 * s, "Failed, ended: 137 OOMKilled"}}},
		"crash-loops": {"exit=1@5s", nil, []moment{
			{6 * s, "Running, ready, 1 restarts"}, {6 * s, "Running, waits: CrashLoopBackOff, 1 restarts"},
			{10 * s, "Running, ready, 2 restarts"}, {8 * s, "Running, waits: CrashLoopBackOff, 2 restarts"},
		}},
		"crashes twice, then runs": {"exit=1@1s,crashes=2", nil, []moment{{30 * s, "Running, ready, 2 restarts"}, {time.Minute, "Running, ready, 2 restarts"}}},
		"has no image":             {"fail=ErrImagePull", nil, []moment{{0, "Pending, waits: ErrImagePull"}, {5 * s, "Pending, waits: ImagePullBackOff"}, {time.Minute, "Pending, waits: ImagePullBackOff"}}},
		"has its image later":      {"fail=ErrImagePull@10s", nil, []moment{{5 * s, "Pending, waits: ImagePullBackOff"}, {10 * s, "Running, ready"}}},
		"cannot be started":        {"fail=CreateContainerError", nil, []moment{{5 * s, "Pending, waits: CreateContainerError"}}},
		"starts slowly":            {"start=5s", nil, []moment{{1 * s, "Pending, waits: ContainerCreating"}, {5 * s, "Running, ready"}}},
		"is evicted":               {"evict@5s", nil, []moment{{4 * s, "Running, ready"}, {2 * s, "Failed Evicted, ended: 143 Error"}, {time.Minute, "Failed Evicted, ended: 143 Error"}}},
		"misspelt":                 {"reddy=2s", nil, []moment{{0, "Failed UnknownBehavior"}}},
		"for one container only": {"", func(p *v1.Pod) {
			p.Annotations = map[string]string{fakenode.Annotation: "neverReady", fakenode.AnnotationPrefix + "main": "ready=1s"}
		}, []moment{{0, "Running"}, {2 * s, "Running, ready"}}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, fakenode.Config{}, func(w *world) {
				var edits []func(*v1.Pod)
				if c.edit != nil {
					edits = append(edits, c.edit)
				}
				w.run("web", c.behaves, edits...)
				w.after(0)
				for _, m := range c.lives {
					if m.after > 0 {
						w.after(m.after)
					}
					assert.Equal(t, m.summary, w.summary("web"))
				}
			})
		})
	}
}

// Pods of a cluster mount the token of their service account.
func TestVolumesAreReady(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("web", "", func(p *v1.Pod) {
			p.Spec.Volumes = []v1.Volume{{Name: "token", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{}}}}
			p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "token", MountPath: "/token"}}
		})
		w.after(time.Second)
		assert.Equal(t, "Running, ready", w.summary("web"))
	})
}

func TestAPodThatIsDeletedHasItsGrace(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		w.run("quick", "")
		w.run("slow", "stop=5s")
		w.run("stubborn", "ignoreTERM")
		w.after(time.Second)
		for _, name := range []string{"quick", "slow", "stubborn"} {
			w.delete(name)
		}
		w.after(time.Second)
		assert.Equal(t, "gone", w.summary("quick"))
		assert.Equal(t, "Running, ready", w.summary("slow"))
		w.after(5 * time.Second)
		assert.Equal(t, "gone", w.summary("slow"))
		require.NotNil(t, w.pod("stubborn"))
		w.after(20 * time.Second)
		assert.Equal(t, "Running, ready", w.summary("stubborn"))
		w.after(10 * time.Second)
		assert.Equal(t, "gone", w.summary("stubborn"), "after 30 s")
	})
}
