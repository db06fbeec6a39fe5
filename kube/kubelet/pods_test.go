package kubelet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
	"github.com/kubeparts/kubeparts/status"
)

// stuckVolumes are volumes that cannot be unmounted.
type stuckVolumes struct{}

func (stuckVolumes) Mount(context.Context, *v1.Pod) (map[string]runtime.Volume, error) {
	return nil, nil
}

func (stuckVolumes) Unmount(ctx context.Context, _ *v1.Pod) error {
	<-ctx.Done()
	return ctx.Err()
}

// A pod that has stopped and whose volumes cannot be unmounted has no usage, and would
// precede all others in each ranking.
func TestAStoppedPodIsNotEvictedInsteadOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named := func(uid string) *v1.Pod {
			return &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "main"}}},
			}
		}
		source := new(podsource.Memory)
		source.Set(named("stuck"), named("other"))
		a, err := agent.New(agent.Config{
			Runtime: new(runtimetest.Runtime), Sources: map[string]podsource.PodSource{podsource.FileSource: source}, Sink: new(status.MemorySink),
			Subsystems: agent.Subsystems{Volumes: stuckVolumes{}},
		})
		require.NoError(t, err)
		p := stores.Pods{Table: a.Table()}
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- a.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Len(t, p.Running(), 2)
		assert.Len(t, p.Active(), 2)
		assert.False(t, p.Terminated("stuck") || p.Cleaned("stuck") || p.Leaving("stuck"))
		<-a.Kill("stuck", podworker.KillOptions{Evict: true})
		time.Sleep(time.Second)
		synctest.Wait()
		state, _ := p.State("stuck")
		require.Equal(t, podworker.Cleaning, state)
		require.Len(t, p.Running(), 1)
		assert.Equal(t, "other", p.Running()[0].Name)
		assert.True(t, p.Terminated("stuck"))
		assert.False(t, p.Cleaned("stuck"), "its volumes are still mounted")
		assert.True(t, p.Cleaned("unknown"))
		assert.Nil(t, p.DesiredPod("unknown"))
		cancel()
		require.NoError(t, <-ran)
	})
}
