package fakecri_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim"
)

// Memory does not grow while one pod crashes for ten hours, some 120 times, and other
// pods are created and deleted.
func TestHoursOfCrashesDoNotFillTheMemory(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		fake, err := fakecri.New(fakecri.Config{
			Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{
				"app": {Exit: &fake.Exit{After: 2 * time.Second, Code: 1}, Endpoints: []fake.Endpoint{{Port: 80}}},
			}},
			Images: map[string]fake.Image{"missing": {Absent: true}},
		})
		require.NoError(t, err)
		engine, err := cri.New(cri.Config{Name: "fakecri", Runtime: fake, Images: fake, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}})
		require.NoError(t, err)
		node, err := sim.NewNode(sim.NodeConfig{Runtime: engine})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- node.Run(ctx) }()
		node.Set(crashing("crash", "busybox"), crashing("absent", "missing"))

		// heap returns the bytes in use after some hours; in each hour, a pod is
		// created and deleted.
		passed := 0
		heap := func(hours int) (bytes uint64, crashes int) {
			for range hours {
				passed++
				pod := crashing(fmt.Sprint("passing-", passed), "busybox")
				node.Add(pod)
				time.Sleep(30 * time.Minute)
				node.Delete(pod.UID, nil)
				time.Sleep(30 * time.Minute)
			}
			for _, c := range fake.Containers("uid-crash") {
				crashes = max(crashes, int(c.Attempt))
			}
			var m goruntime.MemStats
			goruntime.GC()
			goruntime.ReadMemStats(&m)
			return m.HeapAlloc, crashes
		}
		early, crashesEarly := heap(2)
		late, crashes := heap(8)
		t.Logf("%d KiB and %d crashes after 2 hours, %d KiB and %d crashes after 10", early>>10, crashesEarly, late>>10, crashes)
		assert.Greater(t, crashes, 80)
		assert.Less(t, late, early+1<<20, "in bytes")
		assert.LessOrEqual(t, len(fake.Containers("")), 6, "terminated containers were collected")
		stop()
		require.NoError(t, <-ended)
	})
}

func crashing(name, image string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: image}}},
	}
}
